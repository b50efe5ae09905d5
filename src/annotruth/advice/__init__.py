"""Where the next label is worth most, and how many labels a target needs."""

from annotruth.advice.advice import Advice, advise
from annotruth.advice.planning import TARGETS, Plan, plan

__all__ = ["TARGETS", "Advice", "Plan", "advise", "plan"]
