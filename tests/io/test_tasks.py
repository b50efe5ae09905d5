"""Tasks and predictions for labelling tools, against the shapes that the tools document."""

import csv
import json
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.app import outputs
from annotruth.errors import InputError
from annotruth.io.tasks import LabelControl, Task, task_format, write_predictions, write_tasks
from annotruth.io.writers import write_records

HOSTILE = '=cmd|"/c calc"!A1\n</script>,\u202e"\\'
TASKS = [
    Task("a", {"text": "Hello", "image": None}, ["ann", "bob"], 3, 0.02),
    Task(HOSTILE, {"text": HOSTILE, "image": "http://x/y.png"}, [HOSTILE], 1, float("nan")),
]


@pytest.fixture
def write(tmp_path):
    def write(name, format=None, tasks=TASKS):
        write_tasks(tasks, tmp_path / name, task_format(name, format))
        return tmp_path / name

    return write


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_label_studio_gets_tasks_with_data_and_meta(write):
    first, second = json.loads(write("a.json").read_text("utf-8"))
    assert first == {
        "data": {
            "text": "Hello",
            "image": None,
            "annotruth_item": "a",
            "annotruth_annotators": "ann, bob",
        },
        "meta": {"annotators": ["ann", "bob"], "labels": 3, "gain": 0.02},
    }
    assert second["data"]["text"] == second["data"]["annotruth_item"] == HOSTILE
    assert second["meta"] == {"annotators": [HOSTILE], "labels": 1, "gain": None}


def test_prodigy_gets_one_line_per_task(write):
    lines = write("a.jsonl").read_text("utf-8").split("\n")
    assert lines.pop() == ""
    first, second = map(json.loads, lines)
    assert first["text"] == "Hello"
    assert first["annotruth_annotators"] == ["ann", "bob"]
    assert first["meta"] == {"item": "a", "labels": 3, "gain": 0.02}
    assert (second["text"], second["annotruth_item"]) == (HOSTILE, HOSTILE)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({}, "7"),
        ({"n": 3, "body": "Hi"}, "Hi"),
        ({"text": "T", "body": "Hi"}, "T"),
        ({"image": "x.png"}, None),
    ],
)
def test_prodigy_always_has_something_to_show(write, content, text):
    path = write("a.jsonl", tasks=[Task(7, content, [], 1, 0.1)])
    shown = json.loads(path.read_text("utf-8"))
    assert shown.get("text") == text
    assert content.items() <= shown.items()


def test_mturk_gets_one_row_per_hit_with_variables_as_columns(write):
    rows = read_csv(write("a.csv", "mturk"))
    assert list(rows[0]) == [
        *("text", "image", "annotruth_item", "annotruth_annotators", "assignments", "gain"),
    ]
    assert [row["assignments"] for row in rows] == ["3", "1"]
    assert rows[0]["annotruth_annotators"] == "ann, bob"
    assert rows[1]["text"] == rows[1]["annotruth_item"] == f"'{HOSTILE}"
    assert rows[1]["image"] == "http://x/y.png"
    tasks = [Task("a", {"Input.text": "Hello"}, [], 1, 0.1)]  # of an earlier batch
    (row,) = read_csv(write("b.csv", "mturk", tasks=tasks))
    assert row["text"] == "Hello"


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_without_tasks_the_file_is_empty(write, name):
    text = write(name, tasks=[]).read_text()
    assert text == ("[]\n" if name == "a.json" else "")


def test_a_name_without_a_known_ending_needs_a_format():
    assert task_format("a.txt", "mturk") == "mturk"
    with pytest.raises(InputError, match=r"ends in \.csv, \.parquet, \.json, \.jsonl"):
        task_format("a.txt")
    with pytest.raises(InputError, match="unknown format 'excel'"):
        task_format("a.csv", "excel")


LABELS = [(e, s, ["cat", "dog"][(e + (s == "z")) % 2]) for e in range(6) for s in "wxyz"]


