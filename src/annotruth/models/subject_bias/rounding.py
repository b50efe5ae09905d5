"""Gaussians rounded to the categories of a scale."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats


def bounds_of(values: Floats) -> Floats:
    """Return the midpoints between the categories' values, with the ends of the scale open."""
    return np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2.0, [np.inf]])


def mass_between(z: Floats, axis: int) -> Floats:
    """Return the standard Gaussian's mass between consecutive bounds along an axis."""
    from scipy.special import ndtr  # imported here because that takes longer than a small fit

    bounds = np.moveaxis(z, axis, 0)
    lower, upper = bounds[:-1], bounds[1:]
    # In the upper half, differences of upper tails are exact to more digits.
    mass = np.where(lower > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))
    return np.moveaxis(mass, 0, axis)


def rounded_gaussians(values: Floats, mean: Floats, deviation: Floats) -> Floats:
    r"""Return the probability of each category for rounded Gaussians, one row per Gaussian.

    .. math:: p(n) = \Phi((b_n - m) / d) - \Phi((b_{n-1} - m) / d),

    with :math:`b_1, \ldots, b_{N-1}` the midpoints between the categories' values and the ends
    open.
    """
    z = (bounds_of(values) - mean[:, np.newaxis]) / deviation[:, np.newaxis]
    return mass_between(z, axis=1)


def rounding_variance(values: Floats) -> float:
    """Return the variance of rounding to the scale where its categories are closest."""
    step = np.diff(values).min() if len(values) > 1 else 1.0
    return float(step**2 / 12.0)


def shared_rounding_variance(values: Floats, variance: float) -> float:
    r"""Return the variance of the rounding error that all votes on an item have in common.

    Where votes hardly vary before they are rounded to steps of h, they are rounded alike. With their
    variance :math:`\sigma^2` before rounding and the score anywhere between two categories, the mean
    vote differs from the score by

    .. math:: \sum_k \frac{h^2}{2 \pi^2 k^2} e^{-4 \pi^2 k^2 \sigma^2 / h^2}

    on average, squared: the Fourier series of a sawtooth, smoothed by a Gaussian. Without noise that
    is :math:`h^2 / 12`. ``variance`` is that of rounded votes, :math:`\sigma^2 + h^2 / 12`.
    """
    of_rounding = rounding_variance(values)
    noise = max(variance / of_rounding - 1.0, 0.0) / 12.0  # in squared steps
    k = np.arange(1, 51)
    terms = 6.0 / (np.pi * k) ** 2 * np.exp(-4.0 * np.pi**2 * k**2 * noise)
    return of_rounding * float(terms.sum())
