"""Sharing a budget among items, and the work among annotators."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotruth.analyses.advice.advice import assign
from annotruth.analyses.advice.annotators import NOBODY, AnnotatorAdvice, Workload
from annotruth.analyses.advice.items import share_out
from annotruth.observations import Labels

LEAST = 1e-3


def greedy(budget, uncertainty, gain, max_per_item=10**9):
    """Buy one label after the other, each where it gains most."""
    c = np.maximum(uncertainty / gain - 1.0, 1e-3)

    def next_gain(e, m):
        return uncertainty[e] * c[e] / ((c[e] + m - 1) * (c[e] + m))

    add = np.zeros(len(gain), dtype=int)
    queue = [(-next_gain(e, 1), e) for e in range(len(gain))]
    heapq.heapify(queue)
    while budget is None or add.sum() < budget:
        worth, e = heapq.heappop(queue) if queue else (0.0, 0)
        if -worth < LEAST:
            break
        add[e] += 1
        if add[e] < max_per_item:
            heapq.heappush(queue, (-next_gain(e, add[e] + 1), e))
    return add


@given(st.integers(0, 10_000), st.integers(1, 300), st.sampled_from([1, 5, None]))
def test_the_allocation_is_the_greedy_one(seed, budget, max_per_item):
    rng = np.random.default_rng(seed)
    uncertainty = rng.uniform(1e-3, 0.5, size=30)
    gain = uncertainty * rng.uniform(0.001, 0.9, size=30)
    for labels in (budget, None):
        np.testing.assert_array_equal(
            share_out(labels, uncertainty, gain, LEAST, max_per_item),
            greedy(labels, uncertainty, gain, max_per_item or 10**9),
        )


def test_equal_items_share_the_whole_budget():
    uncertainty, gain = np.full(7, 0.2), np.full(7, 0.05)
    add = share_out(17, uncertainty, gain, LEAST)
    assert add.sum() == 17
    assert set(add) == {2, 3}


def test_the_rest_of_a_budget_respects_the_maximum_per_item():
    uncertainty, gain = np.array([0.9, 0.2, 0.2, 0.2]), np.array([0.5, 0.05, 0.05, 0.05])
    assert share_out(2, uncertainty, gain, LEAST).tolist() == [2, 0, 0, 0]
    assert share_out(2, uncertainty, gain, LEAST, max_per_item=1).tolist() == [1, 1, 0, 0]


def test_items_without_gain_get_no_labels():
    add = share_out(100, np.array([0.0, 0.3, 0.3]), np.array([0.0, 0.0, 0.1]), LEAST)
    assert add[:2].tolist() == [0, 0]
    assert 0 < add[2] <= 100


LABELS = Labels.of([("a", "x", 1), ("a", "y", 2), ("b", "x", 1), ("c", "z", 2), ("c", "w", 2)])
X, Y, Z, W = range(4)


def workload(information, ask, most, *, is_strict=True):
    verdict = np.full(len(ask), "keep")
    people = AnnotatorAdvice(verdict, np.array(information), np.array(ask), [""] * len(ask))
    return Workload(people, most, is_strict=is_strict)


def assigned(add, gain, *given, **options):
    item, annotator = assign(LABELS, np.array(add), np.array(gain), workload(*given, **options))
    return list(zip(item.tolist(), annotator.tolist(), strict=True))


def test_the_item_with_the_highest_gain_gets_the_most_informative_annotators():
    found = assigned([1, 1, 1], [0.1, 0.3, 0.2], [0.9, 0.5, 1.0, 0.8], [True] * 4, most=9)
    assert found == [(1, Z), (2, X), (0, Z)]  # z has labelled c


def test_nobody_gets_more_than_the_maximum_or_an_item_they_have_labelled():
    found = assigned([2, 3, 2], [0.1, 0.3, 0.2], [0.9, 0.5, 1.0, 0.8], [True] * 4, most=2)
    assert found == [(1, Z), (1, W), (1, Y), (2, X), (2, Y), (0, Z), (0, W)]


def test_where_nobody_is_left_a_new_annotator_is_needed():
    ask = [True, False, False, False]
    assert assigned([2, 1, 0], [0.1, 0.3, 0.2], [1.0] * 4, ask, most=5) == [
        (1, NOBODY),
        (0, NOBODY),
        (0, NOBODY),
    ]


def test_beyond_a_limit_that_is_not_strict_those_with_fewest_assignments_are_asked():
    given = ([1, 3, 1], [0.1, 0.3, 0.2], [0.9, 0.5, 1.0, 0.8], [True, True, True, False])
    strict = assigned(*given, most=1)
    assert strict == [(1, Z), (1, Y), (1, NOBODY), (2, X), (0, NOBODY)]
    # z is at the limit, but x and y have labelled a; nobody is left for the third label of b.
    assert assigned(*given, most=1, is_strict=False) == [*strict[:4], (0, Z)]
    # For c, x and y are left, who have 0 and 1 assignments, then both 1: the more informative.
    given = ([0, 1, 2], [0.1, 0.3, 0.2], [0.5, 0.9, 0.1, 0.1], [True, True, False, False])
    assert assigned(*given, most=1, is_strict=False) == [(1, Y), (2, X), (2, Y)]


def test_the_fewest_assignments_decide_beyond_the_limit():
    loads = workload([0.5, 0.9], [True, True], most=1, is_strict=False)
    chosen = [loads.choose(1, excluded=excluded) for excluded in (set(), set(), {0}, set())]
    assert chosen == [[1], [0], [1], [0]]


@pytest.mark.parametrize("most", [1, 3])
def test_the_maximum_holds_in_a_crowd(most):
    rng = np.random.default_rng(0)
    rows = [(e, int(s), 1) for e in range(40) for s in rng.choice(12, 3, replace=False)]
    labels = Labels.of(rows)
    people = workload(rng.random(12), np.ones(12, dtype=bool), most)
    item, annotator = assign(labels, np.full(40, 2), rng.random(40), people)
    asked = annotator[annotator != NOBODY]
    assert np.bincount(asked).max() == most
    assert len(item) == 80
    given_before = {(e, labels.annotators.to_pylist().index(s)) for e, s, _ in rows}
    pairs = [p for p in zip(item.tolist(), annotator.tolist(), strict=True) if p[1] != NOBODY]
    assert not given_before & set(pairs)
    assert len(set(pairs)) == len(pairs)
