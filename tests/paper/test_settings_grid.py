"""The grid over the settings that the paper leaves open."""

import pytest

from annotruth.paper import runner, settings_grid, simulated
from annotruth.paper.tables import MeanWithError


def test_every_combination_is_a_condition():
    conditions = settings_grid.conditions({})
    # Three shapes, two reliabilities, three behaviors and two kinds of mixed; and 3 x 2 x 2 x 2.
    assert sum(c["experiment"] == "exp1a" for c in conditions) == 3 * 2 * 5
    assert sum(c["experiment"] == "exp1d" for c in conditions) == 24


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    settings = settings_grid.EXPERIMENT.resolve({"items": 8})
    folder = tmp_path_factory.mktemp("grid")
    runs = runner.run_experiment(
        settings_grid.EXPERIMENT, settings, n_runs=1, folder=folder, n_workers=1
    )
    return runs, settings_grid.summary(runs, settings)


def test_crowds_are_those_of_the_experiments(grid, tmp_path):
    runs, _ = grid
    settings = simulated.EXP1A.resolve({"items": 8})
    (first, *_) = runner.run_experiment(
        simulated.EXP1A, settings, n_runs=1, folder=tmp_path, n_workers=1
    )
    same = next(
        run
        for run in runs
        if run.condition.get("behavior") == "random"
        and all(run.condition[name] == settings[name] for name in ("shape", "reliable_above_half"))
    )
    expected = dict(first.results["gpm"])
    del expected["converged"]
    assert same.results[settings_grid.AS_PRINTED] == expected


def test_combinations_are_ranked_by_distance_to_the_printed_tables(grid):
    _, (text, table) = grid
    rows = table.to_pylist()
    first = [row["distance"] for row in rows if row["experiment"] == "exp1a"]
    assert len(first) == 3 * 2 * 2 * 4 * 5
    assert first == sorted(first)
    assert sum(row["experiment"] == "exp1d" for row in rows) == 24 * 5
    for heading in ("the defaults", "Exp1-a alone", "Exp1-d alone", "Smallest distance by value"):
        assert heading in text


def test_distance_is_a_root_mean_square():
    means = {
        ("a", "x"): MeanWithError(1.0, 0.1, 9, paper=4.0),
        ("b", "x"): MeanWithError(2.0, 0.1, 9, paper=6.0),
    }
    assert settings_grid._with_distance(means)["distance"] == pytest.approx((25 / 2) ** 0.5)


def test_printed_tables_are_the_papers():
    assert simulated.PRINTED_1A["mixed"] == {
        "f1": 0.9335,
        "plcc": 0.6922,
        "srocc": 0.7305,
        "rmse": 0.3539,
    }
    assert simulated.PRINTED_1D["gpm"] == {"plcc": 0.9432, "srocc": 0.9453, "rmse": 0.4657}
