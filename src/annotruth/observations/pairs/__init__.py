"""Pair comparisons: which of two items annotators preferred."""
