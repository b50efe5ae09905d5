"""Operations on rows of 32 numbers at once, most of them singles.

The compiler splits a loop over 32 places into single numbers, or tests at each call whether arrays
overlap. These functions are written in vectors of 32. A row begins at an index of a flat array.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats, Singles
from annotruth.kernels.simd import SIMD32, vectors
from annotruth.kernels.simd.llvm import DOUBLE, Array, Code, Value, lowered_by
from annotruth.kernels.simd.simd8 import Offsets


def _write_sum_rows(
    code: Code,
    start: Array,
    at: Value,
    table: Array,
    rows: Array,
    first: Value,
    last: Value,
    sums: Array,
    to: Value,
) -> None:
    total = code.variable(start.load(at, SIMD32))
    with code.loop(first, last) as j:
        total.set(total.get() + table.load(rows.load(j), SIMD32))
    sums.store(to, total.get())


@lowered_by(_write_sum_rows)
def sum_rows(
    start: Singles,
    at: int,
    table: Singles,
    rows: Offsets,
    first: int,
    last: int,
    sums: Singles,
    to: int,
) -> None:
    """Set row ``to`` of sums to row ``at`` of start plus the table's ``rows[first:last]``."""
    sums[to : to + SIMD32] = start[at : at + SIMD32]
    for row in rows[first:last]:
        sums[to : to + SIMD32] += table[row : row + SIMD32]


def _write_add_weighted_rows(
    code: Code,
    table: Array,
    rows: Array,
    offset: Value,
    weights: Array,
    n: Value,
    sums: Array,
    to: Value,
) -> None:
    total = code.variable(sums.load(to, SIMD32))
    with code.loop(0, n) as i:
        row = table.load(rows.load(i) + offset, SIMD32)
        total.set(row.times_plus(weights.load(i).broadcast(SIMD32), total.get()))
    sums.store(to, total.get())


@lowered_by(_write_add_weighted_rows)
def add_weighted_rows(
    table: Singles,
    rows: Offsets,
    offset: int,
    weights: Singles,
    n: int,
    sums: Singles,
    to: int,
) -> None:
    """Add the table's ``rows[:n] + offset``, each times its weight, to row ``to`` of sums."""
    for row, weight in zip(rows[:n] + offset, weights, strict=False):
        sums[to : to + SIMD32] += weight * table[row : row + SIMD32]


def _write_largest(code: Code, values: Array, at: Value) -> Value:
    return values.load(at, SIMD32).reduce(Value.maximum)


@lowered_by(_write_largest)
def largest(values: Singles, at: int) -> np.float32:
    """Return the largest number of a row."""
    return np.float32(values[at : at + SIMD32].max())


def _write_exp_and_sum(code: Code, values: Array, at: Value, top: Value) -> Value:
    row = vectors.exp(values.load(at, SIMD32) - top.broadcast(SIMD32))
    values.store(at, row)
    return row.reduce(Value.__add__)


@lowered_by(_write_exp_and_sum)
def exp_and_sum(values: Singles, at: int, top: np.float32) -> np.float32:
    """Replace each x of a row by exp(x - top), where none is above top; return the sum."""
    row = values[at : at + SIMD32]
    row[:] = np.exp(row - top)
    return np.float32(row.sum())


def _write_log_row(code: Code, values: Array, at: Value) -> None:
    values.store(at, vectors.log(values.load(at, SIMD32)))


@lowered_by(_write_log_row)
def log_row(values: Singles, at: int) -> None:
    """Replace the numbers of a row by their logs; the log of 0 is a finite number."""
    row = values[at : at + SIMD32]
    row[:] = np.log(np.maximum(row, np.finfo(np.float32).tiny))


def _write_scale_row(code: Code, values: Array, at: Value, factor: Value) -> None:
    values.store(at, values.load(at, SIMD32) * factor.broadcast(SIMD32))


@lowered_by(_write_scale_row)
def scale_row(values: Singles, at: int, factor: np.float32) -> None:
    """Multiply a row by a number."""
    values[at : at + SIMD32] *= factor


def _write_add_to_rows(
    code: Code, table: Array, rows: Array, first: Value, last: Value, values: Array, at: Value
) -> None:
    more = values.load(at, SIMD32)
    if table.element == DOUBLE:
        more = more.to_double()
    with code.loop(first, last) as j:
        row = rows.load(j)
        table.store(row, table.load(row, SIMD32) + more)


@lowered_by(_write_add_to_rows)
def add_to_rows(
    table: Floats | Singles, rows: Offsets, first: int, last: int, values: Singles, at: int
) -> None:
    """Add row ``at`` of the values to the table's ``rows[first:last]``, of either precision."""
    for row in rows[first:last]:
        table[row : row + SIMD32] += values[at : at + SIMD32]
