"""Types of the arrays that are passed around, and helpers that work on any of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

S = TypeVar("S")
T = TypeVar("T")

_CACHE_LINE_BYTES = 64
_SHORT_ROW = 8  # from there on, NumPy adds up in another order

Floats: TypeAlias = NDArray[np.float64]
"""Probabilities, scores, sums."""

Singles: TypeAlias = NDArray[np.float32]
"""The same where they are many and six digits are enough."""

Codes: TypeAlias = NDArray[np.int64]
"""Indices of items, annotators, categories or cells."""


def inner(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the inner product of two arrays, computed on one thread.

    ``a @ b`` divides long arrays among the cores: it waits while one of them is busy, a hundred times
    as long as the sum takes, and the rounding depends on the number of cores.
    """
    return float((a * b).sum())


def sum_over_annotators(values: Any) -> Any:
    """Return the sum over the first axis, that of annotators, in memory.

    The values may be where an engine computes (`annotruth.engines.Session.to_engine`).
    """
    total = values.sum(axis=0)
    return total.get() if hasattr(total, "get") else total


def product_over_annotators(a: Any, b: Any) -> Any:
    """Return ``a.T @ b``, in memory: sums over annotators, which are the rows of both.

    The arrays may be where an engine computes.
    """
    product = a.T @ b
    return product.get() if hasattr(product, "get") else product


def reduce_rows(function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Return the sum or maximum of each row: ``function`` is `numpy.add` or `numpy.maximum`.

    NumPy is slow to reduce many short rows.
    """
    is_short = 1 < values.shape[1] < _SHORT_ROW
    return reduce(function, values.T) if is_short else function.reduce(values, axis=1)


def slices(n: int, size: int = 1 << 20) -> Iterator[slice]:
    """Return slices of ``range(n)``, at least one, so that temporary arrays stay small."""
    for start in range(0, max(n, 1), size):
        yield slice(start, min(start + size, n))


def map_slices(compute: Callable[[slice], T], n: int, size: int = 1 << 20) -> list[T]:
    """Return what a function computes of each slice of ``range(n)``, on all cores.

    Slices do not depend on the number of cores. NumPy's functions on large arrays run in parallel.
    """
    return map_on_all_cores(compute, list(slices(n, size)))


def concatenate(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays one after the other, as `numpy.concatenate` does, copied on all cores."""
    ends = np.cumsum([len(part) for part in parts])
    whole = np.empty((ends[-1], *parts[0].shape[1:]), dtype=np.result_type(*parts))

    def copy(number: int) -> None:
        whole[ends[number] - len(parts[number]) : ends[number]] = parts[number]

    map_on_all_cores(copy, range(len(parts)))
    return whole


def copy_on_all_cores(values: NDArray[Any], to: NDArray[Any]) -> None:
    """Copy an array to another, whose type may differ."""

    def copy(part: slice) -> None:
        to[part] = values[part]

    map_slices(copy, len(values))


def map_on_all_cores(compute: Callable[[S], T], parts: Sequence[S]) -> list[T]:
    """Return what a function computes of each part, on all cores; it releases the interpreter lock."""
    if len(parts) == 1:
        return [compute(parts[0])]
    with ThreadPoolExecutor(min(len(parts), usable_cores())) as pool:
        return list(pool.map(compute, parts))


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def aligned_empty(n: int) -> Floats:
    """Return an empty array that begins at a cache line, as few others do."""
    buffer = np.empty(8 * n + _CACHE_LINE_BYTES, dtype=np.uint8)
    begin = -buffer.ctypes.data % _CACHE_LINE_BYTES
    array: Floats = buffer[begin : begin + 8 * n].view(np.float64)
    return array


def contiguous(value: Any) -> Any:
    """Return an array as kernels take it, with its last axis varying fastest; other values as they are."""
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) and value.ndim else value


def mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each number (the finalizer of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return mixed


Arrays: TypeAlias = SimpleNamespace
"""The arguments of a kernel by name, as its NumPy twin takes them."""


class Block(NamedTuple):
    """Labels of some items, sorted by item and category.

    A cell is all labels of one item that name the same category. The cells of item e are
    ``item_ptr[e]:item_ptr[e+1]``. The labels of cell c are ``cell_ptr[c]:cell_ptr[c+1]``, of the
    category ``cell_category[c]``; ``annotator`` has one entry per label. ``known[e]`` is the category
    code of the item's known truth, or -1; for kernels that take a table of what is known, its row.
    """

    item_ptr: NDArray[np.int64]
    cell_category: NDArray[np.int32]
    cell_ptr: NDArray[np.int64]
    annotator: NDArray[np.int32]
    known: NDArray[np.int32]


class ComparisonBlock(NamedTuple):
    """The arrays that kernels read: an annotator's comparisons are ``annotator_ptr[s]:[s + 1]``."""

    annotator_ptr: NDArray[np.int64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]


class PairBlock(NamedTuple):
    """Pairs of items, and how often each was compared."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    n: Floats
