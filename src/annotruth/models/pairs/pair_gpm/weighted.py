"""Passes over comparisons in which the votes of some annotators count less than others'."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.engines import Engine, Pass, Session
from annotruth.engines.protocol import Extent
from annotruth.kernels.arrays import Codes, Floats


class _Part(NamedTuple):
    """The annotators of one weight: their places, those of their votes, and a session of these."""

    weight: float
    annotators: Codes
    comparisons: Codes
    session: Session


class WeightedSession:
    r"""A session whose sums are weighted by annotators: each annotator's terms times their weight.

    The log-likelihood is then :math:`\sum_s u_s \log L_s`. There is one session per different weight,
    so that kernels know no weights. Arrays beside the data are those of all annotators or comparisons.

    Parameters
    ----------
    engine, data
        Where the passes run, and the comparisons.
    weight
        What each annotator's votes count.

    Examples
    --------
    >>> from annotruth.engines import get_engine
    >>> votes = Comparisons.from_codes(
    ...     [0, 0], [1, 1], [0, 1], [0, 1], items=["a", "b"], annotators=["x", "y"]
    ... )
    >>> session = WeightedSession(get_engine("memory"), votes, np.array([1.0, 0.5]))
    >>> session.put("bias", np.array([3.0, 4.0]), per="annotators")
    >>> session.collect("bias").tolist()
    [3.0, 4.0]
    """

    def __init__(self, engine: Engine, data: Comparisons, weight: Floats) -> None:
        annotator = data.annotator_of_comparison()
        self._size = {"annotators": data.n_annotators, "comparisons": data.n_comparisons}
        self._per: dict[str, Extent] = {}
        self._parts = [
            _Part(
                float(value),
                np.flatnonzero(weight == value),
                np.flatnonzero(weight[annotator] == value),
                engine.open(data.of_annotators(weight == value)),
            )
            for value in np.unique(weight)
        ]

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an array of zeros: one entry, or one of ``shape``, per annotator or comparison."""
        self._per[name] = per
        for part in self._parts:
            part.session.allocate(name, per, shape)

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the data: one entry per annotator or comparison."""
        self._per[name] = per
        for part in self._parts:
            part.session.put(name, np.ascontiguousarray(values[_places(part, per)]), per)

    def collect(self, name: str) -> NDArray[Any]:
        """Return an array of all annotators or comparisons."""
        per = self._per[name]
        arrays = [part.session.collect(name) for part in self._parts]
        values = np.empty((self._size[per], *arrays[0].shape[1:]), dtype=arrays[0].dtype)
        for part, array in zip(self._parts, arrays, strict=True):
            values[_places(part, per)] = array
        return values

    def apply(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace an array by a function of it."""
        self.put(name, function(self.collect(name)), self._per[name])

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a kernel over all data and return the weighted sums by name."""
        sums = [(part.weight, part.session.run_pass(one, **inputs)) for part in self._parts]
        return {each.name: _total((w * s[each.name] for w, s in sums)) for each in one.sums}

    def without_items(self, name: str, value: float) -> WeightedSession:
        """Return this session: passes skip the items where they are."""
        return self

    def to_engine(self, values: NDArray[Any], annotator_axis: int = 0) -> NDArray[Any]:
        """Return the array: this engine computes in memory."""
        return values

    def to_host(self, values: Any, annotator_axis: int = 0) -> NDArray[Any]:
        """Return the array, which is in memory."""
        array: NDArray[Any] = values
        return array

    def run_over_annotators(self, kernel: str, n_annotators: int, *arrays: Any) -> None:
        """Raise: no model of comparisons does this."""
        raise NotImplementedError

    def map_groups(self, compute: Callable[..., Any], groups: Mapping[int, Any]) -> list[Any]:
        """Raise: no model of comparisons does this."""
        raise NotImplementedError

    def single_precision(self, tol: float) -> bool:
        """Return False: tables are held in double precision."""
        return False

    def close(self) -> None:
        """Release what the sessions hold."""
        for part in self._parts:
            part.session.close()


def _places(part: _Part, per: Extent) -> Codes:
    return part.annotators if per == "annotators" else part.comparisons


def _total(terms: Iterable[Floats]) -> Floats:
    first, *others = terms
    for each in others:
        first = first + each
    return first
