"""How sets of labels are read, from Python, files and exports."""

from __future__ import annotations

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.observations.sets import key_of, labels_in, members

ROWS = [
    ("a", "ann", ["cat", "dog"]),
    ("a", "bob", ["dog"]),
    ("b", "ann", []),
    ("b", "bob", ["cat"]),
]
KEYS = ['["cat", "dog"]', '["dog"]', "[]", '["cat"]']
HOSTILE = ['a|b, "c"', "new\nline", "<b>x</b>", "=cmd()", "[]", "a + b", "' ; drop", "ü", '["a"]']


def keys(data, **options) -> list[str]:
    return at.Labels.of(data, **options).to_arrow()["label"].to_pylist()


def frame(labels) -> dict[str, list]:
    return {"item": [r[0] for r in ROWS], "annotator": [r[1] for r in ROWS], "label": labels}


@pytest.mark.parametrize(
    "data",
    [
        *(
            [(item, who, kind(labels)) for item, who, labels in ROWS]
            for kind in (list, tuple, set, frozenset)
        ),
        *(make(frame([r[2] for r in ROWS])) for make in (pd.DataFrame, pl.DataFrame, pa.table)),
        pd.DataFrame(frame([set(r[2]) for r in ROWS])),
        {"a": {"ann": {"cat", "dog"}, "bob": {"dog"}}, "b": {"ann": (), "bob": {"cat"}}},
    ],
    ids=[*("lists", "tuples", "sets", "frozen", "pandas", "polars", "arrow", "objects", "mapping")],
)
def test_sets_in_data_of_any_shape(data):
    assert keys(data) == KEYS


def test_sets_in_lines_of_json_where_repeated_labels_count_once(read):
    lines = [{"item": i, "annotator": a, "label": [*labels, *labels]} for i, a, labels in ROWS]
    labels = read("\n".join(map(json.dumps, lines)), "answers.jsonl")
    assert labels.to_arrow()["label"].to_pylist() == KEYS
    assert key_of(["b", "a", "b", None, " ", float("nan")]) == '["a", "b"]'


def test_text_with_a_separator_has_missing_and_empty_answers():
    labels = at.Labels.of(pd.DataFrame(frame(["cat | dog", "dog|", "|", ""])), separator="|")
    assert labels.to_arrow()["label"].to_pylist() == [KEYS[0], KEYS[1], "[]"]
    assert labels.n_dropped == 1


def test_rows_of_one_label_each_are_one_answer():
    rows = [("a", "ann", "dog"), ("a", "bob", "dog"), ("a", "ann", "cat"), ("b", "bob", "cat")]
    labels = at.Labels.of([*rows, ("b", "ann", None)], sets=True)
    assert labels.to_arrow()["label"].to_pylist() == [KEYS[0], KEYS[1], KEYS[3]]


def test_numbers_are_labels_in_order():
    scale = at.Labels.of([("a", "x", [10, 9]), ("a", "y", [2.0])]).scale
    assert scale.set_labels.to_pylist() == ["2", "9", "10"]


def test_categories_that_nobody_gave_are_labels():
    labels = at.Labels.of(ROWS, categories=["dog", "cat", "owl"])
    assert labels.scale.set_labels.to_pylist() == ["dog", "cat", "owl"]
    assert not members(labels.scale)[:, 2].any()
    with pytest.raises(at.InputError, match="label 'dog' is not among the categories cat"):
        at.Labels.of(ROWS, categories=["cat"])


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_survive(label, tmp_path):
    rows = [(e, s, {label, "plain"} if s else {label}) for e in range(4) for s in range(3)]
    fit = at.fit(rows)
    assert sorted(fit.label_table()["label"].to_pylist()) == sorted([label, "plain"])
    assert fit.separator not in label
    joined = fit.items()["labels"].tolist()
    assert {name for each in joined for name in each.split(fit.separator)} <= {label, "plain"}
    fit.save(tmp_path / "fit")
    assert at.load(tmp_path / "fit").items().equals(fit.items())
    page = tmp_path / "report.html"
    fit.report(page)
    assert "<b>x</b>" not in page.read_text()


def test_a_label_with_the_separator_is_not_split_in_lists():
    assert labels_in(keys([("a", "x", ["p|q"]), ("a", "y", ["p", "q"])], separator="|")[0]) == [
        "p|q"
    ]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (
            [("a", "x", "cat"), ("a", "y", "dog")],
            {"sets": True},
            "every answer has exactly one label",
        ),
        ([("a", "x", ["cat"]), ("a", "y", ["dog"])], {}, "every answer has exactly one label"),
        ([("a", "x", []), ("a", "y", [])], {}, "no answer has a label"),
        ([("a", "x", [["cat"]])], {}, "in a set is not a label"),
        ([("a", "x", ["c\0t"])], {}, "NUL"),
        (ROWS, {"separator": ""}, "give the text between labels"),
        (ROWS, {"sets": True, "scale": "ordinal"}, "sets of labels have no order"),
        (ROWS, {"sets": True, "bins": 3}, "sets of labels have no order"),
    ],
)
def test_what_is_refused(data, options, message):
    with pytest.raises(at.InputError, match=message):
        at.Labels.of(data, **options)


