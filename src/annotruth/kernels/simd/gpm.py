"""GPM's two longest loops, eight numbers at once: over labels, and over cells.

In a plain loop the reliabilities of eight annotators would go through memory to become a vector,
and there wait for each other. Here they meet in a register, and so do sums kept in the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.simd.simd8 import EIGHT
from annotruth.kernels.simd.vectors import (
    DOUBLE,
    LONG,
    SHORT,
    each,
    everywhere,
    logs,
    pointers,
    prefetch,
    times_plus,
    vector_at,
)

_FRACTION, _BIAS = 52, 1023  # of a double: bits, and what is added to the exponent
# Labels ahead, whose annotators are brought into the second cache: beyond it, 4.7 ns became 3.4.
_AHEAD = 128

_ZERO, _ONE = ir.Constant(LONG, 0), ir.Constant(LONG, 1)


@contextmanager
def _some_at_once(builder: Any, first: Any, last: Any, count: int) -> Iterator[Any]:
    """Write a loop from ``first`` to ``last`` in steps of ``count``."""
    step = ir.Constant(LONG, count)
    with cgutils.for_range_slice(builder, first, last, step, inc=True) as (place, _):
        yield place


def _whole(builder: Any, first: Any, last: Any) -> Any:
    """Say where the last eight end that are complete."""
    n = builder.sub(last, first)
    return builder.add(first, builder.and_(n, ir.Constant(LONG, -EIGHT)))


def _place(builder: Any, begin: Any, lane: int) -> Any:
    return builder.add(begin, ir.Constant(LONG, lane))


def _weigh_code(
    _: Any,
    annotator: Any,
    begin: Any,
    first: Any,
    last: Any,
    people: Any,
    far: Any,
    share: Any,
    behavior: Any,
    mu: Any,
    product: Any,
    exponents: Any,
) -> Any:
    learned = isinstance(behavior, types.Array)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (
            annotator, begin, first, last, people, far, share, behavior, mu, product, exponents
        ) = pointers(context, builder, signature, args)  # fmt: skip
        n_labels = context.make_array(signature.args[0])(context, builder, args[0]).nitems

        def person(place: Any) -> Any:
            """Say where a label's annotator has two numbers: reliability, sum of mu."""
            code = builder.zext(builder.load(builder.gep(annotator, [place])), LONG)
            return builder.shl(code, _ONE)

        def weigh(first: Any, last: Any, count: int, *, fetching: bool = False) -> None:
            doubles, longs = ir.VectorType(DOUBLE, count), ir.VectorType(LONG, count)
            kept = (
                vector_at(builder, product, _ZERO, doubles),
                vector_at(builder, exponents, _ZERO, longs),
            )
            product_here, exponents_here = (
                cgutils.alloca_once_value(builder, builder.load(place, align=8)) for place in kept
            )
            with _some_at_once(builder, first, last, count) as j:
                label = builder.add(begin, j)
                who = [person(_place(builder, label, lane)) for lane in range(count)]
                eps = ir.Constant(doubles, ir.Undefined)
                for lane, place in enumerate(who):
                    one = builder.load(builder.gep(people, [place]))
                    eps = builder.insert_element(eps, one, ir.Constant(SHORT, lane))
                if fetching:
                    ahead = _place(builder, label, _AHEAD)
                    most = _place(builder, n_labels, -EIGHT)
                    ahead = builder.select(builder.icmp_signed("<", ahead, most), ahead, most)
                    for lane in range(count):
                        one = person(_place(builder, ahead, lane))
                        prefetch(builder, builder.gep(people, [one]))

                theta = builder.load(vector_at(builder, share, j, doubles), align=8)
                pi = (
                    builder.load(vector_at(builder, behavior, j, doubles), align=8)
                    if learned
                    else everywhere(builder, behavior, count)
                )
                c1 = builder.fmul(eps, theta)
                other = builder.fmul(builder.fsub(each(doubles, 1.0), eps), pi)
                p = builder.fadd(c1, other)
                serious = builder.fdiv(c1, p)
                builder.store(serious, vector_at(builder, mu, j, doubles), align=8)

                exponent, fraction = _apart(builder, p)
                more = builder.fmul(builder.load(product_here), fraction)
                builder.store(more, product_here)
                builder.store(builder.add(builder.load(exponents_here), exponent), exponents_here)

                # One after the other: eight labels may have an annotator twice.
                for lane, place in enumerate(who):
                    total = builder.gep(people, [_place(builder, place, 1)])
                    one = builder.extract_element(serious, ir.Constant(SHORT, lane))
                    builder.store(builder.fadd(builder.load(total), one), total)
            exponent, fraction = _apart(builder, builder.load(product_here))
            exponent = builder.add(builder.load(exponents_here), exponent)
            n = builder.add(builder.sdiv(builder.sub(last, first), ir.Constant(LONG, count)), _ONE)
            bias = builder.mul(n, ir.Constant(LONG, _BIAS))
            exponent = builder.sub(exponent, everywhere(builder, bias, count))
            for value, place in zip((fraction, exponent), kept, strict=True):
                builder.store(value, place, align=8)

        whole = _whole(builder, first, last)
        with builder.if_else(far) as (are_far, are_near):
            with are_far:
                weigh(first, whole, EIGHT, fetching=True)
            with are_near:
                weigh(first, whole, EIGHT)
        weigh(whole, last, 1)
        return context.get_dummy_value()

    place = types.int64
    arrays = (share, behavior, mu, product, exponents)
    return types.void(annotator, place, place, place, people, types.boolean, *arrays), code


