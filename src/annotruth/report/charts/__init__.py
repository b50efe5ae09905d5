"""Charts: a table, and a function that draws it as SVG."""
