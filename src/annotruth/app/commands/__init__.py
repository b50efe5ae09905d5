"""The commands, one a file; what they need loads when they run."""
