"""Labels that stay on disk."""
