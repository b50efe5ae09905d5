"""A session on some of the labels, to whose sums those of all the others are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from annotruth.engines.protocol import Extent, Pass, Session
from annotruth.kernels.arrays import Floats

Addition = Callable[..., tuple[Floats, ...]]
"""Adds the labels elsewhere to a sweep's sums: ``addition(sums, *shared)``, as the sweep is given."""


class BackgroundSession:
    """Sweeps the labels at hand; those elsewhere are known by their sums alone.

    So a model's steps, which update what annotators share from sums over all labels, run
    unchanged on the few labels that an update concerns. ``elsewhere`` adds them, by kernel; the
    sums of a kernel that is not there are those of the labels at hand.
    """

    def __init__(self, session: Session, elsewhere: Mapping[str, Addition]) -> None:
        self._session = session
        self._elsewhere = elsewhere

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros for the labels at hand."""
        self._session.allocate(name, per, shape)

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Lay an array of the caller's beside the labels at hand."""
        self._session.put(name, values, per)

    def run_pass(self, sweep: Pass, *shared: Any) -> tuple[Floats, ...]:
        """Run a kernel over the labels at hand and return the sums of all."""
        sums = self._session.run_pass(sweep, *shared)
        add = self._elsewhere.get(sweep.kernel)
        return sums if add is None else add(sums, *shared)

    def gather(self, name: str) -> NDArray[Any]:
        """Bring an item-side array of the labels at hand."""
        return self._session.gather(name)

    def close(self) -> None:
        """Give back what the session holds."""
        self._session.close()
