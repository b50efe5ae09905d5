"""Functions of vectors that processors have no instruction for."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from annotruth.kernels.simd.llvm import DOUBLE, INT32, INT64, SINGLE, Value

# exp x = 2^n exp r with x = n log 2 + r. The first part of log 2 is so short that n times it is exact.
_LOG_2_HIGH = 355 / 512
_LOG_2_LOW = math.log(2.0) - _LOG_2_HIGH
_EXP_LOWEST = -87.0  # below it exp x is not a normal single
_EXP_TERMS = 7  # of the series, enough for |r| < log 2 / 2
_ROUNDING = 1.5 * 2.0**23  # added to a single, leaves it rounded to a whole number in its last bits

DOUBLE_BIAS = 1023
"""What the exponent of a double is too large by, as it is stored."""


class _Precision(NamedTuple):
    """How floats are stored, and how many terms of a series their log takes."""

    integer: Any  # the type of integers of the same size
    fraction_bits: int
    root_half: int  # the square root of 1/2, its bits read as an integer
    odd_terms: int  # after the first


_PRECISION = {
    SINGLE: _Precision(INT32, 23, np.float32(math.sqrt(0.5)).view(np.int32).item(), 4),
    DOUBLE: _Precision(INT64, 52, np.float64(math.sqrt(0.5)).view(np.int64).item(), 8),
}


def log(x: Value) -> Value:
    r"""Return the log of normal numbers above 0, of singles to 1e-7 and of doubles to 1e-15.

    With :math:`x = m 2^e`, m between the roots of 1/2 and of 2, and :math:`s = (m-1)/(m+1)`, it is
    :math:`e \log 2 + 2 (s + s^3/3 + s^5/5 + \ldots)`. The log of 0 is a finite number.
    """
    precision = _PRECISION[x.element]
    bits = x.bitcast(precision.integer)
    exponent = (bits - precision.root_half) >> precision.fraction_bits
    m = (bits - (exponent << precision.fraction_bits)).bitcast(x.element)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = z.times_plus(2.0 / (2 * precision.odd_terms + 1), 2.0 / (2 * precision.odd_terms - 1))
    for term in range(precision.odd_terms - 2, -1, -1):
        series = series.times_plus(z, 2.0 / (2 * term + 1))
    powers = exponent.to_float(x.element).contracted_times(math.log(2.0))
    return s.times_plus(series, powers)


def exp(x: Value) -> Value:
    """Return exp of singles, none above 0, to 1e-7."""
    x = x.maximum(_EXP_LOWEST)
    shifted = x.times_plus(1.0 / math.log(2.0), _ROUNDING)
    n = shifted - _ROUNDING
    r = n.times_plus(-_LOG_2_HIGH, x)
    r = n.times_plus(-_LOG_2_LOW, r)
    series = r.times_plus(1.0 / math.factorial(_EXP_TERMS), 1.0 / math.factorial(_EXP_TERMS - 1))
    for term in range(_EXP_TERMS - 2, -1, -1):
        series = series.times_plus(r, 1.0 / math.factorial(term))
    power = shifted.bitcast(INT32) << _PRECISION[SINGLE].fraction_bits
    return (series.bitcast(INT32) + power).bitcast(SINGLE)


def split_exponent(x: Value) -> tuple[Value, Value]:
    """Split normal doubles above 0 into exponents, too large by `DOUBLE_BIAS`, and numbers in [1, 2)."""
    fraction_bits = _PRECISION[DOUBLE].fraction_bits
    bits = x.bitcast(INT64)
    fraction = (bits & ((1 << fraction_bits) - 1)) | (DOUBLE_BIAS << fraction_bits)
    return bits.unsigned_shift(fraction_bits), fraction.bitcast(DOUBLE)
