"""Models of pair comparisons: scores, annotators, intervals, taste groups, advice and speed."""
