"""Simulated labels and pair comparisons with known truth."""

from annotruth.simulate.changes import ChangingSimulation, changing
from annotruth.simulate.comparers import ComparisonSimulation, comparers
from annotruth.simulate.crowds import Simulation, crowd, gaussian
from annotruth.simulate.grouped import GroupSimulation, groups
from annotruth.simulate.machines import with_machines
from annotruth.simulate.questions import QuestionSimulation, questions
from annotruth.simulate.sets import SetSimulation, sets

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
