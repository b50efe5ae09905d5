"""The reference engine: plain NumPy kernels on one thread, never compiled code."""

from __future__ import annotations

from typing import Any, ClassVar

from annotruth.engines.memory import MemoryEngine, MemorySession, check_local


class ReferenceEngine(MemoryEngine):
    """Runs the NumPy twin of every kernel on one thread: slow, and easy to check."""

    name: ClassVar[str] = "reference"

    def __init__(self) -> None:
        super().__init__(threads=1)

    def open(self, data: Any) -> ReferenceSession:
        """Open data that are on this machine."""
        return ReferenceSession(check_local(data), 1)


class ReferenceSession(MemorySession):
    """A session that runs NumPy kernels."""

    kernel_package: ClassVar[str] = "annotruth.kernels.reference"