def predictions(fit, path, **control):
    write_predictions(
        fit.tables()["items"],
        fit.data.covariates.items,
        fit.data.scale,
        path,
        version="annotruth majority 2026-05-03",
        control=LabelControl.parse(control),
    )
    return json.loads(path.read_text("utf-8"))


def test_the_version_of_predictions_is_the_model_and_the_day_of_the_fit(tmp_path):
    day = datetime(2025, 12, 31, 23, 59, tzinfo=UTC)
    fit = replace(at.fit(LABELS, "majority"), fitted_at=day)
    outputs.write_predictions(fit, tmp_path / "p.json", None)
    task, *_ = json.loads((tmp_path / "p.json").read_text("utf-8"))
    assert task["predictions"][0]["model_version"] == "annotruth majority 2025-12-31"


def test_predictions_have_the_documented_shape(tmp_path):
    fit = at.fit(LABELS, "majority")
    tasks = predictions(fit, tmp_path / "p.json", name="sentiment_class", to_name="message")
    table = fit.items()
    assert [task["id"] for task in tasks] == list(range(6))
    for task, label, confidence in zip(tasks, table["label"], table["confidence"], strict=True):
        assert set(task) == {"id", "data", "predictions"}
        assert task["data"] == {"annotruth_item": task["id"]}
        (prediction,) = task["predictions"]
        assert prediction["model_version"] == "annotruth majority 2026-05-03"
        assert prediction["score"] == confidence
        # https://labelstud.io/guide/tasks.html#Example-JSON-format
        assert prediction["result"] == [
            {
                "from_name": "sentiment_class",
                "to_name": "message",
                "type": "choices",
                "value": {"choices": [label]},
            }
        ]


SCALES = {
    "stars": ([1, 2, 3], {}, "rating", int),
    "other integers": ([0, 50, 100], {}, "number", float),
    "fractions": ([0.5, 1.5, 2.0], {}, "number", float),
    "numbers as choices": ([1, 2, 3], {"type": "choices"}, "choices", list),
}


@pytest.mark.parametrize("model", ["majority", "mean"])
@pytest.mark.parametrize("case", SCALES)
def test_predictions_follow_the_scale(tmp_path, case, model):
    categories, control, kind, expected = SCALES[case]
    labels = [(f"item {e}", s, categories[(e * s) % 3]) for e in range(5) for s in range(1, 6)]
    tasks = predictions(at.fit(labels, model), tmp_path / "p.json", **control)
    assert "id" not in tasks[0]
    assert tasks[0]["data"]["annotruth_item"] == "item 0"
    for task in tasks:
        (result,) = task["predictions"][0]["result"]
        assert result["type"] == kind
        assert isinstance(result["value"][kind], expected)
        assert (task["predictions"][0]["score"] is None) == (model == "mean")


def test_words_in_order_are_choices_and_no_stars(tmp_path):
    labels = [(e, s, ["bad", "good"][(e + s) % 2]) for e in range(4) for s in range(3)]
    fit = at.fit(labels, "mean", categories=["bad", "good"], scale="ordinal")
    tasks = predictions(fit, tmp_path / "p.json")
    assert tasks[0]["predictions"][0]["result"][0]["value"]["choices"][0] in ("bad", "good")
    with pytest.raises(InputError, match="'type': 'choices'"):
        predictions(fit, tmp_path / "stars.json", type="rating")
    assert not (tmp_path / "stars.json").exists()


def test_predictions_in_partitions_keep_their_content(tmp_path, monkeypatch):
    monkeypatch.setattr("annotruth.io.tasks._ROWS_AT_ONCE", 4)
    content = pa.table({"item": list(range(6)), "text": [f"text {e}" for e in range(6)]})
    fit = at.fit(at.Labels.of(LABELS).with_item_covariates(content), "majority")
    tasks = predictions(fit, tmp_path / "p.json")
    assert [task["data"] for task in tasks] == [
        {"text": f"text {e}", "annotruth_item": e} for e in range(6)
    ]


