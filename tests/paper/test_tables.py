"""Means, standard errors, tables, differences, verdicts and crossing points, computed by hand."""

import math

import numpy as np
import pytest

from annotruth.paper import tables
from annotruth.paper.experiment import Experiment, ExperimentRun, Measure
from annotruth.paper.tables import MeanWithError


def no_results(*_):
    return {}


def conditions(settings):
    return [{"share": 0.1}, {"share": 0.2}]


TOY = Experiment(
    name="toy",
    title="Toy",
    description="",
    settings={},
    conditions=conditions,
    run=no_results,
    measures=[Measure("rmse", "RMSE", "lower"), Measure("spammers", "spammers")],
    models={"gpm": "GPM", "mean": "Mean", "absent": "Absent"},
    printed={(0.1, "gpm"): {"rmse": 0.25}},
)
RUNS = [
    ExperimentRun(
        {"share": 0.1}, 0, {"gpm": {"rmse": 1.0, "spammers": 0.5}, "mean": {"rmse": 2.0}}
    ),
    ExperimentRun(
        {"share": 0.1}, 1, {"gpm": {"rmse": 3.0, "spammers": None}, "mean": {"rmse": 2.0}}
    ),
    ExperimentRun(
        {"share": 0.2}, 0, {"gpm": {"rmse": 7.0, "spammers": 0.0}, "mean": {"rmse": 8.0}}
    ),
]


def test_mean_and_standard_error_by_hand():
    mean = tables.mean_with_error([1.0, 2.0, 3.0, 6.0])
    # Squares of -2, -1, 0, 3 sum to 14; sd = sqrt(14 / 3); over sqrt(4).
    assert mean.mean == 3.0
    assert mean.error == pytest.approx(math.sqrt(14 / 3) / 2)
    assert mean.n == 4
    assert str(mean) == "3.0000 ± 1.0801"


def test_one_run_has_no_standard_error_and_missing_values_are_left_out():
    assert tables.mean_with_error([0.5]) == tables.MeanWithError(0.5, None, 1)
    assert str(tables.mean_with_error([0.5])) == "0.5000"
    assert tables.mean_with_error([None, 1.0, 3.0]) == tables.MeanWithError(2.0, 1.0, 2)
    assert str(tables.mean_with_error([None])) == ""


def test_rows_are_by_condition_and_model_with_the_printed_figure():
    rows = tables.result_rows(TOY, {}, RUNS)
    assert [(row.condition["share"], row.model) for row in rows] == [
        (0.1, "gpm"),
        (0.1, "mean"),
        (0.2, "gpm"),
        (0.2, "mean"),
    ]
    assert rows[0].means["rmse"] == tables.MeanWithError(2.0, 1.0, 2, paper=0.25)
    assert rows[0].means["spammers"] == tables.MeanWithError(0.5, None, 1)
    assert rows[1].means["spammers"].mean is None


def test_markdown_has_the_printed_figures_in_a_column():
    text = tables.to_markdown(TOY, {}, tables.result_rows(TOY, {}, RUNS))
    assert text.splitlines() == [
        "| share | model |          RMSE ↓ |  paper | spammers |",
        "| ----- | ----- | --------------: | -----: | -------: |",
        "| 0.1   | GPM   | 2.0000 ± 1.0000 | 0.2500 |   0.5000 |",
        "| 0.1   | Mean  | 2.0000 ± 0.0000 |        |          |",
        "| 0.2   | GPM   |          7.0000 |        |   0.0000 |",
        "| 0.2   | Mean  |          8.0000 |        |          |",
    ]


def test_the_long_table_keeps_every_digit():
    table = tables.to_arrow(TOY, {}, tables.result_rows(TOY, {}, RUNS))
    assert table.num_rows == 8
    assert table.slice(0, 1).to_pylist() == [
        {
            "share": 0.1,
            "model": "gpm",
            "measure": "rmse",
            "mean": 2.0,
            "standard_error": 1.0,
            "runs": 2,
            "paper": 0.25,
        }
    ]


def test_differences_are_paired_by_run():
    runs = [
        ExperimentRun({}, 0, {"a": {"rmse": 5.0}, "b": {"rmse": 1.0}}),
        ExperimentRun({}, 1, {"a": {"rmse": 50.0}, "b": {"rmse": 44.0}}),
        ExperimentRun({}, 2, {"a": {"rmse": 7.0}, "b": {"rmse": None}}),
        ExperimentRun({}, 3, {"a": {"rmse": 7.0}}),
    ]
    assert tables.paired_difference(runs, "rmse", "a", "b") == MeanWithError(5.0, 1.0, 2)
    assert tables.paired_difference(runs, "rmse", "a", "c").mean is None


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
    assert tables.verdict_of(MeanWithError(mean, error, 1)) == verdict


def test_combined_verdict_is_the_worst():
    combine = tables.combine_verdicts
    assert combine(["holds", "undecided", "does not hold"]) == "does not hold"
    assert combine(["holds", "undecided"]) == "undecided"
    assert combine(["holds", "holds"]) == "holds"


def curve_of(*means):
    return [np.array([mean, mean]) for mean in means]


def test_crossing_is_linear_between_points():
    level = np.array([2.5, 2.5])
    crossing = tables.find_crossing((0.05, 0.10, 0.20), curve_of(1.0, 2.0, 4.0), level)
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
    crossing = tables.find_crossing((10, 40), curve_of(*curve), np.array([level, level]))
    assert crossing == (x, x, x)
    assert crossing.describe("", 10, 40).startswith(text)


def test_interval_of_a_crossing_matches_its_standard_error():
    rng = np.random.default_rng(5)
    sd, slope, n = 0.1, 2.0, 400
    curve = [slope * x + rng.normal(0, sd, n) for x in (0.0, 1.0)]
    crossing = tables.find_crossing((0.0, 1.0), curve, np.full(n, 1.0))
    assert crossing.x == pytest.approx(0.5, abs=0.02)
    # Half-way the standard error of the curve is sd / sqrt(2 n); divided by the slope, that of x.
    error = sd / np.sqrt(2 * n) / slope
    assert crossing.high - crossing.low == pytest.approx(2 * 1.96 * error, rel=0.1)
