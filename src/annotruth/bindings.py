"""Functions that methods of results call in rooms above them, such as what `Fit.report` writes.

`annotruth` names them where the package is put together, so that no room imports upward. Each is
imported when it is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from annotruth.errors import InputError

_PLACES: dict[str, str] = {}


def bind(places: Mapping[str, str]) -> None:
    """Name functions by what calls them: "labels.report" is "annotruth.report.page:write_report"."""
    _PLACES.update(places)


def bound(name: str) -> Any:
    """Return the function, or other object, of a name."""
    module, _, function = _PLACES[name].partition(":")
    return getattr(importlib.import_module(module), function)


def bound_for(kind: str, name: str) -> Any:
    """Return the function of a name for fits of a kind; refuse what these cannot do."""
    if f"{kind}.{name}" not in _PLACES:
        raise InputError(f"a fit of {kind} has no {name.replace('_', ' ')}")
    return bound(f"{kind}.{name}")