def test_predictions_carry_content_and_hostile_text(tmp_path):
    labels = at.Labels.of([("a", "x", HOSTILE), ("a", "y", HOSTILE), (HOSTILE, "x", "no")])
    content = pa.table({"item": ["a", HOSTILE], "text": [HOSTILE, None]})
    fit = at.fit(labels.with_item_covariates(content), "majority")
    tasks = predictions(fit, tmp_path / "p.json")
    assert [task["data"]["annotruth_item"] for task in tasks] == ["a", HOSTILE]
    assert tasks[0]["data"]["text"] == HOSTILE
    assert tasks[0]["predictions"][0]["result"][0]["value"] == {"choices": [HOSTILE]}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"nmae": "x"}, "no 'nmae'"),
        ({"type": "stars"}, "type 'stars' .* is unknown: choose choices"),
    ],
)
def test_unknown_controls_are_refused(values, text):
    with pytest.raises(InputError, match=text):
        LabelControl.parse(values)


def test_predictions_end_in_json(tmp_path):
    with pytest.raises(InputError, match=r"ends in \.json"):
        predictions(at.fit(LABELS, "majority"), tmp_path / "p.csv")


def annotated(task, person, label):
    """Return a task as Label Studio exports it, under a new id."""
    result = {"from_name": "label", "to_name": "text", "type": "choices"}
    return {
        **task,
        "id": 900 + person,
        "annotations": [
            {"completed_by": person, "result": [{**result, "value": {"choices": [label]}}]}
        ],
    }


def test_labels_of_exported_tasks_go_to_the_items_they_were_made_for(tmp_path):
    fit = at.fit(LABELS, "majority")
    tasks = predictions(fit, tmp_path / "p.json")
    exported = [annotated(task, person, "cat") for person in (1, 2) for task in tasks]
    (tmp_path / "export.json").write_text(json.dumps(exported))
    labels = at.fit(tmp_path / "export.json", "majority").data
    assert labels.items.to_pylist() == list(range(6))
    assert labels.annotators.to_pylist() == [1, 2]

    short = [
        {**task["data"], "annotruth_annotators": f"p{n}", "id": 50 + n, "annotator": n}
        | {"annotation_id": n, "lead_time": 1.0, "label": "cat"}
        for n, task in enumerate(exported)
    ]
    (tmp_path / "short.json").write_text(json.dumps(short))
    assert at.fit(tmp_path / "short.json", "majority").data.items.to_pylist() == list(range(6))


def test_labels_from_prodigy_and_mturk_go_to_the_items_they_were_made_for(tmp_path, write):
    lines = [json.loads(line) for line in write("a.jsonl").read_text("utf-8").splitlines()]
    done = [
        {**line, "_input_hash": n, "_task_hash": n, "answer": "accept", "accept": ["cat"]}
        | {"options": [], "_annotator_id": s}
        for s in ("x", "y")
        for n, line in enumerate(lines)
    ]
    write_records(done, tmp_path / "done.jsonl", as_lines=True)
    labels = at.fit(tmp_path / "done.jsonl", "majority").data
    assert set(labels.items.to_pylist()) == {"a", HOSTILE}

    with (tmp_path / "batch.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["HITId", "WorkerId", "Input.annotruth_item", "Answer.label"])
        rows = read_csv(write("a.csv", "mturk"))
        writer.writerows(
            (f"HIT{n}", s, row["annotruth_item"], "cat")
            for s in ("x", "y")
            for n, row in enumerate(rows)
        )
    labels = at.fit(tmp_path / "batch.csv", "majority").data
    assert set(labels.items.to_pylist()) == {"a", HOSTILE}


def test_a_file_of_predictions_has_no_labels_to_fit(tmp_path):
    predictions(at.fit(LABELS, "majority"), tmp_path / "p.json")
    with pytest.raises(InputError) as error:
        at.fit(tmp_path / "p.json")
    assert "\n" not in str(error.value)
