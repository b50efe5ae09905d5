"""`annotruth next` and `annotruth plan` as a person or a script uses them."""

import json

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from annotruth import simulate

COLUMNS = ["item", "n_labels", "add", "uncertainty", "gain", "why"]
GOOD = "item,annotator,label\na,x,1\na,y,2\nb,x,2\nb,y,2\n"


@pytest.fixture
def labels(tmp_path):
    made = simulate.crowd(n_items=40, n_annotators=12, labels_per_item=4, seed=1)
    pc.write_csv(made.labels.to_arrow(), tmp_path / "labels.csv")
    return tmp_path / "labels.csv"


def test_next_prints_a_summary_and_the_items_that_gain_most(run, labels):
    code, out, err = run("next", labels, "--budget", 30)
    assert (code, err) == (0, "")
    assert "add 30 labels to" in out
    assert "stop labelling 0 of 40 items" in out
    assert "Items that gain most" in out
    assert "open which leads: " in out
    assert "Annotators, least telling first" in out


def test_next_json_is_one_object_and_nothing_else(run, labels):
    code, out, err = run("next", labels, "--budget", 30, "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert list(told) == [
        *("n_items", "n_annotators", "n_labels", "budget", "add", "items_to_label"),
        *("items_to_stop", "items_divided", "annotators_to_ask", "annotators_unclear"),
    ]
    assert (told["budget"], told["add"], told["n_items"]) == (30, 30, 40)
    assert json.loads(run("next", labels, "--json")[1])["budget"] is None


def read_json(path):
    return pa.Table.from_pylist(json.loads(path.read_text()))


@pytest.mark.parametrize(
    ("name", "read"),
    [("next.csv", pc.read_csv), ("deep/next.parquet", pq.read_table), ("next.json", read_json)],
)
def test_out_writes_every_item(run, labels, tmp_path, name, read):
    code, out, _ = run("next", labels, "--budget", 30, "--out", tmp_path / name)
    assert code == 0
    assert f"written to {tmp_path / name}" in out
    table = read(tmp_path / name)
    assert table.column_names == COLUMNS
    assert table.num_rows == 40
    assert sum(table["add"].to_pylist()) == 30


def test_out_by_a_name_that_says_no_format_is_refused(run, labels, tmp_path):
    code, out, err = run("next", labels, "--out", tmp_path / "next.txt")
    assert (code, out) == (2, "")
    assert "must end in .csv, .parquet, .json" in err
    assert not (tmp_path / "next.txt").exists()


def test_labels_are_read_as_fit_reads_them(run, tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("film,user,stars\na,x,1\na,y,2\na,y,2\n")
    code, out, _ = run(
        *("next", path, "--columns", "item=film,annotator=user,label=stars", "--json"),
        *("--duplicates", "keep", "--scale", "nominal", "--set", "truth=class"),
    )
    assert code == 0
    assert json.loads(out)["n_labels"] == 3


def test_gold_and_record_are_taken(run, labels, tmp_path):
    (tmp_path / "gold.csv").write_text("item,label\n1,3\n")
    (tmp_path / "prior.csv").write_text("annotator,reliability\n1,0.1\n")
    words = ("--gold", tmp_path / "gold.csv", "--annotator-prior", tmp_path / "prior.csv")
    run("next", labels, *words, "--out", tmp_path / "n.csv", "--quiet")
    assert pc.read_csv(tmp_path / "n.csv")["why"][0].as_py() == "truth known"


def test_quiet_says_nothing(run, labels):
    assert run("next", labels, "--quiet") == (0, "", "")
    assert run("plan", labels, "--target", "accuracy=0.5", "--quiet") == (0, "", "")


def test_plan_tells_both_ways_of_spending(run, labels):
    code, out, err = run("plan", labels, "--target", "hellinger=0.15")
    assert (code, err) == (0, "")
    assert "target: hellinger 0.15" in out
    assert "evenly, by everybody: " in out
    assert "as next advises: " in out
    assert "more labels an item (" in out


def test_plan_json_is_one_object_and_nothing_else(run, labels):
    code, out, err = run("plan", labels, "--target", "score=0.7", "--json", "--seed", 5)
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert list(told) == [
        *("target", "value", "now", "n_items", "n_labels", "n_annotators", "evenly", "advised"),
    ]
    assert list(told["evenly"]) == ["per_item", "low", "high", "reached", "in_all"]
    assert told["evenly"]["in_all"] > told["n_labels"]
    out = run("plan", labels, "--target", "accuracy=0.999", "--json")[1]
    assert json.loads(out)["evenly"]["in_all"] is None


def test_help_teaches(run):
    assert "annotruth next labels.csv --budget 500 --out next.csv" in run("next", "--help")[1]
    assert "annotruth plan labels.csv --target accuracy=0.9" in run("plan", "--help")[1]


BAD = {
    "no budget": ("next", ("--budget", "0"), "budget is 0: give a whole number of labels from 1"),
    "negative budget": ("next", ("--budget", "-5"), "budget is -5"),
    "half a label": ("next", ("--budget", "2.5"), "--budget"),
    "unknown option of the model": ("next", ("--set", "speed=9"), "no option 'speed'"),
    "unknown target": ("plan", ("--target", "speed=9"), "unknown target 'speed'"),
    "target out of range": ("plan", ("--target", "accuracy=1.5"), "target accuracy is 1.5"),
    "target without a value": ("plan", ("--target", "accuracy"), "--target takes NAME=VALUE"),
    "target without a number": ("plan", ("--target", "accuracy=high"), "one NAME=NUMBER"),
    "two targets": ("plan", ("--target", "accuracy=0.9,score=1"), "one NAME=NUMBER"),
    "no target": ("plan", (), "--target"),
    "negative seed": (
        "plan",
        ("--target", "accuracy=0.9", "--seed", "-1"),
        "seed is -1: give a whole number from 0",
    ),
    "score of classes": (
        "plan",
        ("--target", "score=0.5", "--scale", "nominal"),
        "the target score needs an ordinal scale",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_2(run, tmp_path, case):
    command, words, text = BAD[case]
    path = tmp_path / "l.csv"
    path.write_text(GOOD)
    place = ("--out", tmp_path / "out.csv") if command == "next" else ()
    code, out, err = run(command, path, *words, *place)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert text in err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("command", [("next",), ("plan", "--target", "accuracy=0.9")])
def test_a_file_that_is_not_there(run, tmp_path, command):
    code, _, err = run(*command, tmp_path / "absent.csv")
    assert code == 2
    assert "no such file" in err
