"""Comparisons with others appended."""

from dataclasses import replace

import numpy as np
import pytest
from tests.models.pairs.rank_fits import votes

import annotruth as at
from annotruth.observations.append import append_comparisons

ROWS = [("a", "b", "x", "left"), ("b", "c", "y", "right"), ("a", "c", "x", "tie")]


def rows_of(data):
    order = np.argsort(data.row)
    items, people = data.items.to_pylist(), data.annotators.to_pylist()
    names = ("left", "right", "tie")
    columns = (data.left, data.right, data.annotator_of_comparison(), data.outcome)
    return [
        (items[a], items[b], people[s], names[o])
        for a, b, s, o in zip(*(column[order] for column in columns), strict=True)
    ]


def test_new_rows_follow_and_codes_stay():
    more = [("d", "a", "z", "left"), ("a", "b", "x", "left")]
    both, n_repeated = append_comparisons(votes(*ROWS), votes(*more))
    assert rows_of(both) == [*ROWS, *more]
    assert both.items.to_pylist() == ["a", "b", "c", "d"]
    assert n_repeated == 0


def test_an_export_of_all_rows_adds_those_that_are_new():
    twice = [*ROWS, ROWS[0]]
    export = [("d", "a", "z", "left"), *ROWS, ROWS[0]]
    both, n_repeated = append_comparisons(votes(*twice), votes(*export))
    assert n_repeated == 4
    assert rows_of(both) == [*twice, ("d", "a", "z", "left")]


def test_rows_that_lack_one_of_the_old_are_all_votes():
    both, n_repeated = append_comparisons(votes(*ROWS), votes(*ROWS[:2]))
    assert (both.n_comparisons, n_repeated) == (5, 0)


def test_without_sides_the_smaller_code_is_on_the_left():
    base = votes(("b", "c", "x", "left"), sides_known=False)
    new = votes(("a", "b", "x", "left"), sides_known=False)
    both = append_comparisons(base, new).table
    assert both.items.to_pylist() == ["b", "c", "a"]
    assert (both.left <= both.right).all()
    assert rows_of(both)[1] == ("b", "a", "x", "right")


def test_without_sides_covariates_are_exchanged_with_them():
    base = votes(("b", "c", "x", "left"), sides_known=False)
    new = votes(("a", "b", "x", "left"), sides_known=False)
    base, new = (replace(data, covariates={"length": np.array([2.0])}) for data in (base, new))
    both = append_comparisons(base, new).table
    assert both.covariates["length"].tolist() == [2.0, -2.0]


def test_covariates_and_contexts_are_appended():
    def with_more(data, values, contexts):
        n = np.arange(data.n_comparisons)
        return replace(
            data,
            covariates={"length": np.array(values, dtype=float)[data.row]},
            contexts=data.items.take(contexts),
            context=(n * 0).astype(np.int32),
        )

    base = with_more(votes(*ROWS), [1, 2, 3], [0])
    new = with_more(votes(("d", "a", "w", "left")), [4], [1])
    both = append_comparisons(base, new).table
    assert both.covariates["length"][np.argsort(both.row)].tolist() == [1, 2, 3, 4]
    assert both.contexts.to_pylist() == ["a", "d"]
    assert both.context[np.argsort(both.row)].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sides_known": False}, "not known in the new comparisons"),
        ({"covariates": {"x": np.zeros(3)}}, "the new comparisons x: pass covariates"),
    ],
)
def test_other_sides_or_covariates_are_refused(changed, said):
    with pytest.raises(at.InputError, match=said):
        append_comparisons(votes(*ROWS), replace(votes(*ROWS), **changed))
