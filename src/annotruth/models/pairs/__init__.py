"""Models of pair comparisons: scores of items from votes on which of two is preferred."""
