"""Errors of CuPy and CUDA, as one-line messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from annotruth.errors import InputError

_IN_MEMORY = "choose engine='memory' (`--engine memory`)"


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Replace what CuPy raises by one line; CuPy's error is its cause."""
    try:
        yield
    except Exception as error:
        if not _is_of_cupy(error):
            raise
        raise InputError(describe_error(error)) from error


def describe_error(error: Exception) -> str:
    """Return what to do after an error of CuPy."""
    text, kind = str(error), type(error).__name__
    reason = first_line(text)
    if isinstance(error, MemoryError) or "cudaErrorMemoryAllocation" in text:
        return f"the memory of the card, or page-locked memory, is full ({reason}): {_IN_MEMORY}"
    if "failed to load" in text:
        return f"CuPy finds no CUDA libraries ({reason}): pip install 'cupy-cuda13x[ctk]', or {_IN_MEMORY}"
    if kind in ("CompileException", "NVRTCError"):
        return f"CuPy cannot compile the kernels ({reason}): update CuPy, or {_IN_MEMORY}"
    return f"the card failed ({reason}): {_IN_MEMORY}"


def first_line(text: str) -> str:
    """Return the first line of an error's text that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")


def _is_of_cupy(error: Exception) -> bool:
    module = type(error).__module__.partition(".")[0]
    return module in ("cupy", "cupy_backends") or "CuPy failed to load" in str(error)
