"""Current labels in columns, and fits of them."""

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.serve.hooks.message import HookProject
from annotruth.serve.hooks.text_tools import Argilla
from annotruth.serve.worker.fitting import FitSettings, fit_current
from annotruth.serve.worker.project import count_changes


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


def test_changes_count_labels_that_say_something_else():
    rows = [("a", "x", "cat"), ("b", "x", "dog"), ("c", "y", "cat")]
    before = current_of(rows)
    again = before.set_column(0, "seq", pa.array([1, 2, 9]))  # the last one was sent again
    assert count_changes(before, again) == 0
    assert count_changes(before, current_of([*rows[:2], ("c", "y", "dog")], start=3)) == 1
    assert count_changes(before, before.slice(0, 1)) == 2
    assert count_changes(before.slice(0, 0), before) == 3


VOTES = [
    ("a", "b", "x", "left"),
    ("c", "b", "x", "c"),
    ("b", "a", "y", "tie"),
    ("a", "c", "y", "?"),
]


def votes_of(rows):
    names = ("item", "other_item", "annotator", "label")
    columns = dict(zip(names, map(pa.array, zip(*rows, strict=True)), strict=True))
    return pa.table({"seq": range(1, len(rows) + 1), **columns})


def test_a_ranking_goes_on_where_its_ids_come_first():
    settings = FitSettings("bradley-terry")
    made = fit_current(votes_of(VOTES), "comparisons", settings)
    assert (made.is_refit, made.seq.tolist()) == (True, [1, 2, 3])
    assert made.notes[0].startswith("1 comparison is left out: without a winner")
    assert made.fit.data.outcome.tolist() == [0, 0, 2] or len(set(made.fit.data.outcome)) == 2
    ids = made.fit.data.items.to_pylist()
    more = fit_current(
        votes_of([("d", "a", "z", "left"), *VOTES[:3]]), "comparisons", settings, made.fit
    )
    assert not more.is_refit
    assert more.fit.data.items.to_pylist() == [*ids, "d"]
    assert more.fit.data.annotators.to_pylist() == ["x", "y", "z"]
    fewer = fit_current(votes_of(VOTES[:1]), "comparisons", settings, more.fit)
    assert fewer.is_refit
