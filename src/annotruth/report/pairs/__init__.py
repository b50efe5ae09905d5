"""The report of a fit of comparisons."""
