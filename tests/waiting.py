"""Waiting for what another thread or process does, on a machine that may be slow."""

import time
from collections.abc import Callable

MAX_SECONDS = 120.0
"""The longest wait. A test that passes ends long before."""


def wait_until(condition: Callable[[], object], what: str, *, seconds: float = MAX_SECONDS) -> None:
    """Return as soon as a condition holds; fail, naming ``what`` was waited for, if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.01)
