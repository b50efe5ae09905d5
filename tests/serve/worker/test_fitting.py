"""Fits of current labels: what their notes say."""

import pytest

import annotruth as at
from annotruth.serve.hooks.argilla import Argilla
from annotruth.serve.hooks.message import HookProject
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
