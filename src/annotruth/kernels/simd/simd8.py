"""Eight numbers at once: what the compiler does not find by itself.

Cells are short, two or three labels, and end unforeseeably: a loop over the labels of each
mispredicts its end, which costs more than the work in it. These take eight places whatever the
length and drop what is too much. The compiler turns them into whatever vectors the processor has.
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
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.vectors import DOUBLE, LONG, each, everywhere, folded, prefetch

EIGHT = 8

Offsets = NDArray[np.int64]

# Unsigned places are never negative, which spares a test at every access.
_NEXT, _EIGHT = np.uint64(1), np.uint64(EIGHT)

_FRACTION = 52  # bits of a float's fraction
_LOG_2 = math.log(2.0)
_ROOT_HALF = np.float64(math.sqrt(0.5)).view(np.int64).item()

_DOUBLES = ir.VectorType(DOUBLE, EIGHT)


def _eight_at(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
    """Point to eight numbers of an array."""
    data = context.make_array(array_type)(context, builder, array).data
    eight = ir.VectorType(data.type.pointee, EIGHT)
    return builder.bitcast(builder.gep(data, [place]), eight.as_pointer())


def _fill_eight_code(_: Any, array: Any, place: Any, value: Any) -> Any:
    """Set eight places of an array to one value."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = _eight_at(context, builder, signature.args[0], *args[:2])
        builder.store(everywhere(builder, args[2], EIGHT), target, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.uint64, array.dtype), code


def _sum_eight_code(_: Any, array: Any, place: Any, count: Any) -> Any:
    """Add up the first ``count``, all if there are more, of eight places of an array."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = _eight_at(context, builder, signature.args[0], *args[:2])
        all_, one = ir.Constant(LONG, EIGHT), ir.Constant(LONG, 1)
        count = builder.select(builder.icmp_unsigned("<", args[2], all_), args[2], all_)
        bits = builder.sub(builder.shl(one, count), one)
        counted = builder.bitcast(
            builder.trunc(bits, ir.IntType(EIGHT)), ir.VectorType(ir.IntType(1), EIGHT)
        )
        vector = builder.select(counted, builder.load(source, align=8), each(_DOUBLES, 0.0))
        return folded(builder, vector, builder.fadd)

    return types.float64(array, types.uint64, types.uint64), code


def _multiply_code(_: Any, table: Any, rows: Any, first: Any, last: Any, product: Any) -> Any:
    """Multiply eight numbers by those of the table at rows[first:last], place by place."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, rows, first, last, product = args
        of_table, of_rows, _, _, of_product = signature.args
        target = _eight_at(context, builder, of_product, product, ir.Constant(LONG, 0))
        result = cgutils.alloca_once_value(builder, builder.load(target, align=8))
        places = context.make_array(of_rows)(context, builder, rows).data
        with cgutils.for_range(builder, last, start=first) as loop:
            place = builder.load(builder.gep(places, [loop.index]))
            row = builder.load(_eight_at(context, builder, of_table, table, place), align=8)
            builder.store(builder.fmul(builder.load(result), row), result)
        builder.store(builder.load(result), target, align=8)
        return context.get_dummy_value()

    return types.void(table, rows, types.int64, types.int64, product), code


def _add_to_code(_: Any, table: Any, rows: Any, first: Any, last: Any, values: Any) -> Any:
    """Add eight numbers to those of the table at rows[first:last]."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, rows, first, last, values = args
        of_table, of_rows, _, _, of_values = signature.args
        source = _eight_at(context, builder, of_values, values, ir.Constant(LONG, 0))
        more = builder.load(source, align=8)
        places = context.make_array(of_rows)(context, builder, rows).data
        with cgutils.for_range(builder, last, start=first) as loop:
            place = builder.load(builder.gep(places, [loop.index]))
            target = _eight_at(context, builder, of_table, table, place)
            builder.store(builder.fadd(builder.load(target, align=8), more), target, align=8)
        return context.get_dummy_value()

    return types.void(table, rows, types.int64, types.int64, values), code


def _bits_of_code(_: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], LONG)

    return types.int64(types.float64), code


def _float_of_code(_: Any, bits: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], DOUBLE)

    return types.float64(types.int64), code


def _fetch_code(_: Any, array: Any, place: Any) -> Any:
    """Have one place of an array brought nearer; it may be past the end."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        prefetch(builder, builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64), code


