"""Passes and whole fits on a GPU, beside those on this machine's cores, in one run."""
