"""NumPy twins of the passes over sets of labels."""
