"""Where the kernels of PairGPM run: compiled on the cores of this machine, or their NumPy twins."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from annotruth.engines import Engine, get_engine
from annotruth.engines.memory import MemoryEngine
from annotruth.engines.reference import ReferenceEngine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats, map_on_all_cores
from annotruth.models.pairs.pair_gpm.votes import PairVotes

_VOTES_PER_RANGE = 10_000
_MAX_RANGES = 16


class Passes:
    """Runs kernels over ranges of annotators, contexts or votes, which do not depend on the cores."""

    def __init__(self, votes: PairVotes, package: str) -> None:
        n = votes.data.n_comparisons
        n_ranges = int(np.clip(n // _VOTES_PER_RANGE, 1, _MAX_RANGES))
        if package.endswith("reference.pairs"):
            n_ranges = 1
        self._package = package
        self._annotators = votes.data.partition(n_ranges)
        self._votes = np.linspace(0, n, n_ranges + 1).astype(np.int64)
        vote_ptr = votes.layout.vote_ptr
        self._contexts = np.searchsorted(vote_ptr, np.linspace(0, vote_ptr[-1], n_ranges + 1))
        self._contexts[0], self._contexts[-1] = 0, len(vote_ptr) - 1

    def _kernel(self, name: str) -> Callable[..., None]:
        module, function = name.split(".")
        kernel: Callable[..., None] = getattr(
            importlib.import_module(f"{self._package}.{module}"), function
        )
        return kernel

    def by_annotator(self, name: str, block: Any, *arguments: Any) -> None:
        """Run a kernel over all annotators."""
        kernel = self._kernel(name)
        _over(self._annotators, lambda lo, hi: kernel(block, lo, hi, *arguments))

    def by_vote(self, name: str, *arguments: Any, first: bool = False) -> None:
        """Run a kernel over all votes; with ``first``, its range comes before all arguments."""
        kernel = self._kernel(name)
        if first:
            _over(self._votes, lambda lo, hi: kernel(lo, hi, *arguments))
        else:
            block, *others = arguments
            _over(self._votes, lambda lo, hi: kernel(block, lo, hi, *others))

    def by_context(
        self, name: str, block: Any, *arguments: Any, sums: Sequence[tuple[int, ...]]
    ) -> list[Floats]:
        """Run a kernel over all contexts, and return the sums it adds up."""
        kernel = self._kernel(name)
        parts: list[list[Floats]] = []

        def one(lo: int, hi: int, own: list[Floats]) -> None:
            kernel(block, lo, hi, *arguments, *own)

        ranges = _ranges(self._contexts)
        parts = [[np.zeros(shape) for shape in sums] for _ in ranges]
        map_on_all_cores(lambda each: one(*each[0], each[1]), list(zip(ranges, parts, strict=True)))
        return [sum(each[1:], start=each[0]) for each in zip(*parts, strict=True)]


def _ranges(bounds: Any) -> list[tuple[int, int]]:
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return [(lo, hi) for lo, hi in pairs if lo < hi] or [(0, 0)]


def _over(bounds: Any, run: Callable[[int, int], None]) -> None:
    map_on_all_cores(lambda each: run(*each), _ranges(bounds))


def kernel_package(engine: str | Engine) -> str:
    """Return the package of the engine's kernels; raise if it does not run this model."""
    found = get_engine(engine)
    if isinstance(found, ReferenceEngine):
        return "annotruth.kernels.reference.pairs"
    if isinstance(found, MemoryEngine):
        return "annotruth.kernels.pairs"
    raise InputError(
        f"pair-gpm runs on this machine's processor only, not on the engine {found.name}: pass "
        "`--engine memory`, or `--model bradley-terry`"
    )
