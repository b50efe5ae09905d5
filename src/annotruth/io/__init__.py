"""Files in, files out."""

from annotruth.io.readers import read_labels, read_table
from annotruth.io.writers import TableFormat, write_table, write_tables

__all__ = ["TableFormat", "read_labels", "read_table", "write_table", "write_tables"]
