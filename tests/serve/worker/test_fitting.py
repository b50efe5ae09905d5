"""Current labels in columns, and fits of them."""

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.serve.hooks.message import HookProject
from annotruth.serve.hooks.text_tools import Argilla
from annotruth.serve.worker.fitting import FitSettings, fit_current
from annotruth.serve.worker.project import say_the_same


def current_of(rows, start=1):
    item, annotator, label = map(pa.array, zip(*rows, strict=True))
    columns = {"item": item, "other_item": [""] * len(rows), "annotator": annotator, "label": label}
    return pa.table({"seq": range(start, start + len(rows)), **columns})


def test_a_note_says_how_to_fit_sets_of_labels(tmp_path):
    rows = [("a", "x", "cat"), ("a", "y", "cat + dog"), ("b", "x", "dog + owl"), ("b", "y", "cat")]
    current, settings = current_of(rows), FitSettings("majority")
    made = fit_current(current, "labels", settings)
    (note,) = made.notes
    assert "2 answers have several labels, such as 'cat + dog'" in note
    assert fit_current(current, "labels", settings, made.fit).notes == (note,)
    # What the note says to run fits sets.
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\n" + "\n".join(map(",".join, rows)))
    assert "--separator ' + '" in note
    fit = at.fit(path, separator=" + ")
    assert fit.labels()["label"].tolist() == ["cat", "dog", "owl"]


@pytest.mark.parametrize("label", ["C + D", "dog"])
def test_no_note_without_sets(label):
    current = current_of([("a", "x", "cat"), ("a", "y", label)])
    made = fit_current(current, "labels", FitSettings("majority"))
    assert made.notes == ()


def test_several_choices_of_a_message_are_one_label():
    asked = {"user": {"id": "u"}, "record": {"id": "r", "dataset": {"name": "d"}}}
    response = {"id": "1", **asked, "status": "submitted"}
    values = {"q": {"value": ["dog", "cat"]}}
    payload = {"type": "response.created", "data": {**response, "values": values}}
    (event,) = Argilla().read(payload, HookProject("labels", {})).events
    assert event.label == "cat + dog"


def test_labels_say_the_same_whenever_they_were_sent():
    rows = [("a", "x", "cat"), ("b", "x", "dog"), ("c", "y", "cat")]
    before = current_of(rows)
    again = before.set_column(0, "seq", pa.array([1, 2, 9]))  # the last one was sent again
    assert say_the_same(before, again)
    assert not say_the_same(before, current_of([*rows[:2], ("c", "y", "dog")], start=3))
    assert not say_the_same(before, before.slice(0, 1))


def test_comparisons_that_cannot_be_used_are_left_out():
    votes = [("a", "b", "x", "left"), ("c", "b", "x", "c"), ("b", "a", "y", "tie")]
    names = ("item", "other_item", "annotator", "label")
    columns = map(pa.array, zip(*votes, ("a", "c", "y", "?"), ("a", "a", "y", "left"), strict=True))
    current = pa.table({"seq": range(1, 6), **dict(zip(names, columns, strict=True))})
    made = fit_current(current, "comparisons", FitSettings("bradley-terry"))
    assert made.seq.tolist() == [1, 2, 3]
    assert made.notes[0].startswith("2 comparisons are left out: without a winner, or of an item")
    rows = made.fit.data.to_arrow().to_pylist()
    assert [row["winner"] for row in rows] == ["left", "left", "tie"]
    assert (
        fit_current(current, "comparisons", FitSettings("auto"), made.fit).fit.model
        == made.fit.model
    )
    assert fit_current(current, "comparisons", FitSettings("auto")).fit.model == "pair-gpm"
