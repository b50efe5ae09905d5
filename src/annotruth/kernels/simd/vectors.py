"""LazyTable of machine code on vectors, of any length: what the kernels written in them share.

They work on a builder of such code and become whatever vectors the processor has.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

LONG, SHORT = ir.IntType(64), ir.IntType(32)
DOUBLE, SINGLE = ir.DoubleType(), ir.FloatType()
FUSED = ("contract",)  # a * b + c may be rounded once


class _Precision(NamedTuple):
    """How a float is built, and how many terms of a series its log takes."""

    whole: Any  # whole numbers of the same size
    fraction: int  # bits
    root_half: int  # the bits of the root of 1/2
    odd_terms: int  # after the first


_PRECISION = {
    SINGLE: _Precision(SHORT, 23, np.float32(math.sqrt(0.5)).view(np.int32).item(), 4),
    DOUBLE: _Precision(LONG, 52, np.float64(math.sqrt(0.5)).view(np.int64).item(), 8),
}


def pointers(context: Any, builder: Any, signature: Any, args: Any) -> list[Any]:
    """Replace arrays among the arguments by where their numbers begin."""
    return [
        context.make_array(kind)(context, builder, value).data
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(signature.args, args, strict=True)
    ]


def vector_at(builder: Any, data: Any, place: Any, kind: Any) -> Any:
    """Point to a vector of numbers."""
    return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())


def prefetch(builder: Any, place: Any) -> None:
    """Have the numbers at a place brought into the second cache; it may be past the end."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, SHORT, SHORT, SHORT])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    how = [ir.Constant(SHORT, value) for value in (0, 2, 1)]  # to read, again soon, data
    builder.call(fetch, [builder.bitcast(place, byte), *how])


def each(kind: Any, value: float) -> Any:
    """Put one constant into all places."""
    if kind.element == SINGLE:
        value = float(np.float32(value))
    return ir.Constant(kind, [value] * kind.count)


def everywhere(builder: Any, value: Any, count: int) -> Any:
    """Put one value into all of ``count`` places."""
    row = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    row = builder.insert_element(row, value, ir.Constant(SHORT, 0))
    return builder.shuffle_vector(row, row, each(ir.VectorType(SHORT, count), 0))


def folded(builder: Any, row: Any, fold: Any) -> Any:
    """Fold one half onto the other until one number is left."""
    half = row.type.count // 2
    while half:
        low, high = (
            ir.Constant(ir.VectorType(SHORT, half), list(range(start, start + half)))
            for start in (0, half)
        )
        row = fold(builder.shuffle_vector(row, row, low), builder.shuffle_vector(row, row, high))
        half //= 2
    return builder.extract_element(row, ir.Constant(SHORT, 0))


def times_plus(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, rounded once where the processor can."""
    return builder.fadd(builder.fmul(a, b, flags=FUSED), c, flags=FUSED)


def logs(builder: Any, row: Any) -> Any:
    r"""Take log of normal numbers above 0: of singles to 1e-7, of doubles to 1e-15.

    With :math:`x = m 2^e`, m between the roots of 1/2 and of 2, and :math:`s = (m-1)/(m+1)`, it is
    :math:`e \log 2 + 2 (s + s^3/3 + s^5/5 + \ldots)`. Of 0 it makes something finite.
    """
    kind = row.type
    of = _PRECISION[kind.element]
    wholes = ir.VectorType(of.whole, kind.count)
    bits = builder.bitcast(row, wholes)
    e = builder.ashr(builder.sub(bits, each(wholes, of.root_half)), each(wholes, of.fraction))
    m = builder.bitcast(builder.sub(bits, builder.shl(e, each(wholes, of.fraction))), kind)
    s = builder.fdiv(builder.fsub(m, each(kind, 1.0)), builder.fadd(m, each(kind, 1.0)))
    z = builder.fmul(s, s)
    series = each(kind, 2.0 / (2 * of.odd_terms + 1))
    for term in range(of.odd_terms - 1, -1, -1):
        series = times_plus(builder, series, z, each(kind, 2.0 / (2 * term + 1)))
    powers = builder.fmul(builder.sitofp(e, kind), each(kind, math.log(2.0)), flags=FUSED)
    return times_plus(builder, s, series, powers)
