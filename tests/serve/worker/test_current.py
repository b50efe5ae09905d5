"""The current labels in columns, against a plain dictionary."""

import numpy as np
import pyarrow as pa
import pytest

from annotruth.serve.worker.fitting import CurrentLabels, CurrentRow


def plain(current):
    return sorted(map(tuple, zip(*(c.to_pylist() for c in current.table().columns), strict=True)))


def test_random_patches_equal_a_dictionary():
    rng = np.random.default_rng(3)
    current, expected = CurrentLabels(), {}
    for seq in range(1, 200):
        slots = {(f"i{rng.integers(9)}", f"a{rng.integers(4)}") for _ in range(rng.integers(1, 6))}
        rows, n_changed = [], 0
        for item, annotator in sorted(slots):
            before = expected.pop((item, annotator), None)
            if rng.random() < 0.7:
                expected[item, annotator] = label = f"c{rng.integers(3)}"
                rows.append(CurrentRow(seq, item, "", annotator, label))
            n_changed += before != expected.get((item, annotator))
        assert current.replace(sorted(slots), rows) == n_changed
        if seq % 20 == 0:
            current.put_in_order()
        assert plain(current) == sorted((*slot, label) for slot, label in expected.items())


def test_order_depends_on_the_current_labels_only():
    rows = [CurrentRow(k, f"i{k % 5}", "", f"a{k % 3}", f"c{k % 2}") for k in range(1, 16)]
    slots = [(row.item, row.annotator) for row in rows]
    one, other = CurrentLabels(), CurrentLabels()
    one.replace(slots, rows)
    other.replace([("gone", "a9")], [CurrentRow(1, "gone", "", "a9", "c9")])
    other.replace(slots[::-1], rows[::-1])
    other.replace([("gone", "a9")], [])
    for each in (one, other):
        each.put_in_order()
    assert one.table().equals(other.table())
    assert one.seq.tolist() == list(range(1, 16)) == other.seq.tolist()
    assert one.ids("item").to_pylist() == ["i1", "i2", "i3", "i4", "i0"]


def test_ids_of_a_fit_keep_their_codes():
    current = CurrentLabels(first={"item": pa.array(["b", "a"]), "annotator": pa.array(["y"])})
    current.replace([("a", "x")], [CurrentRow(1, "a", "", "x", "c")])
    assert current.codes["item"].tolist() == [1]
    assert current.codes["annotator"].tolist() == [1]


def test_a_slot_may_have_several_comparisons():
    current = CurrentLabels(are_pairs=True)
    slot = [("a", "x")]
    rows = [CurrentRow(1, "a", "b", "x", "left"), CurrentRow(2, "a", "c", "x", "tie")]
    assert current.replace(slot, rows) == 1
    assert len(current) == 2
    assert current.replace(slot, rows) == 0
    assert current.replace(slot, rows[:1]) == 1
    current.put_in_order()
    assert plain(current) == [("a", "b", "x", "left")]
    assert current.ids("item").to_pylist() == ["a", "b"]


@pytest.mark.parametrize("first", [None, {"item": pa.array(["i1"])}])
def test_a_table_is_added_as_rows_are(first):
    table = pa.table(
        {
            "seq": [1, 2],
            "item": ["i1", "i2"],
            "other_item": ["", ""],
            "annotator": ["a", "a"],
            "label": ["x", "y"],
        }
    )
    current = CurrentLabels(first=first)
    current.add_table(table)
    assert plain(current) == [("i1", "a", "x"), ("i2", "a", "y")]
    assert current.replace([("i2", "a")], [CurrentRow(3, "i2", "", "a", "x")]) == 1
    assert plain(current) == [("i1", "a", "x"), ("i2", "a", "x")]
