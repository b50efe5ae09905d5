"""Warm starts from labels in another order, and fits of saved fits."""

import numpy as np
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.models.registry import MODELS, get_model

TABLE = simulate.crowd(n_items=60, n_annotators=12, labels_per_item=5, seed=3).labels.to_arrow()
BASELINES = ("majority", "mean", "median")


def shuffled(table, seed=0):
    return table.take(np.random.default_rng(seed).permutation(table.num_rows))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in BASELINES])
def test_a_warm_start_takes_labels_in_any_order(name):
    first = at.fit(TABLE, name)
    people = first.data.annotators.to_pylist()
    gone = np.isin(TABLE["annotator"].to_numpy(zero_copy_only=False), people[:2])
    later = shuffled(TABLE.filter(~gone))
    again = at.fit(later, warm_start=first)
    assert again.model == name
    assert again.data.n_labels == later.num_rows
    assert again.data.annotators.to_pylist() == people[2:]
    items = [
        item for item in first.data.items.to_pylist() if item in set(later["item"].to_pylist())
    ]
    assert again.data.items.to_pylist() == items
    assert again.data.to_arrow().to_pylist() == later.to_pylist()


@pytest.mark.parametrize("name", ["gpm", "subject-bias"])
def test_the_same_labels_in_another_order_converge_at_once(name):
    first = get_model(name)().fit(TABLE).result_
    again = get_model(name)().fit(shuffled(TABLE), warm_start=first).result_
    appended = get_model(name)().fit(first.data, warm_start=first).result_
    assert again.n_iter <= appended.n_iter + 2 < first.n_iter
    np.testing.assert_allclose(again.expectation, appended.expectation, atol=1e-3)


def test_labels_are_read_on_the_scale_of_the_warm_start(tmp_path):
    rows = [(e, s, "abc"[(e + (s == 0)) % 2]) for e in range(8) for s in range(4)]
    first = at.fit(rows, "dawid-skene", categories=["c", "b", "a"])
    first.save(tmp_path / "fit")
    again = at.fit(rows[::-1], warm_start=tmp_path / "fit")
    for data in (first.data, first, tmp_path / "fit"):
        assert at.fit(data, warm_start=first).model == "dawid-skene"
    assert again.data.scale.names == ["c", "b", "a"]
    with pytest.raises(at.InputError, match="it has the categories c, b, a, not a, b"):
        at.fit(rows, warm_start=first, scale="nominal")


def test_a_saved_fit_is_accepted_as_labels(tmp_path):
    first = at.fit(TABLE, "gpm")
    first.save(tmp_path / "fit")
    for data in (first, tmp_path / "fit", str(tmp_path / "fit")):
        again = at.fit(data, "majority")
        assert (again.model, again.data.n_labels) == ("majority", TABLE.num_rows)
    with pytest.raises(at.InputError, match="scale: only for labels, and this is a fit"):
        at.fit(tmp_path / "fit", scale="nominal")
    (tmp_path / "empty").mkdir()
    with pytest.raises(at.InputError, match="empty: this is a folder with no saved fit in it"):
        at.fit(tmp_path / "empty")


def test_a_warm_start_of_other_items_is_refused():
    first = at.fit([("a", "u", 1), ("a", "v", 2), ("b", "u", 2)], "gpm")
    with pytest.raises(at.InputError, match="it has none of their items"):
        at.fit([("x", "u", 1), ("y", "v", 2)], warm_start=first)
    with pytest.raises(at.InputError, match="majority: no warm start"):
        at.fit([("b", "u", 1), ("a", "v", 2)], warm_start=at.fit(first.data, "majority"))
