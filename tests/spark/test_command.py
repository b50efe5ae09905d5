"""`annotruth fit --engine spark`."""

import csv
import json

import pytest

LABELS = "item,annotator,label\na,x,1\na,y,2\nb,x,2\nb,z,2\nc,y,1\nc,z,1\n"


@pytest.fixture
def labels_csv(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(LABELS)
    return path


def rows(folder):
    (part,) = folder.glob("part-*.csv")
    with part.open() as file:
        return list(csv.DictReader(file))


def test_tables_are_written_as_in_memory(run, spark, labels_csv, tmp_path):
    out, other = tmp_path / "out", tmp_path / "other"
    words = ("fit", labels_csv, "--model", "gpm", "--set", "tol=0.5", "--json")
    code, said, _ = run(*words, "--engine", "spark", "--out", out)
    assert code == 0
    assert json.loads(said)["n_labels"] == 6
    assert run(*words, "--out", other)[1] == said
    assert json.loads((out / "fit.json").read_text())["n_items"] == 3
    for name in ("items", "annotators", "labels"):
        with (other / f"{name}.csv").open() as file:
            wanted = list(csv.DictReader(file))
        got = rows(out / f"{name}.csv")
        assert [list(row) for row in got] == [list(row) for row in wanted]
        assert len(got) == len(wanted)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--report", "x.html"], "--report needs the items in memory"),
        (["--format", "json"], "csv or parquet"),
        (["--memory", "1GB"], "memory is not for labels on Spark"),
        (["--model", "glad"], "glad cannot run on Spark"),
    ],
)
def test_what_spark_cannot_do_is_refused(run, spark, labels_csv, words, told):
    code, _, complaint = run("fit", labels_csv, "--engine", "spark", *words)
    assert code == 2
    assert told in complaint
    assert len(complaint.strip().splitlines()) == 1


def test_a_table_that_is_not_there(run, spark):
    code, _, complaint = run("fit", "no_such_table", "--engine", "spark")
    assert code == 2
    assert "no_such_table" in complaint
    assert len(complaint.strip().splitlines()) == 1


def test_options_of_spark_need_the_engine(run, labels_csv):
    code, _, complaint = run("fit", labels_csv, "--master", "local[2]")
    assert code == 2
    assert "--engine spark" in complaint
