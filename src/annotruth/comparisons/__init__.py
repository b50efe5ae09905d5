"""Pair comparisons: which of two items annotators preferred."""

from annotruth.comparisons.table import LEFT, RIGHT, TIE, Comparisons

__all__ = ["LEFT", "RIGHT", "TIE", "Comparisons"]
