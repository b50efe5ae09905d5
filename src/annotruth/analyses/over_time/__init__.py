"""Reliability over time: changes of annotators, seconds per answer, the crowd over time."""

from annotruth.analyses.over_time.analysis import add_over_time

__all__ = ["add_over_time"]
