"""Parts of a fit: its tables, its summary, its results per item, and fits in another order."""
