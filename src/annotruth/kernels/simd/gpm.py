"""The two longest loops of GPM's step, eight numbers at once: over labels and over cells.

In a plain loop the reliabilities of eight annotators pass through memory to become a vector, and
sums kept in a loop wait there for each other. Here they are kept in registers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.simd import SIMD8
from annotruth.kernels.simd.llvm import DOUBLE, INT64, Array, Code, Value, lowered_by

# How many labels ahead annotators are prefetched: with 10 million labels of 50,000 annotators, this
# takes a quarter less time.
_AHEAD = 128

_BIAS = 1023  # what the exponent of a double is too large by, as it is stored
_FRACTION_BITS = 52
_ROOT_HALF = np.float64(math.sqrt(0.5)).view(np.int64).item()
_ODD_TERMS = 8  # of the series of the log, after the first


def _log(x: Value) -> Value:
    """Return the log of normal doubles above 0, as `annotruth.kernels.simd.simd8.log` does."""
    bits = x.bitcast(INT64)
    exponent = (bits - _ROOT_HALF) >> _FRACTION_BITS
    m = (bits - (exponent << _FRACTION_BITS)).bitcast(DOUBLE)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = z.times_plus(2.0 / (2 * _ODD_TERMS + 1), 2.0 / (2 * _ODD_TERMS - 1))
    for term in range(_ODD_TERMS - 2, -1, -1):
        series = series.times_plus(z, 2.0 / (2 * term + 1))
    powers = exponent.to_float(DOUBLE).contracted_times(math.log(2.0))
    return s.times_plus(series, powers)


def _split_exponent(x: Value) -> tuple[Value, Value]:
    """Split normal doubles above 0 into exponents, too large by `_BIAS`, and numbers in [1, 2)."""
    bits = x.bitcast(INT64)
    fraction = (bits & ((1 << _FRACTION_BITS) - 1)) | (_BIAS << _FRACTION_BITS)
    return bits.unsigned_shift(_FRACTION_BITS), fraction.bitcast(DOUBLE)


def _write_e_step(
    code: Code,
    annotator: Array,
    begin: Value,
    first: Value,
    last: Value,
    by_annotator: Array,
    far: Value,
    theta: Array,
    pi: Array | Value,
    mu: Array,
    product: Array,
    exponents: Array,
) -> None:
    def row_of(label: Value) -> Value:
        """Return where the two numbers of a label's annotator begin."""
        return annotator.load(label).to_int64() << 1

    def write_loop(first: Value, last: Value, count: int, *, prefetching: bool = False) -> None:
        products = code.variable(product.load(0, count))
        exponent_sums = code.variable(exponents.load(0, count))
        with code.loop(first, last, count) as j:
            label = begin + j
            rows = [row_of(label + place) for place in range(count)]
            eps = code.empty(by_annotator.element, count)
            for place, row in enumerate(rows):
                eps = eps.insert(place, by_annotator.load(row))
            if prefetching:
                ahead = (label + _AHEAD).minimum_signed(annotator.size - SIMD8)
                for place in range(count):
                    by_annotator.prefetch(row_of(ahead + place))

            serious = eps * theta.load(j, count)
            behavior = pi.load(j, count) if isinstance(pi, Array) else pi.broadcast(count)
            p = serious + (1.0 - eps) * behavior
            responsibility = serious / p
            mu.store(j, responsibility)

            exponent, fraction = _split_exponent(p)
            products.set(products.get() * fraction)
            exponent_sums.set(exponent_sums.get() + exponent)

            # One after the other: eight labels may have the same annotator twice.
            for place, row in enumerate(rows):
                total = row + 1
                by_annotator.store(total, by_annotator.load(total) + responsibility.extract(place))
        exponent, fraction = _split_exponent(products.get())
        bias = ((last - first) // count + 1) * _BIAS
        product.store(0, fraction)
        exponents.store(0, exponent_sums.get() + exponent - bias.broadcast(count))

    middle = _last_whole_vector(first, last)
    with code.if_else(far) as (are_far, are_near):
        with are_far:
            write_loop(first, middle, SIMD8, prefetching=True)
        with are_near:
            write_loop(first, middle, SIMD8)
    write_loop(middle, last, 1)


@lowered_by(_write_e_step)
def e_step(
    annotator: NDArray[np.int32],
    begin: np.uint64,
    first: int,
    last: int,
    by_annotator: Floats,
    far: bool,
    theta: Floats,
    pi: Floats | float,
    mu: Floats,
    product: Floats,
    exponents: Codes,
) -> None:
    """Write mu of the labels ``first:last`` and add it to their annotators' sums.

    The theta, pi and mu of a label are at its index counted from label ``begin``. ``by_annotator``
    has one row per annotator, reliability and sum of mu, so that one cache line holds both; if
    there are so many annotators that they are ``far``, they are prefetched.

    The log-likelihood is in ``product`` and ``exponents``, of eight places each. A probability is
    m 2^x with m in [1, 2); the m are multiplied and the x added up, so that one log serves many
    labels. At most a thousand labels per place and call, or the product of the m overflows.
    """
    for j in range(first, last):
        row = by_annotator[annotator[int(begin) + j]]
        serious = row[0] * theta[j]
        p = serious + (1.0 - row[0]) * (pi if isinstance(pi, float) else pi[j])
        mu[j] = serious / p
        row[1] += mu[j]
        place = (j - first) % SIMD8
        fraction, exponent = np.frexp(product[place] * p)
        product[place] = 2.0 * fraction
        exponents[place] += exponent - 1


def _write_m_step(
    code: Code,
    theta: Array,
    first: Value,
    last: Value,
    mass: Array,
    total: Array,
    q: Array,
    to: Value,
) -> None:
    def write_loop(begin: Value, end: Value, count: int) -> None:
        q_sums = code.variable(q.load(to, count))
        with code.loop(begin, end, count) as c:
            cell_mass, item_mass = (values.load(c - first, count) for values in (mass, total))
            share = cell_mass / item_mass
            q_sums.set(cell_mass.times_plus(_log(share), q_sums.get()))
            theta.store(c, share)
        q.store(to, q_sums.get())

    middle = _last_whole_vector(first, last)
    write_loop(first, middle, SIMD8)
    write_loop(middle, last, 1)


@lowered_by(_write_m_step)
def m_step(
    theta: Floats, first: int, last: int, mass: Floats, total: Floats, q: Floats, to: int
) -> None:
    """Set theta of the cells ``first:last`` to their mass over the total of their item.

    ``mass`` and ``total`` begin with cell ``first``. Adds mass log(mass / total) to ``q``, that of
    each cell to any of the eight places from ``to`` on.
    """
    n = last - first
    theta[first:last] = mass[:n] / total[:n]
    known = theta[first:last] > 0.0
    q[to] += (mass[:n] * np.log(np.where(known, theta[first:last], 1.0))).sum()


def _last_whole_vector(first: Value, last: Value) -> Value:
    """Return where the last complete vector ends."""
    return first + ((last - first) & -SIMD8)
