"""What is not labels of items by people is refused by what it is; numbers as Excel writes them."""

import json

import pytest

import annotruth as at

_PAIR = {"response1": "", "response2": "", "annotator1": 1}
_SPANS = {"answer": "accept", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
_SUMMARY = {"summaries": [{"policy": "a"}, {"policy": "b"}], "worker": "w"}


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        ("4 2 2 0.5\n0 0 1\n0 1 1\n1 0 0\n", "g.txt", "there are 4 labels, and 3 follow"),
        (
            {"id": 1, "labels": ["a", "b"], "annotators": ["x"]},
            "l.json",
            "item 1 has 2 labels in 'labels' by 1 in 'annotators'",
        ),
        ('{"answers": [{"answerContent": {}, "workerId": "w"}]}', "w.json", "about one item"),
        ("<?xml version='1.0'?><a/>", "l.csv", "XML or HTML"),
        ("id,who,a,b,c\n", "l.csv", "no column"),
        ("item,x,y\n" + "a,0.25,0.75\nb,0.5,0.5\nc,0.1,0.9\n" * 2, "m.csv", "no column"),
        (
            "item,x,y\n" + "".join(f"i{n},{n / 8},{1 - n / 8}\n" for n in range(8)),
            "m.csv",
            "every row has the sum 1",
        ),
        ("item,label1,label2\na,x,y\na,x,x\n", "l.csv", "in no order of annotators"),
        ([{**_PAIR, "cmp_key": "a_b"}], "p.json", "rank them with annotruth.rank"),
        ({"text": "Ann", "_annotator_id": "x", **_SPANS}, "p.jsonl", "spans in a text"),
        ([{"text": "Ann", "_annotator_id": "x", **_SPANS}], "p.json", "spans in a text"),
        ("[ ]\n", "l.json", "the JSON list is empty"),
    ],
)
def test_labels_that_cannot_be_read(refused, content, name, words):
    assert words in refused(content, name)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({**_PAIR, "cmp_key": "a_b_c"}, "two names joined by one underscore"),
        (
            {**_PAIR, "cmp_key": "a_b", "annotator1": 3},
            "annotator1 is 3: it must be one of 0, 1, 2",
        ),
        ({**_SUMMARY, "choice": 2}, "choice is 2: it must be one of 0, 1"),
        ({**_SUMMARY, "choice": 0, "summaries": [{}]}, "has 1 summaries, not two"),
    ],
)
def test_comparisons_that_cannot_be_read(write, record, words):
    with pytest.raises(at.InputError, match=words):
        at.read_comparisons(write(json.dumps(record) + "\n", "p.jsonl"))


def test_ranks_of_more_than_two_systems_are_refused(write):
    names = ["judgeID", *(f"system{n}{what}" for n in (1, 2, 3) for what in ("Id", "rank"))]
    path = write(",".join(names) + "\nj,a,1,b,2,c,3\n", "w.csv")
    with pytest.raises(at.InputError, match="more than two systems"):
        at.read_comparisons(path)


def test_a_matrix_with_equal_sums_is_read_where_it_is_named(write):
    path = write("item,x,y\n" + "".join(f"i{n},{n},{8 - n}\n" for n in range(8)), "m.csv")
    assert at.read_labels(path, input_format="wide").n_annotators == 2


def test_decimal_commas_are_numbers_unless_the_caller_says_otherwise(write):
    rows = "".join(f"{i};{p};{(i + k) % 4},5\n" for i in range(4) for k, p in enumerate("abc"))
    path = write("item;annotator;label\n" + rows, "e.csv")
    labels = at.read_labels(path)
    assert set(labels.scale.categories.to_pylist()) == {0.5, 1.5, 2.5, 3.5}
    assert "decimal commas" in labels.read_as
    assert at.read_labels(path, memory="1GB").same_as(labels)
    assert at.read_labels(path, separator=",").kind == "sets"
    listed = at.read_labels(path, categories=["0,5", "1,5", "2,5", "3,5"])
    assert "decimal" not in listed.read_as
    rows = [line.split(";") for line in path.read_text().splitlines()]
    quoted = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n"
    assert "decimal" not in at.read_labels(write(quoted, "c.csv"), scale="nominal").read_as


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_utf_16_is_read_but_not_within_a_memory_limit(write, refused, encoding):
    text = "item\tannotator\tlabel\nä\tann\t1\nä\tbob\t2\n"
    labels = at.read_labels(write(text.encode(encoding), "l.txt"))
    assert labels.items.to_pylist() == ["ä"]
    for content, options in (
        (text.encode(encoding), {"memory": "1GB"}),
        (text.encode(encoding)[:-1], {}),
    ):
        assert "save the file as UTF-8" in refused(content, "l.csv", **options)
