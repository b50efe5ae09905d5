"""Where the next label is worth most, and how many labels a target needs."""

from annotruth.active.advice import Advice, advise
from annotruth.active.planning import TARGETS, Plan, plan

__all__ = ["TARGETS", "Advice", "Plan", "advise", "plan"]
