"""Differences, verdicts and crossing points, computed by hand."""

import numpy as np
import pytest

from annotruth.paper import claim_tests
from annotruth.paper.experiment import ExperimentRun
from annotruth.paper.tables import MeanWithError


def test_differences_are_paired_by_run():
    runs = [
        ExperimentRun({}, 0, {"a": {"rmse": 5.0}, "b": {"rmse": 1.0}}),
        ExperimentRun({}, 1, {"a": {"rmse": 50.0}, "b": {"rmse": 44.0}}),
        ExperimentRun({}, 2, {"a": {"rmse": 7.0}, "b": {"rmse": None}}),
        ExperimentRun({}, 3, {"a": {"rmse": 7.0}}),
    ]
    assert claim_tests.paired_difference(runs, "rmse", "a", "b") == MeanWithError(5.0, 1.0, 2)
    assert claim_tests.paired_difference(runs, "rmse", "a", "c").mean is None


@pytest.mark.parametrize(
    ("mean", "error", "verdict"),
    [
        (0.3, 0.1, "holds"),
        (0.1, 0.1, "undecided"),
        (-0.1, 0.1, "undecided"),
        (-0.3, 0.1, "does not hold"),
        (0.3, None, "holds"),
        (0.0, None, "does not hold"),
        (None, None, "not tested"),
    ],
)
def test_a_difference_within_two_standard_errors_is_undecided(mean, error, verdict):
    assert claim_tests.verdict_of(MeanWithError(mean, error, 1)) == verdict


def test_combined_verdict_is_the_worst():
    combine = claim_tests.combine_verdicts
    assert combine(["holds", "undecided", "does not hold"]) == "does not hold"
    assert combine(["holds", "undecided"]) == "undecided"
    assert combine(["holds", "holds"]) == "holds"


def curve_of(*means):
    return [np.array([mean, mean]) for mean in means]


def test_crossing_is_linear_between_points():
    level = np.array([2.5, 2.5])
    crossing = claim_tests.find_crossing((0.05, 0.10, 0.20), curve_of(1.0, 2.0, 4.0), level)
    assert crossing == pytest.approx((0.125, 0.125, 0.125))
    assert crossing.describe("%", 0.05, 0.2, 100.0) == "12.5% (95%: 12.5% to 12.5%)"


@pytest.mark.parametrize(
    ("curve", "level", "x", "text"),
    [
        ((1.0, 2.0), 0.5, -np.inf, "below 10 "),
        ((1.0, 2.0), 2.5, np.inf, "beyond 40 "),
        ((2.0, 1.0), 2.5, -np.inf, "below 10 "),
        ((2.0, 1.0), 0.5, np.inf, "beyond 40 "),
        ((2.0, 1.0), 1.0, 40.0, "40.0 "),
    ],
)
def test_level_outside_the_curve_is_beyond_an_end(curve, level, x, text):
    crossing = claim_tests.find_crossing((10, 40), curve_of(*curve), np.array([level, level]))
    assert crossing == (x, x, x)
    assert crossing.describe("", 10, 40).startswith(text)


def test_interval_of_a_crossing_matches_its_standard_error():
    rng = np.random.default_rng(5)
    sd, slope, n = 0.1, 2.0, 400
    curve = [slope * x + rng.normal(0, sd, n) for x in (0.0, 1.0)]
    crossing = claim_tests.find_crossing((0.0, 1.0), curve, np.full(n, 1.0))
    assert crossing.x == pytest.approx(0.5, abs=0.02)
    # Half-way the standard error of the curve is sd / sqrt(2 n); divided by the slope, that of x.
    error = sd / np.sqrt(2 * n) / slope
    assert crossing.high - crossing.low == pytest.approx(2 * 1.96 * error, rel=0.1)
