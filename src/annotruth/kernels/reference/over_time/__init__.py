"""NumPy twins of the passes of labels over time."""
