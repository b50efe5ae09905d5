"""Compiled passes over the labels, arrays in and arrays out, and their NumPy twins."""
