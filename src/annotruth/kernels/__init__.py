"""Passes over the labels, arrays in and arrays out: compiled ones in C++, and their NumPy twins.

``native/`` has the sources, one file per family of models, compiled when the package is built into the
module ``_native``; `annotruth.kernels.reference` has a twin of each of its functions, by which it is
tested. `find_kernel` returns one or the other, with the same arguments.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

Kernel: TypeAlias = Callable[..., Any]
"""A function of what it is to process, such as a block and items ``lo, hi``, and of arrays by name."""


@cache
def find_kernel(name: str, *, reference: bool = False) -> Kernel:
    """Return the kernel ``family.function``, compiled unless its NumPy twin is asked for.

    Where the compiled kernels could not be built, the twin takes the place of each, as it does of a
    kernel that is still to be written.
    """
    found: Any = None if reference else native_kernels()
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not None:
        return found  # type: ignore[no-any-return]
    family, function = name.rsplit(".", 1)
    return _called_by_name(
        getattr(importlib.import_module(f"annotruth.kernels.reference.{family}"), function)
    )


def _called_by_name(twin: Kernel) -> Kernel:
    names = list(inspect.signature(twin).parameters)

    def call(*place: Any, **arrays: Any) -> Any:
        if names[-1] == "a":
            return twin(*place, SimpleNamespace(**arrays))
        return twin(*place, **arrays)

    return call


@cache
def native_kernels() -> ModuleType | None:
    """Return the module of compiled kernels; None where they could not be built."""
    try:
        return importlib.import_module("annotruth.kernels._native")
    except ImportError:
        return None
