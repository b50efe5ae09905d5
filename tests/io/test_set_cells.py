"""Cells that hold several labels are read as sets where that is clear, and asked for where not."""

import json
from contextlib import suppress

import pandas as pd
import pytest

import annotruth as at
from annotruth.observations.columns.set_cells import find_separator

SETS = [["A", "B"], ["B"], ["A"], ["A", "C"], ["B", "C"], ["A", "B", "C"], ["C"], ["A", "B"]]


def table(cells, name="label"):
    rows = [{"item": n // 2, "worker": "xy"[n % 2], name: cell} for n, cell in enumerate(cells)]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("written", "note"),
    [
        (json.dumps, "labels are lists, read as sets"),
        (str, "labels are lists, read as sets"),
        (lambda s: "[" + " ".join(map(repr, s)) + "]", "labels are lists, read as sets"),
        (lambda s: " ".join(f"[{each}]" for each in s), "labels such as [A] [B] are read as sets"),
        (
            "|".join,
            "labels are sets separated by '|'; if each cell is one class, pass scale='nominal'",
        ),
        ("; ".join, "separated by ';'"),
        ("\n".join, "separated by '\\n'"),
        (", ".join, "separated by ','"),
    ],
    ids=["json", "python", "numpy", "brackets", "bar", "semicolon", "newline", "comma"],
)
@pytest.mark.parametrize("options", [{}, {"sets": True}])
def test_sets_in_cells_are_read_without_an_option(tmp_path, written, note, options):
    frame = table([written(labels) for labels in SETS])
    frame.to_csv(tmp_path / "l.csv", index=False)
    frame.to_json(tmp_path / "l.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "l.parquet")
    expected = at.Labels.of(table(SETS)).to_arrow()["label"]
    for source in (frame, *(str(tmp_path / f"l.{each}") for each in ("csv", "jsonl", "parquet"))):
        read = at.Labels.of if source is frame else at.read_labels
        labels = read(source, **options)
        assert labels.to_arrow()["label"].equals(expected)
        assert note in labels.read_as
        assert "\n" not in labels.read_as
    if note != "labels are lists, read as sets":
        assert not at.Labels.of(frame, scale="nominal").scale.has_sets


def test_empty_lists_missing_cells_and_na(tmp_path):
    path = tmp_path / "l.csv"
    table(['["A", "B"]', "[]", "", "NA", '["A"]']).to_csv(path, index=False)
    labels = at.read_labels(path)
    assert labels.to_arrow()["label"].to_pylist() == ['["A", "B"]', "[]", '["A"]']
    assert (labels.n_dropped, "1 cell of NA" in labels.read_as) == (2, True)


def test_lists_of_one_label_each_are_labels():
    labels = at.Labels.of(table(['["A"]', '["B"]', '["A"]', '["A"]']))
    assert (labels.scale.has_sets, labels.scale.names) == (False, ["A", "B"])


def test_one_file_without_several_labels_is_of_sets_as_well(tmp_path):
    for name, cells in (("a", ["A|B", "A", "B", "A"]), ("b", ["A", "B", "B", "B"])):
        frame = table(cells)
        frame["item"] = name + frame["item"].astype(str)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    labels = at.read_labels([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert labels.scale.has_sets
    assert labels.n_labels == 8


def test_truths_are_written_as_labels_are(tmp_path):
    table(["|".join(labels) for labels in SETS]).to_csv(tmp_path / "l.csv", index=False)
    for text in ("A|B", '["A", "B"]', "A, B"):
        gold = pd.DataFrame({"item": [0], "label": [text]})
        labels = at.read_labels(tmp_path / "l.csv").with_gold(gold)
        assert labels.scale.names[labels.known[0]] == '["A", "B"]'


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["Yes, a little", "Yes, a lot", "No"], (None, None)),
        (["1,5", "2,5", "5", "1", "2"], (None, None)),
        (["good;high", "good;low", "bad;high", "bad;low"], (None, ";")),
        (["a | b", "c"], (None, None)),
        (["and/or", "x", "y"], (None, None)),
        (["A|B", "A", "C"], (None, "|")),
        (["|", "A"], (None, None)),
        (["A|B", "A|C", "B|C", "A|B|C"], ("|", None)),
    ],
)
def test_separators_are_found_by_evidence(cells, found):
    assert find_separator(cells) == found
    labels = at.Labels.of(table(cells * 2))
    assert labels.scale.has_sets == (found[0] is not None)
    assert ("pass separator=" in labels.read_as) == (found[1] is not None)


def test_a_list_among_other_labels_is_refused():
    with pytest.raises(
        at.InputError, match=r"the label 'A' is not a list, and others are, such as"
    ):
        at.Labels.of(table(['["A", "B"]', "A"]))
    assert at.Labels.of(table(['["A", "B"]', "A"]), scale="nominal").n_categories == 2


@pytest.mark.parametrize(
    "label", ["[" * 5000, "[1, ", "[{}]", '[["a"]]', "['a' ", "[\x00]", "[=1]"]
)
def test_hostile_cells_are_labels_or_refused(label):
    with suppress(at.InputError):
        assert not at.Labels.of(table([label, "x", label, label])).scale.has_sets
