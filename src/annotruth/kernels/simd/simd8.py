"""Operations on eight numbers at once.

Cells are short, two or three labels, and of lengths that are hard to predict: a loop over the labels
of each mispredicts its end, which costs more than the work in it. These functions process eight
places whatever the length and ignore the rest, so that there is no loop.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import SIMD8
from annotruth.kernels.simd.llvm import DOUBLE, INT64, Array, Code, Value, lowered_by

Offsets = NDArray[np.int64]

# Unsigned indices are never negative, which saves a test at every access.
_ONE, _EIGHT = np.uint64(1), np.uint64(SIMD8)

_FRACTION_BITS = 52  # of a double
_LOG_2 = math.log(2.0)
_ROOT_HALF = np.float64(math.sqrt(0.5)).view(np.int64).item()


def _write_fill8(code: Code, out: Array, begin: Value, value: Value) -> None:
    out.store(begin, value.broadcast(SIMD8))


@lowered_by(_write_fill8)
def _fill8(out: NDArray[Any], begin: np.uint64, value: Any) -> None:
    """Set eight places to one value."""
    out[begin : begin + _EIGHT] = value


def _write_sum8(code: Code, values: Array, begin: Value, count: Value) -> Value:
    counted = values.load(begin, SIMD8).first(count.minimum_unsigned(SIMD8))
    return counted.reduce(Value.__add__)


@lowered_by(_write_sum8)
def _sum8(values: Floats, begin: np.uint64, count: np.uint64) -> float:
    """Return the sum of the first ``count`` of eight places, of all if it is more than eight."""
    return float(values[begin : begin + min(count, _EIGHT)].sum())


def _write_bits_of(code: Code, value: Value) -> Value:
    return value.bitcast(INT64)


@lowered_by(_write_bits_of)
def _bits_of(value: float) -> int:
    """Return the bits of a double."""
    return np.float64(value).view(np.int64).item()


def _write_double_of(code: Code, bits: Value) -> Value:
    return bits.bitcast(DOUBLE)


@lowered_by(_write_double_of)
def _double_of(bits: int) -> float:
    """Return the double that has these bits."""
    return np.int64(bits).view(np.float64).item()


def _write_prefetch(code: Code, values: Array, place: Value) -> None:
    values.prefetch(place)


@lowered_by(_write_prefetch)
def prefetch(values: NDArray[Any], place: np.int64) -> None:
    """Ask for one place of an array to be brought into the cache; it may be past the end."""


def _write_load_word(code: Code, text: Array, begin: Value) -> Value:
    return text.load_as(begin, INT64)


@lowered_by(_write_load_word)
def load_word(text: NDArray[np.uint8], begin: int) -> np.uint64:
    """Return eight bytes as one number, wherever they begin."""
    return np.uint64(text[begin : begin + SIMD8].view(np.uint64)[0])


@compiled
def fill(out: NDArray[Any], begin: np.uint64, end: np.uint64, value: Any) -> None:
    """Set ``out[begin:end]``, and up to eight places after it that are yet to be set."""
    _fill8(out, begin, value)
    for j in range(begin + _EIGHT, end):
        out[j] = value


@compiled
def sum_of(values: Floats, begin: np.uint64, end: np.uint64) -> float:
    """Return the sum of ``values[begin:end]``; there must be eight places after ``begin``."""
    total = _sum8(values, begin, end - begin)
    begin += _EIGHT
    while begin < end:
        total += _sum8(values, begin, end - begin)
        begin += _EIGHT
    return total


@compiled
def repeat_by_cell(ptr: Offsets, lo: int, hi: int, values: NDArray[Any], out: NDArray[Any]) -> None:
    """Give each label of cells ``lo:hi`` its cell's value; ``out`` begins with the first label."""
    base, begin = np.uint64(ptr[lo]), np.uint64(0)
    for c in range(np.uint64(lo), np.uint64(hi)):
        end = np.uint64(ptr[c + _ONE]) - base
        fill(out, begin, end, values[c])
        begin = end


@compiled
def sum_by_cell(ptr: Offsets, lo: int, hi: int, values: Floats, out: Floats) -> None:
    """Add up the values of the labels of each cell in ``lo:hi``; both begin with the first cell."""
    base, first, begin = np.uint64(ptr[lo]), np.uint64(lo), np.uint64(0)
    for c in range(first, np.uint64(hi)):
        end = np.uint64(ptr[c + _ONE]) - base
        out[c - first] = sum_of(values, begin, end)
        begin = end


@compiled
def log(x: float) -> float:
    r"""Return log x to 1e-15, without a branch or a call, so that a loop of it becomes vectors.

    With :math:`x = m 2^e`, m between the roots of 1/2 and of 2, and :math:`s = (m-1)/(m+1)`,

    .. math:: \log x = e \log 2 + 2 (s + s^3/3 + s^5/5 + \ldots),

    of which the terms after :math:`s^{17}` are below 3e-16. Only for normal numbers above 0; the
    log of 0 is a finite number, so that 0 log 0 is 0.
    """
    bits = _bits_of(x)
    e = (bits - _ROOT_HALF) >> _FRACTION_BITS
    m = _double_of(bits - (e << _FRACTION_BITS))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = 2 / 9 + z * (2 / 11 + z * (2 / 13 + z * (2 / 15 + z * (2 / 17))))
    tail = z * (2 / 3 + z * (2 / 5 + z * (2 / 7 + z * tail)))
    return e * _LOG_2 + (2.0 * s + s * tail)
