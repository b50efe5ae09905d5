"""JSON and dicts of two levels: which one holds the annotators is decided by evidence, or asked."""

import json

import numpy as np
import pytest

import annotruth as at
from annotruth.observations import Labels


def crowd(n_items, n_annotators, *, accuracy=0.8, per_item=None, seed=1):
    """Rows of (item, annotator, label), as text, whose ids do not say what they are."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_items)
    rows = []
    for item in range(n_items):
        for who in rng.choice(n_annotators, per_item or n_annotators, replace=False):
            label = truth[item] if rng.random() < accuracy else rng.integers(3)
            rows.append((f"k{item}", f"n{who}", "xyz"[label]))
    return rows


def nested(rows, outer):
    data = {}
    for row in rows:
        data.setdefault(row[outer], {})[row[1 - outer]] = row[2]
    return data


def renamed(rows, item, annotator):
    return [(item.format(e[1:]), annotator.format(s[1:]), x) for e, s, x in rows]


CSV = "item,annotator,label\n{}\n"
TITLES = ("items with their annotators", "annotators with their items")


@pytest.mark.parametrize("size", [(500, 6), (60, 12), (20, 18)])
def test_both_orders_and_a_csv_are_the_same_labels(write, size):
    rows = crowd(*size)
    expected = at.fit(write(CSV.format("\n".join(map(",".join, rows))), "l.csv"), "majority")
    for outer, title in enumerate(TITLES):
        data = nested(rows, outer)
        for source in (write(data, "l.json"), data):
            found = at.fit(source, "majority")
            assert title in found.summary(), found.summary()
            for table in ("items", "annotators"):
                ours, theirs = (
                    getattr(fit, table)().sort_values(table[:-1]).reset_index(drop=True)
                    for fit in (found, expected)
                )
                assert ours.equals(theirs), (title, table)


@pytest.mark.parametrize(
    ("item", "annotator"),
    [
        ("{}.jpg", "n{}"),
        ("img_{}", "n{}"),
        ("https://x.org/{}", "{}"),
        ("what is number {} of", "n{}"),
        ("k{}", "worker {}"),
        ("k{}", "A1B2C3D4E5F{}"),
        ("k{}", "ann{}@x.org"),
        ("i{}", "w{}"),
        ("{}", "Rater-{}"),
    ],
)
@pytest.mark.parametrize("outer", [0, 1])
def test_ids_that_say_what_they_are_decide(write, item, annotator, outer):
    rows = renamed(crowd(4, 4, accuracy=0.0), item, annotator)  # labels say nothing
    labels = at.read_labels(write(nested(rows, outer), "l.json"))
    assert {*map(str, labels.annotators.to_pylist())} == {who for _, who, _ in rows}
    assert labels.read_as.startswith(TITLES[outer])
    assert Labels.of(nested(rows, outer)).read_as.startswith(TITLES[outer])


@pytest.mark.parametrize("outer", [0, 1])
def test_where_either_may_be_the_annotators_one_line_asks(refused, write, outer, run):
    data = nested(crowd(6, 5, accuracy=0.0), outer)
    text = refused(data, "l.json")
    assert "may be the items" in text
    assert "pass input_format='by-item' or input_format='by-annotator'" in text
    for name, n in (("by-item", len(data)), ("by-annotator", 11 - len(data))):
        path = write(data, "l.json")
        assert at.read_labels(path, input_format=name).n_items == n
        assert Labels.of(data, input_format=name).n_items == n
        assert run("fit", path, "--input-format", name, "--quiet")[0] == 0
    code, _, err = run("fit", write(data, "l.json"))
    assert (code, err.count("\n")) == (2, 1)
    assert "pass `--input-format by-item` or `--input-format by-annotator`" in err
    assert Labels.of(data).n_items == len(data)  # as documented


def test_evidence_that_conflicts_decides_nothing(refused):
    # Many annotators of few items, who agree: the numbers say otherwise.
    assert "may be the items" in refused(nested(crowd(5, 100), 0), "l.json")


def test_sets_and_gaps_in_two_levels(write):
    data = {f"{n}.png": {"ann": ["a", "b"], "bob": ["a"], "cy": None, "dan": []} for n in range(3)}
    labels = at.read_labels(write(data, "l.json"))
    assert (labels.scale.has_sets, labels.n_labels) == (True, 9)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"ann": ["x", "y"], "bob": ["y", "y"]},
            "the labels of 'ann' and the other keys are lists",
        ),
        ({"1": {"name": "Al", "age": 3}, "2": {"name": "Bo", "age": 4}}, "not labels of one scale"),
        ({"img1": {"a": {"b": 1}}}, ""),
    ],
)
def test_other_objects_are_refused(refused, data, message):
    assert message in refused(data, "l.json")


FIELDS = [{"item": e, "worker": s, "label": x} for e, s, x in crowd(4, 3)]


@pytest.mark.parametrize(
    "data",
    [
        {n: {str(k): row[n] for k, row in enumerate(FIELDS)} for n in FIELDS[0]},
        {n: [row[n] for row in FIELDS] for n in FIELDS[0]},
        {str(k): row for k, row in enumerate(FIELDS)},
        {"columns": list(FIELDS[0]), "index": [], "data": [list(r.values()) for r in FIELDS]},
        {"schema": {}, "data": FIELDS},
        {
            e: [{"worker": r["worker"], "label": r["label"]} for r in FIELDS if r["item"] == e]
            for e in dict.fromkeys(row["item"] for row in FIELDS)
        },
        {
            s: [{"item": r["item"], "label": r["label"]} for r in FIELDS if r["worker"] == s]
            for s in dict.fromkeys(row["worker"] for row in FIELDS)
        },
    ],
    ids=["columns", "lists", "index", "split", "table", "by item", "by annotator"],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_tables_in_one_object(write, data, indent):
    labels = at.read_labels(write(json.dumps(data, indent=indent), "l.json"))
    expected = sorted(tuple(row.values()) for row in FIELDS)
    assert sorted(tuple(row.values()) for row in labels.to_arrow().to_pylist()) == expected
    assert labels.read_as.startswith("JSON table (12 records")
