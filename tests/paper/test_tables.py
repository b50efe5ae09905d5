"""Means, standard errors and tables, computed by hand."""

import math

import pytest

from annotruth.paper import tables
from annotruth.paper.experiment import Experiment, ExperimentRun, Measure


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
