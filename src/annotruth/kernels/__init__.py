"""Arrays in, arrays out: the compiled passes over labels, and their plain twins."""
