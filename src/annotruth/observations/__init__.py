"""The validated tables of labels and of pair comparisons that everything after the readers works on."""

from annotruth.observations.arrays import LabelSummary
from annotruth.observations.layout import DuplicatePolicy
from annotruth.observations.options import ReadOptions
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE, Comparisons
from annotruth.observations.scale import Bins, Scale, ScaleKind
from annotruth.observations.table import Labels

__all__ = [
    "LEFT",
    "RIGHT",
    "TIE",
    "Bins",
    "Comparisons",
    "DuplicatePolicy",
    "LabelSummary",
    "Labels",
    "ReadOptions",
    "Scale",
    "ScaleKind",
]
