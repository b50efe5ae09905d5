"""The one validated table of labels that everything after the readers works on."""

from annotruth.labels.bins import Bins
from annotruth.labels.scale import Scale, ScaleKind
from annotruth.labels.summary import LabelSummary
from annotruth.labels.table import DuplicatePolicy, Labels

__all__ = ["Bins", "DuplicatePolicy", "LabelSummary", "Labels", "Scale", "ScaleKind"]
