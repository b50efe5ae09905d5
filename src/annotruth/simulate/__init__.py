"""Simulated labels and pair comparisons with known truth."""

from annotruth.simulate.changes import ChangingSimulation, changing
from annotruth.simulate.comparers import ComparisonSimulation, comparers
from annotruth.simulate.crowds import Simulation, crowd, gaussian
from annotruth.simulate.sets import SetSimulation, sets
from annotruth.simulate.variants import (
    GroupSimulation,
    QuestionSimulation,
    groups,
    questions,
    with_machines,
)

__all__ = [
    "ChangingSimulation",
    "ComparisonSimulation",
    "GroupSimulation",
    "QuestionSimulation",
    "SetSimulation",
    "Simulation",
    "changing",
    "comparers",
    "crowd",
    "gaussian",
    "groups",
    "questions",
    "sets",
    "with_machines",
]
