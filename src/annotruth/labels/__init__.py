"""The one validated table of labels that everything after the readers works on."""

from annotruth.labels.scale import Scale, ScaleKind
from annotruth.labels.table import DuplicatePolicy, Labels

__all__ = ["DuplicatePolicy", "Labels", "Scale", "ScaleKind"]
