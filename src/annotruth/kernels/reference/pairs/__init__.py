"""NumPy twins of the passes over pair comparisons."""
