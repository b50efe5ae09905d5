"""The one validated table of labels that everything after the readers works on."""

from annotruth.labels.arrays import LabelSummary
from annotruth.labels.bins import Bins
from annotruth.labels.options import DuplicatePolicy, TableOptions
from annotruth.labels.scale import Scale, ScaleKind
from annotruth.labels.table import Labels

__all__ = [
    "Bins",
    "DuplicatePolicy",
    "LabelSummary",
    "Labels",
    "Scale",
    "ScaleKind",
    "TableOptions",
]
