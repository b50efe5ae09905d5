"""Rows of 32 numbers at once: what the compiler does not find by itself.

It takes a loop over 32 places apart into single numbers, or tests each time whether arrays overlap.
These are written in vectors of 32, which become whatever vectors the processor has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from annotruth.kernels.arrays import Floats, Singles
from annotruth.kernels.simd.simd8 import Offsets
from annotruth.kernels.simd.vectors import (
    DOUBLE,
    FUSED,
    SHORT,
    SINGLE,
    each,
    everywhere,
    folded,
    logs,
    times_plus,
)

WIDE = 32

_SINGLES = ir.VectorType(SINGLE, WIDE)
_DOUBLES = ir.VectorType(DOUBLE, WIDE)
_INTS = ir.VectorType(SHORT, WIDE)

# Of an exponential: x = n log 2 + r, with log 2 in two pieces, of which n times the first is exact.
_LOWEST = -87.0  # below it is no normal number
_HALF_WAY = 1.5 * 2.0**23  # added to a single, leaves it whole, in its last bits
_FRACTION = 23  # bits of a single's fraction
_LOG_2_HIGH = 355 / 512
_LOG_2_LOW = math.log(2.0) - _LOG_2_HIGH
_TERMS = 7  # of the series, enough for |r| < log 2 / 2


def _row_at(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
    """Point to 32 numbers of an array."""
    data = context.make_array(array_type)(context, builder, array).data
    kind = _SINGLES if array_type.dtype == types.float32 else _DOUBLES
    return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())


def _read(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
    row = _row_at(context, builder, array_type, array, place)
    return builder.load(row, align=array_type.dtype.bitwidth // 8)


def _write(context: Any, builder: Any, array_type: Any, array: Any, place: Any, row: Any) -> None:
    target = _row_at(context, builder, array_type, array, place)
    builder.store(row, target, align=array_type.dtype.bitwidth // 8)


def _number_in(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.load(builder.gep(data, [place]))


def _each(value: float) -> Any:
    """Put one constant into all places of a row of singles."""
    return each(_SINGLES, value)


def _exponentials(builder: Any, row: Any) -> Any:
    """Take exp of singles, none above 0, to 1e-7."""
    x = builder.select(builder.fcmp_ordered(">", row, _each(_LOWEST)), row, _each(_LOWEST))
    shifted = times_plus(builder, x, _each(1.0 / math.log(2.0)), _each(_HALF_WAY))
    n = builder.fsub(shifted, _each(_HALF_WAY))
    r = times_plus(builder, n, _each(-_LOG_2_HIGH), x)
    r = times_plus(builder, n, _each(-_LOG_2_LOW), r)
    series = _each(1.0 / math.factorial(_TERMS))
    for term in range(_TERMS - 1, -1, -1):
        series = times_plus(builder, series, r, _each(1.0 / math.factorial(term)))
    power = builder.shl(builder.bitcast(shifted, _INTS), each(_INTS, _FRACTION))
    return builder.bitcast(builder.add(builder.bitcast(series, _INTS), power), _SINGLES)


def _add_up_code(
    _: Any, begin: Any, at: Any, table: Any, rows: Any, first: Any, last: Any, sums: Any, to: Any
) -> Any:
    """Set sums[to:] to begin[at:] and the rows of the table at rows[first:last], all singles."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        begin, at, table, rows, first, last, sums, to = args
        of_begin, _, of_table, of_rows, _, _, of_sums, _ = signature.args
        total = cgutils.alloca_once_value(builder, _read(context, builder, of_begin, begin, at))
        with cgutils.for_range(builder, last, start=first) as loop:
            place = _number_in(context, builder, of_rows, rows, loop.index)
            row = _read(context, builder, of_table, table, place)
            builder.store(builder.fadd(builder.load(total), row), total)
        _write(context, builder, of_sums, sums, to, builder.load(total))
        return context.get_dummy_value()

    place = types.int64
    return types.void(begin, place, table, rows, place, place, sums, place), code


