"""Passes of labels over time."""
