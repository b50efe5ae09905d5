"""Whether a sentence holds: leads, verdicts and crossings, by hand."""

import numpy as np
import pytest

from annotruth.paper import findings
from annotruth.paper.base import Record
from annotruth.paper.tables import Figure


def test_a_lead_is_taken_run_by_run():
    records = [
        Record({}, 0, {"a": {"rmse": 5.0}, "b": {"rmse": 1.0}}),
        Record({}, 1, {"a": {"rmse": 50.0}, "b": {"rmse": 44.0}}),
        Record({}, 2, {"a": {"rmse": 7.0}, "b": {"rmse": None}}),
        Record({}, 3, {"a": {"rmse": 7.0}}),
    ]
    assert findings.lead(records, "rmse", "a", "b") == Figure(5.0, 1.0, 2)
    assert findings.lead(records, "rmse", "a", "c").mean is None


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
    assert findings.verdict(Figure(mean, error, 1)) == verdict


def test_verdicts_join_to_the_worst():
    assert findings.all_of("holds", "undecided", "does not hold") == "does not hold"
    assert findings.all_of("holds", "undecided") == "undecided"
    assert findings.all_of("holds", "holds") == "holds"


def runs(*means):
    return [np.array([mean, mean]) for mean in means]


def test_a_crossing_is_linear_between_places():
    found = findings.crossing((0.05, 0.10, 0.20), runs(1.0, 2.0, 4.0), np.array([2.5, 2.5]))
    assert found == pytest.approx((0.125, 0.125, 0.125))
    assert found.in_words("%", 0.05, 0.2, 100.0) == "12.5% (95%: 12.5% to 12.5%)"


@pytest.mark.parametrize(
    ("curve", "level", "at", "words"),
    [
        ((1.0, 2.0), 0.5, -np.inf, "below 10 "),
        ((1.0, 2.0), 2.5, np.inf, "beyond 40 "),
        ((2.0, 1.0), 2.5, -np.inf, "below 10 "),
        ((2.0, 1.0), 0.5, np.inf, "beyond 40 "),
        ((2.0, 1.0), 1.0, 40.0, "40.0 "),
    ],
)
def test_a_level_outside_the_curve_is_beyond_an_end(curve, level, at, words):
    found = findings.crossing((10, 40), runs(*curve), np.array([level, level]))
    assert found == (at, at, at)
    assert found.in_words("", 10, 40).startswith(words)


def test_the_interval_of_a_crossing_is_that_of_its_standard_error():
    rng = np.random.default_rng(5)
    sd, slope, n = 0.1, 2.0, 400
    curve = [slope * x + rng.normal(0, sd, n) for x in (0.0, 1.0)]
    found = findings.crossing((0.0, 1.0), curve, np.full(n, 1.0))
    assert found.at == pytest.approx(0.5, abs=0.02)
    # Half-way, the curve's error is sd / sqrt(2 n); over the slope it is the place's.
    error = sd / np.sqrt(2 * n) / slope
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
