"""Analyses: what is derived from a fit, as tables, facts and notes."""
