"""How files are read: errors, long tables, other formats, labels that stay on disk."""
