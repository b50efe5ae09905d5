"""Which questions a file has, and the labels of each."""

import io
import json
import sqlite3
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import annotruth as at
from annotruth.observations.options import ReadOptions
from annotruth.questions.fitting import read_questions

ROWS = [
    {"question": question, "item": item, "annotator": who, "label": label}
    for question, labels in {"tone": ("good", "bad"), "stars": ("1", "5")}.items()
    for item, label in zip(("a", "b"), labels, strict=True)
    for who in ("ann", "bob")
]
TABLE = pa.Table.from_pylist(ROWS)


def read(source, **options):
    return read_questions(source, ReadOptions(question="all", **options))


def summary(labels):
    """The rows of each question."""
    return {
        name: sorted(
            zip(
                *(
                    map(str, each.to_codes().column(k).to_pylist())
                    for k in ("item", "annotator", "label")
                ),
                strict=True,
            )
        )
        for name, each in labels.items()
    }


EXPECTED = {
    name: sorted(
        (row["item"], row["annotator"], row["label"]) for row in ROWS if row["question"] == name
    )
    for name in ("tone", "stars")
}


def write_sqlite(table, path):
    with sqlite3.connect(path) as database:
        database.execute("create table votes (question, item, annotator, label)")
        rows = [tuple(row.values()) for row in table.to_pylist()]
        database.executemany("insert into votes values (?, ?, ?, ?)", rows)


WRITERS = {
    "l.csv": pa.csv.write_csv,
    "l.parquet": pa.parquet.write_table,
    "l.jsonl": lambda table, path: path.write_text("\n".join(map(json.dumps, table.to_pylist()))),
    "l.sqlite": write_sqlite,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_long_table_names_its_questions_in_a_column(tmp_path, name):
    WRITERS[name](TABLE, tmp_path / name)
    labels = read(tmp_path / name)
    assert summary(labels) == EXPECTED
    assert labels["stars"].scale.kind == "ordinal"
    assert labels["tone"].read_as.endswith("question tone")


def test_a_frame_names_its_questions_in_a_column():
    assert summary(read(TABLE)) == EXPECTED
    assert read(TABLE)["tone"].frame == "pyarrow"
    assert summary(read(TABLE.take(list(range(TABLE.num_rows))[::-1]))) == EXPECTED


def test_one_question_of_a_table_is_read_as_its_rows_alone(tmp_path):
    pa.csv.write_csv(TABLE, tmp_path / "l.csv")
    labels = at.read_labels(tmp_path / "l.csv", question="tone")
    alone = TABLE.slice(0, 4).drop_columns(["question"])
    assert labels.same_as(at.Labels.of(alone))
    assert at.fit(TABLE, question="tone").data.same_as(labels)


def test_the_column_of_questions_can_be_named(tmp_path):
    renamed = TABLE.rename_columns(["dimension", "item", "annotator", "label"])
    pa.csv.write_csv(renamed, tmp_path / "l.csv")
    columns = {"question": "dimension"}
    assert summary(read(tmp_path / "l.csv", columns=columns)) == EXPECTED
    assert at.read_labels(tmp_path / "l.csv", columns=columns, question="tone").n_labels == 4
    with pytest.raises(at.InputError, match="several questions, tone, stars: choose one"):
        at.read_labels(tmp_path / "l.csv", columns=columns)
    with pytest.raises(at.InputError, match="no column 'nix' for the question"):
        read(tmp_path / "l.csv", columns={"question": "nix"})


def test_a_task_beside_an_item_is_a_question_only_if_asked(tmp_path):
    renamed = TABLE.rename_columns(["task", "item_id", "worker", "answer"])
    pa.csv.write_csv(renamed, tmp_path / "l.csv")
    assert summary(read(tmp_path / "l.csv")) == EXPECTED
    # Without the option the task is the item, as ever.
    assert at.read_labels(tmp_path / "l.csv", duplicates="keep").items.to_pylist() == [
        *("tone", "stars")
    ]


def test_a_table_with_one_possible_item_has_no_questions(tmp_path):
    pa.csv.write_csv(
        pa.table({"question": ["a"], "worker": ["w"], "answer": [1]}), tmp_path / "l.csv"
    )
    with pytest.raises(at.InputError, match="has no questions: leave out question"):
        read(tmp_path / "l.csv")
    with pytest.raises(at.InputError, match="has no questions: leave out question"):
        at.read_labels(tmp_path / "l.csv", question="a")


def test_a_table_of_items_and_questions_says_how_to_read_it(tmp_path):
    pa.csv.write_csv(TABLE, tmp_path / "l.csv")
    with pytest.raises(at.InputError, match=r"could both be the item; .*question=.all"):
        at.read_labels(tmp_path / "l.csv")


def test_a_row_without_a_question_is_refused(tmp_path):
    (tmp_path / "l.csv").write_text("question,item,annotator,label\nq,1,a,x\n,2,a,x\n")
    with pytest.raises(at.InputError, match=r"1 of 2 rows have no question \(first: row 2\)"):
        read(tmp_path / "l.csv")


def test_questions_of_several_files_may_differ(tmp_path):
    pa.csv.write_csv(TABLE.slice(0, 4), tmp_path / "1.csv")
    pa.csv.write_csv(TABLE.slice(4), tmp_path / "2.csv")
    assert summary(read([tmp_path / "1.csv", tmp_path / "2.csv"])) == EXPECTED
    assert summary(read(tmp_path)) == EXPECTED


def test_standard_input_is_read_once(monkeypatch):
    sink = io.BytesIO()
    pa.csv.write_csv(TABLE, sink)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sink.getvalue())))
    assert summary(read("-")) == EXPECTED


