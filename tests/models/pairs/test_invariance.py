"""Rankings do not depend on the order of rows, on names, or on which side items are shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from tests.models.pairs.prompts import prompt_crowd

import annotruth as at
from annotruth.analyses.advice.pairs.plan import plan_pairs

MODELS = ["bradley-terry", "thurstone", "crowd-bt", "pair-gpm"]
SWAPPED = {"left": "right", "right": "left", "tie": "tie"}


def replaced(votes: pa.Table, **columns: list[object]) -> pa.Table:
    return pa.table({name: columns.get(name, votes[name]) for name in votes.column_names})


def shuffled(votes: pa.Table) -> pa.Table:
    return votes.take(pa.array(np.random.default_rng(0).permutation(len(votes))))


def renamed(votes: pa.Table) -> pa.Table:
    """Items get names in the opposite order, annotators others."""
    items = {
        name: [f"z{9 - each}" for each in votes[name].to_pylist()] for name in ("left", "right")
    }
    return shuffled(
        replaced(votes, **items, annotator=[-s for s in votes["annotator"].to_pylist()])
    )


def swapped(votes: pa.Table) -> pa.Table:
    winner = [SWAPPED[each] for each in votes["winner"].to_pylist()]
    return replaced(votes, left=votes["right"], right=votes["left"], winner=winner)


def rows_by_id(
    table: pa.Table, back: Callable[[object], object]
) -> dict[object, dict[str, object]]:
    return {back(row.pop(table.column_names[0])): row for row in table.to_pylist()}


def assert_same_rows(one: dict[object, dict[str, object]], other: dict[object, dict[str, object]]):
    assert one.keys() == other.keys()
    for key, row in one.items():
        for name, value in row.items():
            if isinstance(value, float):
                assert other[key][name] == pytest.approx(value, abs=1e-9, nan_ok=True), (key, name)
            else:
                assert other[key][name] == value, (key, name)


@pytest.fixture(scope="module", params=[1, 25], ids=["no contexts", "contexts"])
def votes(request: pytest.FixtureRequest) -> pa.Table:
    crowd = prompt_crowd(
        n_contexts=request.param, spread=0.8, n_votes=40, n_random=3, cell_tie_sd=1.5
    )
    data = crowd.comparisons
    table = data.to_arrow()
    languages = np.array(["de", "en", "fi"])[np.random.default_rng(1).integers(3, size=len(table))]
    return table.append_column("language", pa.array(languages.tolist()))


@pytest.mark.parametrize("model", MODELS)
def test_results_are_the_same_in_any_order_under_any_names_and_on_any_side(
    model: str, votes: pa.Table
) -> None:
    by = {} if model == "thurstone" else {"by": "language"}
    fit = at.rank(votes, model, **by)
    items = rows_by_id(fit.item_table(), int)
    for change in (shuffled, renamed, swapped):
        other = at.rank(change(votes), model, **by)
        back = (lambda item: 9 - int(item[1:])) if change is renamed else int
        assert_same_rows(items, rows_by_id(other.item_table(), back))
        if fit.side_bias is not None:
            sign = -1.0 if change is swapped else 1.0
            assert other.side_bias[0] == pytest.approx(sign * fit.side_bias[0], abs=1e-9)
        if change is shuffled:
            people, again = (rows_by_id(each.annotator_table(), int) for each in (fit, other))
            assert_same_rows(people, again)
        if by and change is not renamed:
            scores = [
                {(row["board"], row["item"]): row for row in each.boards().to_pylist()}
                for each in (fit, other)
            ]
            assert_same_rows(*scores)


def test_plans_and_wins_do_not_depend_on_the_order_of_rows(votes: pa.Table) -> None:
    one, other = (at.rank(each, "bradley-terry") for each in (votes, shuffled(votes)))
    plans = [plan_pairs(fit, "tau", 0.9) for fit in (one, other)]
    assert plans[0].evenly.per_item == pytest.approx(plans[1].evenly.per_item, abs=1e-6)
    assert plans[0].advised.per_item == pytest.approx(plans[1].advised.per_item, abs=1e-6)
    wins = one.tables()["wins"]
    assert wins.equals(other.tables()["wins"])
    for row in wins.to_pylist():
        assert row["wins"] + row["losses"] + row["ties"] == row["n_comparisons"]
        assert row["share"] == (row["wins"] + row["ties"] / 2) / row["n_comparisons"]
        between = [
            vote["winner"] if vote["left"] == row["item"] else SWAPPED[vote["winner"]]
            for vote in votes.to_pylist()
            if {vote["left"], vote["right"]} == {row["item"], row["other"]}
        ]
        assert [between.count(word) for word in ("left", "right", "tie")] == [
            *(row["wins"], row["losses"], row["ties"]),
        ]


@pytest.mark.parametrize("model", MODELS)
def test_engines_agree(model: str, votes: pa.Table) -> None:
    one, other = (at.rank(votes, model, engine=each) for each in ("memory", "reference"))
    np.testing.assert_allclose(one.scores.mean, other.scores.mean, atol=1e-9)
    np.testing.assert_allclose(one.scores.covariance, other.scores.covariance, atol=1e-9)
    if one.reliability is not None:
        np.testing.assert_allclose(one.reliability, other.reliability, atol=1e-9)
    assert one.behavior == other.behavior
