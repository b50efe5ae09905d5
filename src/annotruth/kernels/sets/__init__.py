"""Compiled passes over answers that are sets of labels."""
