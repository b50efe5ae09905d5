"""Rows of four to eight numbers, read as two vectors of four that overlap if there are fewer than eight.

Rows then need no padding, which would make tables larger than the caches, and nothing is read or
written past their end. A row of five is a vector and a number, which is never in two cache lines.
Where each row begins is an integer in the bytes of a float.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.simd.llvm import INT64, Array, Code, Value, lowered_by

MIN_WIDTH, MAX_WIDTH = 4, 8
"""The shortest and the longest row."""

_FOUR = 4  # numbers of a vector


def _write_for_width(
    code: Code, width: Value, write_loop: Callable[[Value | int, int | None], None]
) -> None:
    """Write a loop twice: the second part of a row is the number at 4, or a vector that ends the row.

    ``write_loop`` gets the place of the second part and its length, None for a number.
    """
    with code.if_else(width.is_equal(_FOUR + 1)) as (is_five, is_other):
        with is_five:
            write_loop(_FOUR, None)
        with is_other:
            write_loop(width - _FOUR, _FOUR)


def _write_row_start(code: Code, rows: Array, j: Value) -> Value:
    return rows.load_as(j, INT64)


@lowered_by(_write_row_start)
def row_start(rows: Floats, j: int) -> np.uint64:
    """Return where a row begins."""
    return np.uint64(rows.view(np.uint64)[j])


def _write_set_row_start(code: Code, rows: Array, j: Value, start: Value) -> None:
    rows.store(j, start)


@lowered_by(_write_set_row_start)
def set_row_start(rows: Floats, j: int, start: int) -> None:
    """Write where a row begins."""
    rows.view(np.uint64)[j] = start


def _write_row_entry(code: Code, table: Array, rows: Array, j: Value, k: Value) -> Value:
    return table.load(rows.load_as(j, INT64) + k)


@lowered_by(_write_row_entry)
def row_entry(table: Floats, rows: Floats, j: int, k: int) -> float:
    """Return one number of a row of a table."""
    return float(table.ravel()[rows.view(np.int64)[j] + k])


def _write_multiply(
    code: Code,
    table: Array,
    rows: Array,
    first: Value,
    last: Value,
    width: Value,
    begin: Array,
    products: Array,
    at: Value,
) -> None:
    def write_loop(second: Value | int, count: int | None) -> None:
        low, high = code.variable(begin.load(0, _FOUR)), code.variable(begin.load(second, count))
        with code.loop(first, last) as j:
            row = rows.load_as(j, INT64)
            low.set(low.get() * table.load(row, _FOUR))
            high.set(high.get() * table.load(row + second, count))
        products.store(at, low.get())
        products.store(at + second, high.get())

    _write_for_width(code, width, write_loop)


@lowered_by(_write_multiply)
def multiply_short_rows(
    table: Floats,
    rows: Floats,
    first: int,
    last: int,
    width: int,
    begin: Floats,
    products: Floats,
    at: int,
) -> None:
    """Write ``begin`` times the table's rows that begin at ``rows[first:last]``, from ``at`` on."""
    products[at : at + width] = begin[:width]
    for row in rows.view(np.uint64)[first:last]:
        products[at : at + width] *= table[row : row + np.uint64(width)]


def _write_sum(code: Code, values: Array, at: Value, width: Value) -> Value:
    low, rest = values.load(at, _FOUR), values.load(at + _FOUR, _FOUR).first(width - _FOUR)
    return (low + rest).reduce(Value.__add__)


@lowered_by(_write_sum)
def sum_short_row(values: Floats, at: int, width: int) -> float:
    """Return the sum of ``width`` numbers; there must be eight places from ``at`` on."""
    return float(values[at : at + width].sum())


def _write_scale(
    code: Code, values: Array, at: Value, width: Value, factor: Value, totals: Array
) -> None:
    second = at + width - _FOUR
    by = factor.broadcast(_FOUR)
    low, high = values.load(at, _FOUR) * by, values.load(second, _FOUR) * by
    values.store(at, low)
    values.store(second, high)
    totals.store(0, totals.load(0, _FOUR) + low)
    totals.store(_FOUR, totals.load(_FOUR, _FOUR) + high)


@lowered_by(_write_scale)
def scale_short_row(values: Floats, at: int, width: int, factor: float, totals: Floats) -> None:
    """Multiply ``width`` numbers by a factor, and add them to the totals.

    ``totals`` has eight places: the first four numbers, then the last four.
    """
    row = values[at : at + width]
    row *= factor
    totals[:_FOUR] += row[:_FOUR]
    totals[_FOUR : 2 * _FOUR] += row[-_FOUR:]


def _write_add(
    code: Code,
    table: Array,
    rows: Array,
    first: Value,
    last: Value,
    width: Value,
    values: Array,
    at: Value,
) -> None:
    def write_loop(second: Value | int, count: int | None) -> None:
        low, high = values.load(at, _FOUR), values.load(at + second, count)
        with code.loop(first, last) as j:
            row = rows.load_as(j, INT64)
            # Both are read before either is written: what they share gets the same sum twice.
            new_low, new_high = table.load(row, _FOUR) + low, table.load(row + second, count) + high
            table.store(row, new_low)
            table.store(row + second, new_high)

    _write_for_width(code, width, write_loop)


@lowered_by(_write_add)
def add_to_short_rows(
    table: Floats, rows: Floats, first: int, last: int, width: int, values: Floats, at: int
) -> None:
    """Add ``width`` numbers from ``at`` on to the table's rows that begin at ``rows[first:last]``."""
    for row in rows.view(np.uint64)[first:last]:
        table[row : row + np.uint64(width)] += values[at : at + width]
