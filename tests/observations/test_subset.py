"""Subsets of labels."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotruth.observations import Labels

ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from("abcde"), st.integers(1, 4), st.booleans()),
    min_size=1,
    max_size=40,
    unique_by=lambda row: row[:2],
).filter(lambda rows: any(row[3] for row in rows))
CHECKED = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@CHECKED
@given(rows=ROWS)
def test_a_subset_keeps_the_order_of_the_rows(rows_of, rows):
    labels = Labels.of([row[:3] for row in rows]).with_gold({rows[0][0]: rows[0][2]})
    kept = np.array([row[3] for row in rows])
    some = labels.subset(kept[labels.row])
    assert rows_of(some) == [row[:3] for row in rows if row[3]]
    assert some.scale is labels.scale
    for ids in ("items", "annotators"):
        before, after = (getattr(one, ids).to_pylist() for one in (labels, some))
        assert after == [name for name in before if name in after]
    assert {
        e for e, known in zip(some.items.to_pylist(), some.known, strict=True) if known >= 0
    } == {e for e in some.items.to_pylist() if e == rows[0][0]}


def test_a_subset_keeps_the_annotator_prior():
    labels = Labels.of([("a", "x", 1), ("b", "y", 2), ("b", "z", 2)])
    labels = labels.with_annotator_prior({"x": 0.9, "z": 0.2})
    some = labels.subset(np.isin(labels.row, [1, 2]))
    assert some.annotators.to_pylist() == ["y", "z"]
    np.testing.assert_array_equal(some.annotator_prior, labels.annotator_prior[1:])
    assert Labels.of([("a", "x", 1)]).subset(np.array([True])).annotator_prior is None


def test_the_labels_of_some_items():
    rows = [("a", "x", 1), ("b", "y", 2), ("c", "z", 2), ("c", "x", 3), ("b", "w", 1)]
    labels = Labels.of(rows)
    some, place, people = labels.subset_items(np.array([2, 0, 2]))
    assert some.items.to_pylist() == ["a", "c"]
    assert place.tolist() == [1, 0, 1]
    assert labels.annotators.take(people).equals(some.annotators)
    assert some.annotators.to_pylist() == ["x", "z"]
    assert some.n_labels == 3


@pytest.mark.parametrize("n_items", [1, 30])
def test_items_and_categories_of_labels(make_labels, n_items):
    labels = make_labels(np.random.default_rng(0), n_items=n_items, n_annotators=7, n_categories=3)
    cell = labels.cell_of_label()
    np.testing.assert_array_equal(labels.item_of_label(), labels.item_of_cell()[cell])
    np.testing.assert_array_equal(labels.category_of_label(), labels.cell_category[cell])
