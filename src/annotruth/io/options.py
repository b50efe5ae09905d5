"""The options for reading labels, defined beside those of a table of labels."""

from annotruth.labels.options import ReadOptions, TableOptions

__all__ = ["ReadOptions", "TableOptions"]
