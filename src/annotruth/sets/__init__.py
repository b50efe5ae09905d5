"""Answers that are sets of labels: their model, and its results."""
