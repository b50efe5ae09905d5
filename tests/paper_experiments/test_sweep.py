"""The sweep over what the paper leaves open."""

import pytest

from annotruth.paper import exp1a, exp1d, runner, sweep
from annotruth.paper.tables import Figure


def test_every_combination_is_there():
    conditions = sweep.conditions({})
    # Three shapes, two reliabilities, three behaviors and two kinds of mixed; and 3 x 2 x 2 x 2.
    assert sum(c["experiment"] == "exp1a" for c in conditions) == 3 * 2 * 5
    assert sum(c["experiment"] == "exp1d" for c in conditions) == 24


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    settings = sweep.EXPERIMENT.resolve({"items": 8})
    folder = tmp_path_factory.mktemp("sweep")
    records = runner.run_experiment(sweep.EXPERIMENT, settings, runs=1, folder=folder, workers=1)
    return records, sweep.summary(records, settings)


def test_it_draws_what_the_experiments_draw(swept, tmp_path):
    records, _ = swept
    settings = exp1a.EXPERIMENT.resolve({"items": 8})
    (first, *_) = runner.run_experiment(
        exp1a.EXPERIMENT, settings, runs=1, folder=tmp_path, workers=1
    )
    same = next(
        record
        for record in records
        if record.condition.get("behavior") == "random"
        and all(
            record.condition[name] == settings[name] for name in ("shape", "reliable_above_half")
        )
    )
    found = dict(first.results["gpm"])
    del found["converged"]
    assert same.results[sweep.AS_PRINTED] == found


def test_the_ranking_is_by_the_distance_to_the_printed_tables(swept):
    _, (text, table) = swept
    rows = table.to_pylist()
    first = [row["distance"] for row in rows if row["experiment"] == "exp1a"]
    assert len(first) == 3 * 2 * 2 * 4 * 5
    assert first == sorted(first)
    assert sum(row["experiment"] == "exp1d" for row in rows) == 24 * 5
    for heading in ("the defaults", "Exp1-a alone", "Exp1-d alone", "What each value costs"):
        assert heading in text


def test_the_distance_is_a_root_mean_square():
    cells = {
        ("a", "x"): Figure(1.0, 0.1, 9, paper=4.0),
        ("b", "x"): Figure(2.0, 0.1, 9, paper=6.0),
    }
    assert sweep._distance(cells)["distance"] == pytest.approx((25 / 2) ** 0.5)


def test_printed_tables_are_the_papers():
    assert exp1a.PRINTED["mixed"] == {"f1": 0.9335, "plcc": 0.6922, "srocc": 0.7305, "rmse": 0.3539}
    assert exp1d.PRINTED["gpm"] == {"plcc": 0.9432, "srocc": 0.9453, "rmse": 0.4657}
