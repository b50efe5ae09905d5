"""Current labels in columns, and fits of them."""

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.serve.hooks.message import HookProject
from annotruth.serve.hooks.text_tools import Argilla
from annotruth.serve.worker.fitting import CurrentLabels, CurrentRow, FitSettings, fit_current


def current_of(rows):
    current = CurrentLabels()
    rows = [CurrentRow(n, item, "", who, label) for n, (item, who, label) in enumerate(rows, 1)]
    current.replace([(row.item, row.annotator) for row in rows], rows)
    return current


def test_a_note_says_how_to_fit_sets_of_labels(tmp_path):
    rows = [("a", "x", "cat"), ("a", "y", "cat + dog"), ("b", "x", "dog + owl"), ("b", "y", "cat")]
    current, settings = current_of(rows), FitSettings("majority")
    made = fit_current(current, settings)
    (note,) = made.notes
    assert "2 answers have several labels, such as 'cat + dog'" in note
    assert fit_current(current, settings, made.fit).notes == (note,)
    # What the note says to run fits sets.
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\n" + "\n".join(map(",".join, rows)))
    assert "--separator ' + '" in note
    fit = at.fit(path, separator=" + ")
    assert fit.labels()["label"].tolist() == ["cat", "dog", "owl"]


@pytest.mark.parametrize("label", ["C + D", "dog"])
def test_no_note_without_sets(label):
    made = fit_current(current_of([("a", "x", "cat"), ("a", "y", label)]), FitSettings("majority"))
    assert made.notes == ()


def test_several_choices_of_a_message_are_one_label():
    asked = {"user": {"id": "u"}, "record": {"id": "r", "dataset": {"name": "d"}}}
    response = {"id": "1", **asked, "status": "submitted"}
    values = {"q": {"value": ["dog", "cat"]}}
    payload = {"type": "response.created", "data": {**response, "values": values}}
    (event,) = Argilla().read(payload, HookProject("labels", {})).events
    assert event.label == "cat + dog"


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