def _add_weighed_code(
    _: Any, table: Any, rows: Any, at: Any, weights: Any, n: Any, sums: Any, to: Any
) -> Any:
    """Add to sums[to:] the table's rows at rows[:n] + at, each by its weight, all singles."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, rows, at, weights, n, sums, to = args
        of_table, of_rows, _, of_weights, _, of_sums, _ = signature.args
        total = cgutils.alloca_once_value(builder, _read(context, builder, of_sums, sums, to))
        with cgutils.for_range(builder, n) as loop:
            place = builder.add(_number_in(context, builder, of_rows, rows, loop.index), at)
            row = _read(context, builder, of_table, table, place)
            weight = _number_in(context, builder, of_weights, weights, loop.index)
            more = builder.fmul(row, everywhere(builder, weight, WIDE), flags=FUSED)
            builder.store(builder.fadd(builder.load(total), more, flags=FUSED), total)
        _write(context, builder, of_sums, sums, to, builder.load(total))
        return context.get_dummy_value()

    place = types.int64
    return types.void(table, rows, place, weights, place, sums, place), code


def _largest_code(_: Any, values: Any, at: Any) -> Any:
    """Return the largest of the singles values[at:]."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def larger(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        return folded(builder, _read(context, builder, signature.args[0], *args), larger)

    return types.float32(values, types.int64), code


def _exponentials_code(_: Any, values: Any, at: Any, top: Any) -> Any:
    """Put exp(x - top) in place of the singles values[at:], none above top; return their sum."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, at, top = args
        row = _read(context, builder, signature.args[0], values, at)
        row = _exponentials(builder, builder.fsub(row, everywhere(builder, top, WIDE)))
        _write(context, builder, signature.args[0], values, at, row)
        return folded(builder, row, builder.fadd)

    return types.float32(values, types.int64, types.float32), code


def _logarithms_code(_: Any, values: Any, at: Any) -> Any:
    """Put logs in place of the singles values[at:]; of 0 it makes something finite."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = logs(builder, _read(context, builder, signature.args[0], *args))
        _write(context, builder, signature.args[0], args[0], args[1], row)
        return context.get_dummy_value()

    return types.void(values, types.int64), code


def _scale_code(_: Any, values: Any, at: Any, by: Any) -> Any:
    """Multiply the singles values[at:]."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, at, by = args
        row = _read(context, builder, signature.args[0], values, at)
        row = builder.fmul(row, everywhere(builder, by, WIDE))
        _write(context, builder, signature.args[0], values, at, row)
        return context.get_dummy_value()

    return types.void(values, types.int64, types.float32), code


def _add_to_code(_: Any, table: Any, rows: Any, first: Any, last: Any, row: Any, at: Any) -> Any:
    """Add the singles row[at:] to the rows of the table, of either precision, at rows[first:last]."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, rows, first, last, row, at = args
        of_table, of_rows, _, _, of_row, _ = signature.args
        more = _read(context, builder, of_row, row, at)
        if of_table.dtype == types.float64:
            more = builder.fpext(more, _DOUBLES)
        with cgutils.for_range(builder, last, start=first) as loop:
            place = _number_in(context, builder, of_rows, rows, loop.index)
            old = _read(context, builder, of_table, table, place)
            _write(context, builder, of_table, table, place, builder.fadd(old, more))
        return context.get_dummy_value()

    place = types.int64
    return types.void(table, rows, place, place, row, place), code


add_up = cast(
    Callable[[Singles, int, Singles, Offsets, int, int, Singles, int], None],
    intrinsic(_add_up_code),
)
add_weighed = cast(
    Callable[[Singles, Offsets, int, Singles, int, Singles, int], None],
    intrinsic(_add_weighed_code),
)
largest = cast(Callable[[Singles, int], np.float32], intrinsic(_largest_code))
exponentials = cast(Callable[[Singles, int, np.float32], np.float32], intrinsic(_exponentials_code))
logarithms = cast(Callable[[Singles, int], None], intrinsic(_logarithms_code))
scale = cast(Callable[[Singles, int, np.float32], None], intrinsic(_scale_code))
add_to = cast(
    Callable[[Floats | Singles, Offsets, int, int, Singles, int], None], intrinsic(_add_to_code)
)
