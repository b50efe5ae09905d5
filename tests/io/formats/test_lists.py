"""Records with lists of labels, and columns of 0 and 1 per label."""

import json

import pytest

import annotruth as at


def _said(labels):
    return {tuple(row.values()) for row in labels.to_arrow().to_pylist()}


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1, "annotations": ["a", "b"], "annotators": ["x", "y"]},
        {"id": 1, "annotations": "['a', 'b']", "annotators": "['x', 'y']"},
        {"id": 1, "annotations": "['a' 'b']", "annotators": "['x' 'y']"},  # as NumPy prints them
        {"ID": 1, "Annotations": ["a", "b"], "annotatorIds": ["x", "y"]},
        {"id": 1, "annotations": "a, b", "annotators": "x,y"},
        {"id": 1, "annotations": {"x": "a", "y": "b"}, "annotators": "x,y"},
        {"id": 1, "answers": [{"worker": "x", "label": "a"}, {"worker": "y", "label": "b"}]},
    ],
)
def test_lists_are_read_in_every_spelling(write, record):
    rows = [record, {**record, next(iter(record)): 2}]
    expected = {(item, who, label) for item in (1, 2) for who, label in (("x", "a"), ("y", "b"))}
    for name, content in (
        ("l.json", json.dumps(rows)),
        ("l.jsonl", "\n".join(map(json.dumps, rows))),
        ("m.json", json.dumps({"1": record, "2": record})),
    ):
        assert _said(at.read_labels(write(content, name))) == expected


def test_an_object_of_questions_is_not_taken_for_annotators(refused):
    record = {"id": 1, "annotations": {"toxic": 0, "insult": 1}, "annotators": "x,y"}
    assert "no column for the" in refused(json.dumps(record) + "\n", "l.jsonl")


def test_hostile_text_in_cells_is_not_evaluated(refused):
    cell = "[__import__('os').system('true')]"
    assert refused(f'id,annotations,annotators\n1,"{cell}","[1]"\n', "l.csv")


_HEAD = "id,rater,angry,sad,glad,is_student\n"


def test_columns_of_0_and_1_are_sets_of_labels_without_traits(write):
    rows = "1,a,1,0,1,0\n1,b,0,0,0,1\n2,a,0,1,0,0\n2,b,0,1,1,1\n"
    labels = at.read_labels(write(_HEAD + rows, "l.csv"))
    assert labels.kind == "sets"
    assert (1, "a", '["angry", "glad"]') in _said(labels)
    assert (1, "b", "[]") in _said(labels)
    assert "left out as traits of annotators: is_student" in labels.read_as
    columns = {"item": "id", "annotator": "rater", "label": "sad"}
    assert at.read_labels(write(_HEAD + rows, "m.csv"), columns=columns).n_categories == 2


def test_a_value_that_is_neither_yes_nor_no_is_named(refused):
    rows = "".join(f"{n},{who},1,0,0,1\n" for n in range(60) for who in "ab")
    assert "column 'sad' has '2' in row 121" in refused(_HEAD + rows + "9,c,0,2,0,1\n", "l.csv")