TONES = ((1, "good"), (2, "bad"))
EXPORTS = {
    "label-studio": lambda task: [
        {
            "id": task,
            "data": {"text": "t"},
            "annotations": [
                {
                    "completed_by": who,
                    "result": [
                        {"from_name": name, "type": "choices", "value": {"choices": [choice]}}
                        for name, choice in (("tone", tone), ("topic", "art"))
                    ],
                }
                for who, tone in TONES
            ],
        }
    ],
    "label-studio-min": lambda task: [
        {
            "id": task,
            "annotator": who,
            "annotation_id": 9,
            "lead_time": 1,
            "text": "t",
            "tone": tone,
            "topic": "art" if who == 1 else "war",
        }
        for who, tone in TONES
    ],
    "argilla": lambda task: [
        {
            "id": str(task),
            "fields": {"text": "t"},
            "responses": {
                name: [{"user_id": who, "value": value, "status": "submitted"} for who in "ab"]
                for name, value in (("tone", "good"), ("topic", "art"))
            },
        }
    ],
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_have_a_question_per_tag_that_differs_between_annotators(write, name):
    path = write("export.json", json.dumps([row for task in (1, 2) for row in EXPORTS[name](task)]))
    labels = read(path)
    assert {name: each.n_labels for name, each in labels.items()} == {"tone": 4, "topic": 4}
    assert "art" in labels["topic"].scale.names


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("HITId,WorkerId,Answer.tone,Answer.topic", "{i},{w},good,art"),
        ("INPUT:i,ASSIGNMENT:worker_id,OUTPUT:tone,OUTPUT:topic", "{i},{w},good,art"),
        ("_unit_id,_worker_id,tone,tone_gold,topic,topic_gold", "{i},{w},good,,art,"),
        ("user,instance_id,tone:::good,topic:::art", "{w},{i},true,true"),
    ],
    ids=["mturk", "toloka", "crowdflower", "potato"],
)
def test_tables_of_platforms_have_several_questions(tmp_path, header, line):
    lines = [line.format(i=i, w=w) for i in (1, 2, 3) for w in ("a", "b")]
    (tmp_path / "t.csv").write_text("\n".join([header, *lines]) + "\n")
    labels = read(tmp_path / "t.csv")
    assert {name: each.n_labels for name, each in labels.items()} == {"tone": 6, "topic": 6}
    assert labels["topic"].scale.names == ["art"]


def test_a_file_without_questions_is_refused(tmp_path):
    (tmp_path / "wide.csv").write_text("item,a,b\n1,1,2\n2,1,1\n")
    with pytest.raises(at.InputError, match="has no questions to choose from: leave out"):
        read(tmp_path / "wide.csv")


@pytest.mark.parametrize("read_other", [at.read_labels, at.read_comparisons, at.next_labels])
def test_only_fit_takes_all_questions(tmp_path, read_other):
    pa.csv.write_csv(TABLE, tmp_path / "l.csv")
    with pytest.raises(at.InputError, match="question"):
        read_other(tmp_path / "l.csv", question="all")


def test_gold_is_of_a_question(tmp_path):
    gold = pa.table({"question": ["tone"], "item": ["a"], "label": ["good"]})
    labels = read_questions(TABLE, ReadOptions(question="all"), gold=gold)
    assert labels["tone"].known.tolist() == [labels["tone"].scale.names.index("good"), -1]
    assert (labels["stars"].known < 0).all()
    for wrong, text in (
        (gold.drop_columns(["question"]), "gold has no column 'question'"),
        (gold.set_column(0, "question", [["tones"]]), "unknown question 'tones'"),
    ):
        with pytest.raises(at.InputError, match=text):
            read_questions(TABLE, ReadOptions(question="all"), gold=wrong)


def test_annotators_of_one_question_can_be_left_out_and_have_a_prior(tmp_path):
    rows = [*ROWS, {"question": "tone", "item": "a", "annotator": "eve", "label": "bad"}]
    table = pa.Table.from_pylist(rows)
    pa.csv.write_csv(table, tmp_path / "l.csv")
    for source in (table, tmp_path / "l.csv"):
        left = read(source, drop=["eve"])
        assert [each.n_annotators for each in left.values()] == [2, 2]
    with pytest.raises(at.InputError, match="no annotator to leave out has a label"):
        read(table, drop=["nobody"])
    prior = {"eve": 0.2}
    labels = read_questions(table, ReadOptions(question="all"), annotator_prior=prior)
    assert labels["tone"].annotator_prior.sum() == pytest.approx(10)
    assert labels["stars"].annotator_prior.sum() == 0
