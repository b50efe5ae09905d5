"""Compiled passes over pair comparisons, one file per model family."""