def _word_code(_: Any, array: Any, place: Any) -> Any:
    """Read eight bytes as one number, wherever they begin."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        word = builder.bitcast(builder.gep(data, [args[1]]), LONG.as_pointer())
        return builder.load(word, align=1)

    return types.uint64(array, types.int64), code


_fill_eight = cast(Callable[[NDArray[Any], np.uint64, Any], None], intrinsic(_fill_eight_code))
_sum_eight = cast(Callable[[Floats, np.uint64, np.uint64], float], intrinsic(_sum_eight_code))
multiply = cast(Callable[[Floats, Offsets, int, int, Floats], None], intrinsic(_multiply_code))
add_to = cast(Callable[[Floats, Offsets, int, int, Floats], None], intrinsic(_add_to_code))
_bits_of = cast(Callable[[float], int], intrinsic(_bits_of_code))
_float_of = cast(Callable[[int], float], intrinsic(_float_of_code))
fetch_at = cast(Callable[[NDArray[Any], np.int64], None], intrinsic(_fetch_code))
word_at = cast(Callable[[NDArray[np.uint8], int], np.uint64], intrinsic(_word_code))


@compiled
def fill(out: NDArray[Any], begin: np.uint64, end: np.uint64, value: Any) -> None:
    """Set ``out[begin:end]``, and up to eight places after it that are yet to be set."""
    _fill_eight(out, begin, value)
    for j in range(begin + _EIGHT, end):
        out[j] = value


@compiled
def sum_of(values: Floats, begin: np.uint64, end: np.uint64) -> float:
    """Add up ``values[begin:end]``; there must be eight places after ``begin``."""
    total = _sum_eight(values, begin, end - begin)
    begin += _EIGHT
    while begin < end:
        total += _sum_eight(values, begin, end - begin)
        begin += _EIGHT
    return total


@compiled
def spread(ptr: Offsets, lo: int, hi: int, values: NDArray[Any], out: NDArray[Any]) -> None:
    """Give the labels of cells ``lo:hi`` their cell's value; ``out`` begins with the first label."""
    base, begin = np.uint64(ptr[lo]), np.uint64(0)
    for c in range(np.uint64(lo), np.uint64(hi)):
        end = np.uint64(ptr[c + _NEXT]) - base
        fill(out, begin, end, values[c])
        begin = end


@compiled
def sums(ptr: Offsets, lo: int, hi: int, values: Floats, out: Floats) -> None:
    """Add up the values of the labels of each cell in ``lo:hi``, of which the first comes first."""
    base, first, begin = np.uint64(ptr[lo]), np.uint64(lo), np.uint64(0)
    for c in range(first, np.uint64(hi)):
        end = np.uint64(ptr[c + _NEXT]) - base
        out[c - first] = sum_of(values, begin, end)
        begin = end


@compiled
def log(x: float) -> float:
    r"""Return log x to 1e-15, without a branch or a call, so that a loop of it becomes vectors.

    With :math:`x = m 2^e`, m between the roots of 1/2 and of 2, and :math:`s = (m-1)/(m+1)`,

    .. math:: \log x = e \log 2 + 2 (s + s^3/3 + s^5/5 + \ldots),

    of which the terms after :math:`s^{17}` are below 3e-16. Only for normal numbers above 0; of
    0 it makes something finite, so that 0 log 0 is 0.
    """
    bits = _bits_of(x)
    e = (bits - _ROOT_HALF) >> _FRACTION
    m = _float_of(bits - (e << _FRACTION))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = 2 / 9 + z * (2 / 11 + z * (2 / 13 + z * (2 / 15 + z * (2 / 17))))
    tail = z * (2 / 3 + z * (2 / 5 + z * (2 / 7 + z * tail)))
    return e * _LOG_2 + (2.0 * s + s * tail)
