"""The seam between models and hardware: one pass over the labels, annotator-sized sums back.

A model says which kernel runs, which item-side arrays it works on and what shapes its sums
have. An engine runs the kernel over its parts of the labels and adds the sums up. Item-side
arrays stay where the labels are, so a new engine moves only what annotators need, and the
update of the shared parameters is written once, in the model.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary

Extent = Literal["items", "cells", "labels"]

# name: (module, class); an engine's module loads when it is asked for.
ENGINES = {
    "memory": ("annotruth.engines.memory", "MemoryEngine"),
    "reference": ("annotruth.engines.memory", "ReferenceEngine"),
    "spark": ("annotruth.engines.spark", "SparkEngine"),
}


@dataclass(frozen=True)
class Pass:
    """One kind of pass over the labels.

    Attributes
    ----------
    kernel
        ``family.function``: a function of ``kernels/<family>.py``.
    state
        The item-side arrays it reads and writes, by name, in the kernel's order.
    sums
        The shapes of the sums it adds to, in the kernel's order.
    shared_by, sums_by
        Which axis of each shared argument, and of each sum, runs over the annotators; None where
        none does. An engine whose parts know some annotators alone goes by it; where there is
        nothing by annotator it may be left out.
    single
        How many of them, from the first on, may be held in single precision. An engine is free
        not to: such kernels take sums of either.
    scratch
        How many numbers by annotator the kernel makes for itself while it runs, where they are
        many: room that each thread needs.
    """

    kernel: str
    state: tuple[str, ...] = ()
    sums: tuple[tuple[int, ...], ...] = ()
    shared_by: tuple[int | None, ...] = ()
    sums_by: tuple[int | None, ...] = ()
    single: int = 0
    scratch: int = 0


class Session(Protocol):
    """Labels laid out on some hardware, with the item-side arrays beside them."""

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros: one entry, or one of ``shape``, per item or so."""

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Lay an array of the caller's beside the labels: one entry per item, cell or label."""

    def run_pass(self, sweep: Pass, *shared: Any) -> tuple[Floats, ...]:
        """Run a kernel over all labels and return the sums.

        Kernels are called as ``kernel(block, lo, hi, *state, *shared, *sums)``.
        """

    def gather(self, name: str) -> NDArray[Any]:
        """Bring an item-side array back whole."""

    def close(self) -> None:
        """Give back what the session holds."""


class Engine(Protocol):
    """A place where labels can be swept."""

    name: ClassVar[str]
    """What it is called."""

    def open(self, labels: LabelSummary) -> Session:
        """Lay the labels out and return a session on them."""


def share_out(session: Session, task: Callable[[int], None], n_tasks: int) -> None:
    """Do the tasks 0, 1, ... on the threads of a session that lends its own, else in turn."""
    lent = getattr(session, "share_out", None)
    if lent is not None:
        lent(task, n_tasks)
        return
    for turn in range(n_tasks):
        task(turn)


def get_engine(name: str | Engine) -> Engine:
    """Return the engine of that name, or the engine itself."""
    if not isinstance(name, str):
        return name
    if name not in ENGINES:
        raise InputError(f"unknown engine {name!r}: choose {', '.join(ENGINES)}")
    module, cls = ENGINES[name]
    engine: Engine = getattr(importlib.import_module(module), cls)()
    return engine


def name_of(engine: str | Engine) -> str:
    """Return what an engine is called."""
    return engine if isinstance(engine, str) else engine.name
