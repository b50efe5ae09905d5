"""Three columns without a header: item, annotator, label."""

import random

import pytest

import annotruth as at


def crowd(*, n_items=20, n_people=8, redundancy=5, labels=(1, 2, 3), seed=3, text=False):
    """Items with equally many labels, and people who differ in how many they give."""
    rng = random.Random(seed)
    rows = []
    for item in range(n_items):
        people = sorted(range(n_people), key=lambda person: rng.random() ** (1 / (1 + person)))
        for person in people[-redundancy:]:
            label = labels[(item + (rng.random() < 0.2)) % len(labels)]
            rows.append((f"i{item}" if text else item, f"w{person}" if text else person, label))
    return rows


def lines(rows, separator="\t"):
    return "\n".join(separator.join(map(str, row)) for row in rows)


@pytest.mark.parametrize("separator", ["\t", ",", " ", ";"])
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_items_annotators_and_labels(same, separator, text):
    rows = crowd(text=text)
    fit = same(lines(rows, separator), "triples.txt", rows)
    assert fit.data.read_as == (
        "three columns without a header (item = column 1, annotator = column 2, label = column 3; "
        "if not, pass input_format='triples' and columns={'item': '2', 'annotator': '1', 'label': '3'})"
    )


def test_words_as_labels(same):
    rows = crowd(labels=("cat", "dog"), text=True)
    same(lines(rows), "triples.txt", rows)


def test_annotators_first_where_the_evidence_is_clear(write):
    rows = crowd(n_items=60)
    labels = at.read_labels(write(lines([(p, e, x) for e, p, x in rows]), "triples.txt"))
    assert (labels.n_items, labels.n_annotators) == (60, 8)
    assert "item = column 2, annotator = column 1" in labels.read_as


def test_unclear_columns_are_refused_with_both_commands(refused, write):
    rows = [(p, e, x) for e, p, x in crowd(n_items=10)]
    text = refused(lines(rows), "triples.txt")
    assert "either of the first two, with 8 and 10 different values, may be the item" in text
    assert (
        "input_format='triples' and columns={'item': '1', 'annotator': '2', 'label': '3'}" in text
    )
    named = {"item": "2", "annotator": "1", "label": "3"}
    path = write(lines(rows), "triples.txt")
    labels = at.read_labels(path, input_format="triples", columns=named)
    assert (labels.n_items, labels.n_annotators) == (10, 8)
    assert labels.read_as.endswith("(item = column 2, annotator = column 1, label = column 3)")


def test_numbers_that_may_be_names_of_columns_are_refused(refused, write):
    rows = [(0, 1, 2), *(row for row in crowd() if row[:2] != (0, 1))]
    text = refused(lines(rows, ","), "triples.csv")
    assert "columns={'item': '0', 'annotator': '1', 'label': '2'} if it is names" in text
    path = write(lines(rows, ","), "triples.csv")
    named = {"item": "0", "annotator": "1", "label": "2"}
    assert at.read_labels(path, columns=named).n_labels == len(rows) - 1
    named = {"item": "1", "annotator": "2", "label": "3"}
    labels = at.read_labels(path, columns=named, input_format="triples")
    assert labels.n_labels == len(rows)


@pytest.mark.parametrize(
    "content",
    [
        "1,ann,2\n1,bob,3\n",  # too few rows
        lines([("film", "who", "stars"), *crowd()], ","),  # a header
        lines([("film", "who", 2), *crowd(text=True)], ","),
        lines([(*row, 7) for row in crowd()], ","),  # four columns
        lines([(9 * e, p, x) for e, p, x in crowd(n_items=40, redundancy=1)], ","),
    ],
    ids=["short", "header", "unknown ids", "four columns", "one label per item"],
)
def test_other_tables_are_refused(refused, content):
    refused(content, "table.csv")


@pytest.mark.parametrize("highest", [5, 20])
def test_a_matrix_of_three_annotators_is_one(write, highest):
    rng = random.Random(1)
    rows = [tuple(rng.randint(1, highest) for _ in range(3)) for _ in range(80)]
    labels = at.read_labels(write(lines(rows, ","), "matrix.csv"))
    assert (labels.n_items, labels.n_annotators) == (80, 3)


def test_ids_beside_labels_are_no_matrix(refused):
    rows = [(e, p, x, 10 * p + x) for e, p, x in crowd(n_items=40, n_people=30)]
    assert "put one before it: item,annotator,label" in refused(lines(rows, ","), "four.csv")


def test_other_content_is_refused(refused):
    assert "text with three columns" in refused("a,b\n1,2\n", "l.csv", input_format="triples")
    assert "text with three columns" in refused('{"a": 1}', "l.json", input_format="triples")


def test_a_header_may_be_separated_by_spaces(same):
    rows = crowd()
    same(lines([("item", "annotator", "label"), *rows], " "), "l.txt", rows)


def test_prose_is_not_a_table(refused):
    assert "only one column" in refused("to be or\nnot to be that is\n", "l.txt")
