"""Reading and writing files: labels and tables in, tables out."""
