"""Rows of 32 numbers at once: what the compiler does not find by itself.

It takes a loop over 32 places apart into single numbers, or tests each time whether arrays overlap.
These are written in vectors of 32, which become whatever vectors the processor has.

Machine code is kept by the file of the kernel that uses it: after a change here, touch that file.
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

from annotruth.arrays import Floats, Singles
from annotruth.kernels.lanes import Offsets

WIDE = 32

_BITS = ir.IntType(32)
_SINGLES = ir.VectorType(ir.FloatType(), WIDE)
_DOUBLES = ir.VectorType(ir.DoubleType(), WIDE)
_INTS = ir.VectorType(_BITS, WIDE)
_FUSED = ("contract",)  # a * b + c may be rounded once

# Of an exponential: x = n log 2 + r, with log 2 in two pieces, of which n times the first is exact.
_LOWEST = -87.0  # below it is no normal number
_HALF_WAY = 1.5 * 2.0**23  # added to a single, leaves it whole, in its last bits
_FRACTION = 23  # bits of a single's fraction
_LOG_2_HIGH = 355 / 512
_LOG_2_LOW = math.log(2.0) - _LOG_2_HIGH
_TERMS = 7  # of the series, enough for |r| < log 2 / 2

# Of a logarithm.
_ROOT_HALF = np.float32(math.sqrt(0.5)).view(np.int32).item()
_ODD_TERMS = 4  # of the series after the first


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


def _all(kind: Any, value: float) -> Any:
    """Put one constant into all places."""
    return ir.Constant(kind, [value] * WIDE)


def _everywhere(builder: Any, value: Any) -> Any:
    """Put one value into all places."""
    row = ir.Constant(ir.VectorType(value.type, WIDE), ir.Undefined)
    row = builder.insert_element(row, value, ir.Constant(_BITS, 0))
    return builder.shuffle_vector(row, row, _all(_INTS, 0))


def _folded(builder: Any, row: Any, fold: Callable[[Any, Any], Any]) -> Any:
    """Fold one half onto the other until one number is left."""
    half = WIDE // 2
    while half:
        low, high = (
            ir.Constant(ir.VectorType(_BITS, half), list(range(start, start + half)))
            for start in (0, half)
        )
        row = fold(builder.shuffle_vector(row, row, low), builder.shuffle_vector(row, row, high))
        half //= 2
    return builder.extract_element(row, ir.Constant(_BITS, 0))


def _each(value: float) -> Any:
    """Put one constant into all places of a row of singles."""
    return _all(_SINGLES, float(np.float32(value)))


def _times_plus(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)


def _exponentials(builder: Any, row: Any) -> Any:
    """Take exp of singles, none above 0, to 1e-7."""
    x = builder.select(builder.fcmp_ordered(">", row, _each(_LOWEST)), row, _each(_LOWEST))
    shifted = _times_plus(builder, x, _each(1.0 / math.log(2.0)), _each(_HALF_WAY))
    n = builder.fsub(shifted, _each(_HALF_WAY))
    r = _times_plus(builder, n, _each(-_LOG_2_HIGH), x)
    r = _times_plus(builder, n, _each(-_LOG_2_LOW), r)
    series = _each(1.0 / math.factorial(_TERMS))
    for term in range(_TERMS - 1, -1, -1):
        series = _times_plus(builder, series, r, _each(1.0 / math.factorial(term)))
    power = builder.shl(builder.bitcast(shifted, _INTS), _all(_INTS, _FRACTION))
    return builder.bitcast(builder.add(builder.bitcast(series, _INTS), power), _SINGLES)


def _logarithms(builder: Any, row: Any) -> Any:
    r"""Take log of normal singles above 0, to 1e-7.

    With :math:`x = m 2^e`, m between the roots of 1/2 and of 2, and :math:`s = (m-1)/(m+1)`, it is
    :math:`e \log 2 + 2 (s + s^3/3 + s^5/5 + \ldots)`.
    """
    bits = builder.bitcast(row, _INTS)
    e = builder.ashr(builder.sub(bits, _all(_INTS, _ROOT_HALF)), _all(_INTS, _FRACTION))
    m = builder.bitcast(builder.sub(bits, builder.shl(e, _all(_INTS, _FRACTION))), _SINGLES)
    s = builder.fdiv(builder.fsub(m, _each(1.0)), builder.fadd(m, _each(1.0)))
    z = builder.fmul(s, s)
    series = _each(2.0 / (2 * _ODD_TERMS + 1))
    for term in range(_ODD_TERMS - 1, -1, -1):
        series = _times_plus(builder, series, z, _each(2.0 / (2 * term + 1)))
    powers = builder.fmul(builder.sitofp(e, _SINGLES), _each(math.log(2.0)), flags=_FUSED)
    return _times_plus(builder, s, series, powers)


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
            more = builder.fmul(row, _everywhere(builder, weight), flags=_FUSED)
            builder.store(builder.fadd(builder.load(total), more, flags=_FUSED), total)
        _write(context, builder, of_sums, sums, to, builder.load(total))
        return context.get_dummy_value()

    place = types.int64
    return types.void(table, rows, place, weights, place, sums, place), code


def _largest_code(_: Any, values: Any, at: Any) -> Any:
    """Return the largest of the singles values[at:]."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def larger(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        return _folded(builder, _read(context, builder, signature.args[0], *args), larger)

    return types.float32(values, types.int64), code


def _exponentials_code(_: Any, values: Any, at: Any, top: Any) -> Any:
    """Put exp(x - top) in place of the singles values[at:], none above top; return their sum."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, at, top = args
        row = _read(context, builder, signature.args[0], values, at)
        row = _exponentials(builder, builder.fsub(row, _everywhere(builder, top)))
        _write(context, builder, signature.args[0], values, at, row)
        return _folded(builder, row, builder.fadd)

    return types.float32(values, types.int64, types.float32), code


def _logarithms_code(_: Any, values: Any, at: Any) -> Any:
    """Put logs in place of the singles values[at:]; of 0 it makes something finite."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _logarithms(builder, _read(context, builder, signature.args[0], *args))
        _write(context, builder, signature.args[0], args[0], args[1], row)
        return context.get_dummy_value()

    return types.void(values, types.int64), code


def _scale_code(_: Any, values: Any, at: Any, by: Any) -> Any:
    """Multiply the singles values[at:]."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, at, by = args
        row = _read(context, builder, signature.args[0], values, at)
        row = builder.fmul(row, _everywhere(builder, by))
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
