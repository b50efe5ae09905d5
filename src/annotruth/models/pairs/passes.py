"""Kernels of comparisons over ranges of annotators, contexts, votes or pairs, on all cores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from annotruth.engines import Engine, get_engine
from annotruth.engines.memory import MemoryEngine, ReferenceEngine
from annotruth.errors import InputError, option
from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import Codes, Floats, map_on_all_cores

_ROWS_PER_RANGE = 10_000
_MAX_RANGES = 16


class Passes:
    """Runs kernels over ranges, which do not depend on the cores.

    ``pointers`` are the ends of the rows of each annotator, context, ..., with a 0 before them.
    """

    def __init__(self, *, reference: bool = False, **pointers: Codes) -> None:
        self.reference = reference  # whether the NumPy twins are run
        self._ranges = {over: self._divide(ends) for over, ends in pointers.items()}

    def _divide(self, ends: Codes) -> list[tuple[int, int]]:
        """Return ranges with about as many rows."""
        n = int(ends[-1])
        n_ranges = 1 if self.reference else int(np.clip(n // _ROWS_PER_RANGE, 1, _MAX_RANGES))
        bounds = np.searchsorted(ends, np.linspace(0, n, n_ranges + 1))
        bounds[0], bounds[-1] = 0, len(ends) - 1
        return [(lo, hi) for lo, hi in pairwise(bounds.tolist()) if lo < hi] or [(0, 0)]

    def run(
        self,
        name: str,
        over: str,
        block: Any,
        *arguments: Any,
        sums: Sequence[tuple[int, ...]] = (),
    ) -> list[Floats]:
        """Run a kernel over all annotators, votes, ...; return the sums of these shapes."""
        kernel = find_kernel(f"pairs.{name}", reference=self.reference)
        ranges = self._ranges[over]
        parts = [[np.zeros(shape) for shape in sums] for _ in ranges]

        def one(number: int) -> None:
            kernel(block, *ranges[number], *arguments, *parts[number])

        map_on_all_cores(one, range(len(ranges)))
        return [sum(each[1:], start=each[0]) for each in zip(*parts, strict=True)]


def runs_twins(engine: str | Engine) -> bool:
    """Return whether the engine runs NumPy twins; raise for those that do not run comparisons."""
    found = get_engine(engine)
    if isinstance(found, MemoryEngine):
        return isinstance(found, ReferenceEngine)
    raise InputError(
        f"comparisons are ranked on this machine's processor, not on the engine {found.name}: leave "
        f"out {option('engine')}"
    )
