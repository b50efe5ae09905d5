"""The one validated table of labels that everything after the readers works on.

Names load on first use, so that importing a small part of this package loads that part alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotruth.labels.bins import Bins
    from annotruth.labels.options import DuplicatePolicy, TableOptions
    from annotruth.labels.scale import Scale, ScaleKind
    from annotruth.labels.summary import LabelSummary
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

_MODULES = {
    "Bins": "bins",
    "DuplicatePolicy": "options",
    "LabelSummary": "summary",
    "Labels": "table",
    "Scale": "scale",
    "ScaleKind": "scale",
    "TableOptions": "options",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'annotruth.labels' has no attribute {name!r}")
    return getattr(importlib.import_module(f"annotruth.labels.{_MODULES[name]}"), name)
