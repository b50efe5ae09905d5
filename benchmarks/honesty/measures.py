"""Measures of probabilities against true classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from benchmarks.truth.scoring import FLOOR, N_BINS


def negative_log_likelihood(truth: Codes, p: Floats) -> Floats:
    """Return ``-log(0.99 p + 0.01 / K)`` of the true class's probability p, per item."""
    given = p[np.arange(truth.size), truth]
    losses: Floats = -np.log((1.0 - FLOOR) * given + FLOOR / p.shape[1])
    return losses


def calibration_error(confidence: Floats, correct: Floats | NDArray[np.bool_]) -> float:
    """Return the expected calibration error over 15 bins of equal width.

    The mean over items of the distance between the mean confidence and the accuracy of the bin.
    """
    bin_number = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    gap = np.bincount(bin_number, confidence - correct, N_BINS)
    return float(np.abs(gap).sum() / confidence.size)


def calibrated_error(confidence: Floats) -> float:
    """Return the mean calibration error of a calibrated forecaster with these confidences.

    It is above 0 because the accuracy of a bin varies by chance: the calibration error of a finite
    sample is biased upwards by about this much. The sum of ``confidence - correct`` in a bin is
    taken as normal with mean 0, whose mean distance from 0 is ``sqrt(2 / pi)`` deviations.
    """
    bin_number = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    variance = np.bincount(bin_number, confidence * (1 - confidence), N_BINS)
    return float(np.sqrt(np.maximum(variance, 0.0) * 2 / np.pi).sum() / confidence.size)


def area_under_curve(is_positive: NDArray[np.bool_], score: Floats) -> float:
    """Return the probability that a positive scores above a negative; ties count half."""
    positive, negative = score[is_positive, np.newaxis], score[~is_positive]
    return float(np.mean((positive > negative) + 0.5 * (positive == negative)))
