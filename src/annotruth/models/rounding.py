"""Gaussian opinions rounded to the categories of a scale."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats


def bounds_of(values: Floats) -> Floats:
    """Return the midpoints between the categories' values, with the ends of the scale open."""
    return np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2.0, [np.inf]])


def mass_between(at: Floats, axis: int) -> Floats:
    """Return a standard Gaussian's mass between one bound and the next along an axis."""
    from scipy.special import ndtr  # takes longer to load than a small fit by shares takes

    bounds = np.moveaxis(at, axis, 0)
    lower, upper = bounds[:-1], bounds[1:]
    # Differences are taken in the nearer tail, where they keep their digits.
    mass = np.where(lower > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))
    return np.moveaxis(mass, 0, axis)


def rounded_gaussians(values: Floats, mean: Floats, deviation: Floats) -> Floats:
    r"""Give every category its share of Gaussians, one row each, rounded to the scale.

    .. math:: p(n) = \Phi((b_n - m) / d) - \Phi((b_{n-1} - m) / d),

    with :math:`b_1, \ldots, b_{N-1}` the midpoints between the categories' values and the ends
    open.
    """
    at = (bounds_of(values) - mean[:, np.newaxis]) / deviation[:, np.newaxis]
    return mass_between(at, axis=1)


def rounding_variance(values: Floats) -> float:
    """Return the variance that rounding to the scale leaves at least."""
    step = np.diff(values).min() if len(values) > 1 else 1.0
    return float(step**2 / 12.0)
