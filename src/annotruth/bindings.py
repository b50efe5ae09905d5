"""Functions that methods of results call in rooms above them, such as what `Fit.report` writes.

`annotruth` names them where the package is put together, so that no room imports upward. Each is
imported when it is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

_PLACES: dict[str, str] = {}


def bind(places: Mapping[str, str]) -> None:
    """Name functions by what calls them: "Fit.report" is "annotruth.report.page:write_report"."""
    _PLACES.update(places)


def bound(name: str) -> Callable[..., Any]:
    """Return the function of a name."""
    module, _, function = _PLACES[name].partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def bound_for(result: object, name: str) -> Callable[..., Any]:
    """Return the function that a class of results has for a name; of other objects that of `Fit`."""
    own = f"{type(result).__name__}.{name}"
    return bound(own if own in _PLACES else f"Fit.{name}")
