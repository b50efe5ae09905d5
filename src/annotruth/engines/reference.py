"""The reference engine: plain NumPy kernels on one thread, never compiled code."""

from __future__ import annotations

from typing import Any, ClassVar

from annotruth.engines.memory import MemoryEngine, MemorySession, check_local


class ReferenceEngine(MemoryEngine):
    """Runs the NumPy twin of every kernel on one thread: slow, and easy to check.

    Examples
    --------
    >>> import annotruth as at
    >>> at.fit([("a", "x", 1), ("a", "y", 2)], "gpm", engine="reference").data.n_labels
    2
    """

    name: ClassVar[str] = "reference"

    def __init__(self) -> None:
        super().__init__(threads=1)

    def open(self, data: Any) -> ReferenceSession:
        """Open data that are on this machine."""
        return ReferenceSession(check_local(data), 1)


class ReferenceSession(MemorySession):
    """A session that runs NumPy kernels, always in double precision.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import Pass, get_engine
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 2), ("b", "ann", 2)])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     session.allocate("theta", per="cells")
    ...     sums = session.run_pass(Pass("gpm.start", state=("theta",)))
    ...     session.collect("theta").tolist()
    [0.5, 0.5, 1.0]
    """

    kernel_package: ClassVar[str] = "annotruth.kernels.reference"

    def single_precision(self, tol: float) -> bool:
        """Return False: the reference is in double precision."""
        return False
