"""Which items need labels, whom to ask, whom to drop, and how many labels a target needs.

`advise` takes a fit of any model and never fits again. The report, `annotruth fit --keep`,
`annotruth next` and `annotruth plan` show its advice.
"""

from annotruth.advice.advice import Advice, advise
from annotruth.advice.plan import TARGETS, Plan, plan

__all__ = ["TARGETS", "Advice", "Plan", "advise", "plan"]
