"""Whether a model claims more than its labels hold."""
