"""The one validated table of labels that everything after the readers works on."""

from annotruth.labels.bins import Bins
from annotruth.labels.scale import Scale, ScaleKind
from annotruth.labels.table import DuplicatePolicy, Labels
from annotruth.labels.tally import Tally

__all__ = ["Bins", "DuplicatePolicy", "Labels", "Scale", "ScaleKind", "Tally"]
