"""Models of pair comparisons: scores, annotators, intervals, advice and speed."""
