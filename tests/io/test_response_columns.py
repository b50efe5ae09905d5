"""Answers in several columns: boxes are one question; data of items are none."""

import pandas as pd
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.observations.columns.candidates import label_candidates
from annotruth.observations.columns.responses import find_boxes, read_boxes

ROWS = [(item, who) for item in range(4) for who in "abc"]
TRUE = {(0, "a"): "cat", (1, "b"): "dog"}


def boxes(given, yes="true", no="false"):
    return {name: [yes if name in each else no for each in given] for name in ("cat", "dog")}


SETS = [["cat"], ["dog"], ["cat", "dog"], []] * 3
SINGLE = [["cat"], ["dog"], ["cat"], ["cat"]] * 3


@pytest.mark.parametrize(("yes", "no"), [("true", "false"), ("1", "0"), ("TRUE", "FALSE"), (True, False), (1.0, 0.0)])  # fmt: skip
@pytest.mark.parametrize("given", [SETS, SINGLE])
def test_boxes_of_a_batch_are_one_question(tmp_path, yes, no, given):
    columns = {f"Answer.age.{name}": values for name, values in boxes(given, yes, no).items()}
    frame = pd.DataFrame(
        {"HITId": [e for e, _ in ROWS], "WorkerId": [s for _, s in ROWS], **columns}
    )
    frame.to_csv(tmp_path / "b.csv", index=False)
    labels = at.read_labels(tmp_path / "b.csv")
    labels_given = [each if given is SETS else each[0] for each in given]
    expected = at.Labels.of([(e, s, x) for (e, s), x in zip(ROWS, labels_given, strict=True)])
    assert labels.to_arrow().equals(expected.to_arrow())
    assert labels.scale.has_sets == (given is SETS)
    assert "answer age" in labels.read_as


@pytest.mark.parametrize(
    "names", ["Q3_1 Q3_2", "animal.cat animal.dog", "a.option_1 a.option_2", "Q[1] Q[2]"]
)
def test_names_of_boxes(names):
    (found,) = find_boxes(["item", *names.split(), "other_x"]).values()
    assert list(found.values()) == names.split()


@pytest.mark.parametrize(
    ("cat", "dog", "found"),
    [
        (["true", "", None], ["false", "", "true"], [["cat"], None, ["dog"]]),
        (["1", "0", "0"], ["0", "1", "1"], ["cat", "dog", "dog"]),
        (["1", "2", "3"], ["0", "1", "1"], None),
        (["x", "y", "x"], ["x", "x", "x"], None),
        (["1", "1", "1"], ["1", "1", "1"], None),
        (["=1+1", "0", "1"], ["0", "1", "1"], None),
    ],
)
def test_what_boxes_hold(cat, dog, found):
    table = pa.table({"a.cat": cat, "a.dog": dog})
    given = read_boxes(table, {"cat": "a.cat", "dog": "a.dog"})
    if found == [["cat"], None, ["dog"]]:
        found = ["cat", None, "dog"]
    assert (given and given.to_pylist()) == found


QUESTIONS = pd.DataFrame(
    {
        "item": [e for e, _ in ROWS],
        "worker": [s for _, s in ROWS],
        "relevance": [1 + (e * len(s) + ord(s)) % 3 for e, s in ROWS],
        "correctness": ["yes" if (e + ord(s)) % 2 else "no" for e, s in ROWS],
        "topic": [f"t{e % 2}" for e, _ in ROWS],
        "age": [str(20 + ord(s)) for _, s in ROWS],
        "remark": [f"remark {n}" for n in range(len(ROWS))],
        "nothing": [None] * len(ROWS),
        "mood.good": ["1" if e % 2 else "0" for e, _ in ROWS],
        "mood.bad": ["1" if s == "a" else "0" for _, s in ROWS],
    }
)


def test_questions_are_not_data_of_items_and_annotators():
    table = pa.Table.from_pandas(QUESTIONS)
    names = QUESTIONS.columns[2:]
    found, _ = label_candidates(table, names, "item", "worker")
    assert {each.name for each in found} == {"relevance", "correctness"}


@pytest.mark.parametrize("as_file", [True, False])
def test_one_column_per_question(tmp_path, as_file):
    source = single = QUESTIONS.drop(columns=["mood.good", "mood.bad"])
    everything = QUESTIONS
    if as_file:
        source, everything = tmp_path / "q.csv", tmp_path / "m.csv"
        single.to_csv(source, index=False)
        QUESTIONS.to_csv(everything, index=False)
    fits = at.fit(source, "majority", question="all")
    assert list(fits) == ["relevance", "correctness"]
    one = at.fit(source, "majority", question="relevance")
    assert one.items().equals(fits["relevance"].items())
    long = at.fit(
        QUESTIONS[["item", "worker", "relevance"]], "majority", columns={"label": "relevance"}
    )
    assert one.items().equals(long.items())
    assert "question relevance" in one.data.read_as
    mood = at.fit(everything, question="mood")
    assert mood.data.scale.has_sets
    with pytest.raises(at.InputError, match=r"no question 'x' \(found: relevance, correctness"):
        at.fit(source, question="x")


def test_boxes_of_a_long_table_need_no_option(tmp_path):
    frame = QUESTIONS[["item", "worker", "mood.good", "mood.bad"]]
    frame.to_csv(tmp_path / "l.csv", index=False)
    for source, read in ((frame, at.Labels.of), (tmp_path / "l.csv", at.read_labels)):
        labels = read(source)
        assert set(labels.scale.set_labels.to_pylist()) == {"good", "bad"}
        assert "question mood" in labels.read_as
    numbers = frame.assign(**{"mood.good": range(12)})
    with pytest.raises(at.InputError, match="no column for the label"):
        at.Labels.of(numbers)
