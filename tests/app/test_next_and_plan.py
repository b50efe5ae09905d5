"""`annotruth next` and `annotruth plan` as a person or a script uses them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from annotruth import simulate

COLUMNS = ["item", "n_labels", "status", "add", "why", "uncertainty", "gain"]


@pytest.fixture
def labels(tmp_path):
    made = simulate.crowd(n_items=40, n_annotators=12, labels_per_item=4, seed=1)
    pc.write_csv(made.labels.to_arrow(), tmp_path / "labels.csv")
    return tmp_path / "labels.csv"


@pytest.fixture
def saved(run, labels, tmp_path):
    assert run("fit", labels, "--save", tmp_path / "fit", "--quiet")[0] == 0
    return tmp_path / "fit"


def test_next_prints_a_summary_and_the_items_with_the_highest_gain(run, labels):
    code, out, err = run("next", labels, "--budget", 30)
    assert (code, err) == (0, "")
    assert "add 30 labels to" in out
    assert "items: needs labels " in out
    assert out.startswith("WARNING: robust-gpm cannot tell these labels from labels of chance")
    assert "annotators: unsure 12" in out
    assert "Items with the highest gain" in out
    assert "top label undecided: " in out
    assert "Annotators, least informative first" in out


@pytest.fixture
def noise(tmp_path):
    rng = np.random.default_rng(1)
    rows = [f"{e},{s},{'abc'[rng.integers(3)]}" for e in range(100) for s in range(6)]
    (tmp_path / "noise.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    return tmp_path / "noise.csv"


def test_next_of_labels_of_chance_asks_nobody(run, noise, tmp_path):
    code, out, _ = run("next", noise, "--assign", tmp_path / "tasks.csv")
    assert code == 0
    first, second, third, *others = out.splitlines()
    assert first.startswith("WARNING: labels agree no better than chance")
    assert second.startswith("ask nobody yet: check the task and its instructions")
    assert third.startswith("robust-gpm on ")
    assert [line for line in others if line] == [f"written to {tmp_path / 'tasks.csv'}"]
    assert set(pc.read_csv(tmp_path / "tasks.csv")["annotator"].to_pylist()) <= {None, ""}
    printed = json.loads(run("next", noise, "--json")[1])
    assert (printed["ask"], printed["annotators"]["unsure"]) == (0, 6)
    assert [note["kind"] for note in printed["notes"]] == ["chance"]
    plan = run("plan", noise, "--target", "accuracy=0.9")[1]
    assert plan.startswith("WARNING: labels agree no better than chance")
    fitted = json.loads(run("fit", noise, "--json")[1])
    assert fitted["notes"] == printed["notes"]


def test_next_json_is_one_object_and_nothing_else(run, labels):
    code, out, err = run("next", labels, "--budget", 30, "--json")
    printed = json.loads(out)
    assert (code, err) == (0, "")
    assert list(printed) == [
        *("model", "n_items", "n_annotators", "n_labels", "budget", "add", "items", "annotators"),
        *("ask", "notes"),
    ]
    assert (printed["budget"], printed["add"], printed["n_items"]) == (30, 30, 40)
    assert list(printed["items"]) == [
        *("needs labels", "divided", "needs no more labels", "known truth"),
    ]
    assert sum(printed["items"].values()) == 40
    assert list(printed["annotators"]) == ["keep", "drop", "unsure", "too few labels"]
    assert sum(printed["annotators"].values()) == 12
    assert json.loads(run("next", labels, "--json")[1])["budget"] is None


@pytest.mark.parametrize("words", [("next",), ("plan", "--target", "hellinger=0.15")])
def test_a_saved_fit_gives_what_its_labels_give(run, labels, saved, words):
    by_labels, by_fit = (run(words[0], data, *words[1:]) for data in (labels, saved))
    lines = [
        [line for line in out.splitlines() if not line.startswith("Next: ")]
        for _, out, _ in (by_labels, by_fit)
    ]
    assert lines[0] == lines[1]
    assert by_fit[0] == by_labels[0] == 0


def read_json(path):
    return pa.Table.from_pylist(json.loads(path.read_text()))


@pytest.mark.parametrize(
    ("name", "read"),
    [("next.csv", pc.read_csv), ("deep/next.parquet", pq.read_table), ("next.json", read_json)],
)
def test_out_writes_one_row_per_item(run, labels, tmp_path, name, read):
    code, out, _ = run("next", labels, "--budget", 30, "--out", tmp_path / name)
    assert code == 0
    assert f"written to {tmp_path / name}" in out
    table = read(tmp_path / name)
    assert table.column_names == COLUMNS
    assert table.num_rows == 40
    assert sum(table["add"].to_pylist()) == 30


def test_plan_prints_labels_spent_evenly_and_as_advised(run, labels):
    code, out, err = run("plan", labels, "--target", "hellinger=0.15")
    assert (code, err) == (0, "")
    assert "target: hellinger 0.15" in out
    assert "evenly, by all annotators: " in out
    assert "where they gain most, by the annotators to ask: " in out
    assert "more labels per item (" in out
    assert "next round:\nadd " in out


def test_plan_of_a_target_that_is_reached_asks_for_nothing(run, labels):
    _, out, _ = run("plan", labels, "--target", "accuracy=0.1")
    assert out.endswith("reached already\nnext round: this target needs no more labels\n")


def test_plan_json_is_one_object_and_nothing_else(run, labels):
    code, out, err = run("plan", labels, "--target", "score=0.7", "--json", "--seed", 5)
    printed = json.loads(out)
    assert (code, err) == (0, "")
    assert list(printed) == [
        *("target", "value", "now", "n_items", "n_labels", "n_annotators", "evenly", "advised"),
        "next",
    ]
    assert list(printed["evenly"]) == ["per_item", "low", "high", "reached", "total_labels"]
    assert printed["evenly"]["total_labels"] > printed["n_labels"]
    out = run("plan", labels, "--target", "accuracy=0.999", "--json")[1]
    assert json.loads(out)["evenly"]["total_labels"] is None