def label_studio(answers) -> list[dict]:
    tasks: dict = {}
    for item, who, labels in answers:
        result = [{"type": "choices", "from_name": "q", "value": {"choices": labels}}]
        tasks.setdefault(item, []).append({"completed_by": who, "result": result})
    return [
        {"id": item, "data": {"text": item}, "annotations": given} for item, given in tasks.items()
    ]


def label_studio_min(answers) -> list[dict]:
    return [
        {
            "id": item,
            "annotator": who,
            "annotation_id": n,
            "lead_time": 1.0,
            "q": {"choices": labels},
        }
        for n, (item, who, labels) in enumerate(answers)
    ]


def doccano(answers) -> list[dict]:
    records: dict = {}
    for item, who, labels in answers:
        given = records.setdefault(item, {"id": item, "text": "t", "annotations": []})
        given["annotations"] += [{"label": label, "user": who} for label in labels]
    return list(records.values())


def argilla(answers) -> list[dict]:
    records: dict = {}
    for item, who, labels in answers:
        task = records.setdefault(item, {"id": item, "fields": {}, "responses": {"q": []}})
        task["responses"]["q"].append({"user_id": who, "value": labels, "status": "submitted"})
    return list(records.values())


EXPORTS = {
    "label-studio": (label_studio, KEYS),
    "label-studio-min": (label_studio_min, KEYS),
    "argilla": (argilla, KEYS),
    "doccano": (doccano, [KEYS[0], KEYS[1], KEYS[3]]),  # does not list those who gave no label
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_of_several_choices_are_sets(name, read):
    make, expected = EXPORTS[name]
    labels = read(json.dumps(make(ROWS)), "export.json")
    assert labels.scale.has_sets
    assert labels.to_arrow()["label"].to_pylist() == expected
    assert "answers of several labels" in labels.read_as or "answer of several" in labels.read_as


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_of_one_choice_stay_labels(name, tmp_path):
    path = tmp_path / "export.json"
    single = [("a", "ann", ["cat"]), ("a", "bob", ["dog"]), ("b", "ann", ["cat"])]
    path.write_text(json.dumps(EXPORTS[name][0](single)))
    labels = at.read_labels(path)
    assert not labels.scale.has_sets
    assert labels.to_arrow()["label"].to_pylist() == ["cat", "dog", "cat"]


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("first", ["single", "sets"])
def test_of_several_exports_only_one_may_have_sets(name, first, tmp_path):
    make, expected = EXPORTS[name]
    single = [("c", "ann", ["cat"]), ("c", "bob", []), ("d", "ann", ["dog"])]
    as_keys = ['["cat"]', "[]", '["dog"]'] if name != "doccano" else ['["cat"]', '["dog"]']
    files = [tmp_path / "single.json", tmp_path / "sets.json"]
    files[0].write_text(json.dumps(make(single)))
    files[1].write_text(json.dumps(make(ROWS)))
    keys = [*as_keys, *expected]
    if first == "sets":
        files.reverse()
        keys = [*expected, *as_keys]
    labels = at.read_labels(files)
    assert labels.scale.has_sets
    assert labels.to_arrow()["label"].to_pylist() == keys


def test_a_label_of_one_table_is_a_set_of_one_if_another_has_lists(tmp_path):
    single, several = tmp_path / "single.jsonl", tmp_path / "several.jsonl"
    row = {"item": "a", "annotator": "ann", "label": "cat"}
    single.write_text(json.dumps(row) + "\n" + json.dumps({**row, "item": "b"}))
    several.write_text(json.dumps({**row, "item": "c", "label": ["cat", "dog"]}))
    labels = at.read_labels([single, several])
    assert labels.to_arrow()["label"].to_pylist() == ['["cat"]', '["cat"]', '["cat", "dog"]']


def test_ground_truth_of_label_studio_is_known(read):
    tasks = label_studio([*ROWS, ("c", "ann", ["cat"])])
    truth = [{"type": "choices", "from_name": "q", "value": {"choices": ["owl", "cat"]}}]
    tasks[0]["annotations"].append({"completed_by": "x", "ground_truth": True, "result": truth})
    tasks[2]["annotations"][0]["result"][0]["value"]["choices"] = ["cat", "owl"]
    labels = read(json.dumps(tasks), "export.json")
    known = labels.scale.categories[int(labels.known[0])].as_py()
    assert labels_in(known) == ["cat", "owl"]
    assert (labels.known[1:] == -1).all()