def _apart(builder: Any, row: Any) -> tuple[Any, Any]:
    """Take normal numbers above 0 apart: exponents, too large by _BIAS, and fractions in [1, 2)."""
    longs = ir.VectorType(LONG, row.type.count)
    bits = builder.bitcast(row, longs)
    exponent = builder.lshr(bits, each(longs, _FRACTION))
    fraction = builder.and_(bits, each(longs, (1 << _FRACTION) - 1))
    fraction = builder.or_(fraction, each(longs, _BIAS << _FRACTION))
    return exponent, builder.bitcast(fraction, row.type)


def _renew_code(
    _: Any, theta: Any, first: Any, last: Any, mass: Any, total: Any, q: Any, to: Any
) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        theta, first, last, mass, total, q, to = pointers(context, builder, signature, args)

        def renew(begin: Any, end: Any, count: int) -> None:
            doubles = ir.VectorType(DOUBLE, count)
            kept = vector_at(builder, q, to, doubles)
            sum_here = cgutils.alloca_once_value(builder, builder.load(kept, align=8))
            with _some_at_once(builder, begin, end, count) as c:
                at = builder.sub(c, first)
                of_cell, of_item = (
                    builder.load(vector_at(builder, values, at, doubles), align=8)
                    for values in (mass, total)
                )
                share = builder.fdiv(of_cell, of_item)
                more = times_plus(builder, of_cell, logs(builder, share), builder.load(sum_here))
                builder.store(more, sum_here)
                builder.store(share, vector_at(builder, theta, c, doubles), align=8)
            builder.store(builder.load(sum_here), kept, align=8)

        whole = _whole(builder, first, last)
        renew(first, whole, EIGHT)
        renew(whole, last, 1)
        return context.get_dummy_value()

    place = types.int64
    return types.void(theta, place, place, mass, total, q, place), code


_Who = NDArray[np.int32]
_Pi = Floats | float
_Weigh = Callable[
    [_Who, np.uint64, int, int, Floats, bool, Floats, _Pi, Floats, Floats, Codes], None
]
weigh = cast(_Weigh, intrinsic(_weigh_code))
"""Weigh the labels ``first:last``: write mu, add it to their annotators' sums.

``weigh(annotator, begin, first, last, people, far, share, behavior, mu, product, exponents)``.
Of a label's theta, pi and mu the place is counted from label ``begin``. ``people`` has a row an
annotator, reliability and sum side by side, so that both come with one line of the cache; if
there are so many that they are ``far``, they are fetched ahead. ``product`` and ``exponents``
have eight places: a probability is m 2^x with m in [1, 2), the m are multiplied and the x added
up, so that one log serves many labels. At most a thousand labels a place, or m overflows.
"""

_Renew = Callable[[Floats, int, int, Floats, Floats, Floats, int], None]
renew = cast(_Renew, intrinsic(_renew_code))
"""Renew theta of the cells ``first:last``: mass over total, its item's.

``renew(theta, first, last, mass, total, q, to)``; mass and total begin with cell ``first``. Adds
mass log(mass / total) to the eight places of q from ``to`` on, a cell to any.
"""
