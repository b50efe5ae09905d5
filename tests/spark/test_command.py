"""`annotruth fit --engine spark`."""

import csv
import json

import pytest

LABELS = "item,annotator,label\na,x,1\na,y,2\nb,x,2\nb,z,2\nc,y,1\nc,z,1\nc,x,NA\n"


@pytest.fixture
def labels_csv(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(LABELS)
    return path


def read_rows(folder):
    (path,) = folder.glob("part-*.csv")
    with path.open() as file:
        return list(csv.DictReader(file))


def test_tables_are_written_as_in_memory(run, spark, labels_csv, tmp_path):
    out, in_memory = tmp_path / "out", tmp_path / "in_memory"
    arguments = ("fit", labels_csv, "--model", "gpm", "--set", "tol=0.5", "--json")
    code, printed, _ = run(*arguments, "--engine", "spark", "--out", out)
    assert code == 0
    entries = json.loads(printed)
    assert entries["n_labels"] == 6
    # In memory, labels are in canonical order, so sums are rounded differently.
    likelihood = pytest.approx(entries.pop("log_likelihood"), rel=1e-12)
    _, printed, _ = run(*arguments, "--out", in_memory)
    assert json.loads(printed) == entries | {"log_likelihood": likelihood}
    assert json.loads((out / "fit.json").read_text())["n_items"] == 3
    for name in ("items", "annotators", "labels"):
        with (in_memory / f"{name}.csv").open() as file:
            expected = list(csv.DictReader(file))
        rows = read_rows(out / f"{name}.csv")
        assert [list(row) for row in rows] == [list(row) for row in expected]
        assert len(rows) == len(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--report", "x.html"], "--report needs all items in memory"),
        (["--format", "json"], "pass --format csv or --format parquet"),
        (["--memory", "1GB"], "`--memory` is not supported on Spark"),
        (["--model", "glad"], "glad runs on the engines memory and reference only"),
    ],
)
def test_unsupported_options_are_refused(run, spark, labels_csv, arguments, message):
    code, _, error = run("fit", labels_csv, "--engine", "spark", *arguments)
    assert code == 2
    assert message in error
    assert len(error.strip().splitlines()) == 1


def test_a_missing_table_is_named(run, spark):
    code, _, error = run("fit", "no_such_table", "--engine", "spark")
    assert code == 2
    assert "no_such_table" in error
    assert len(error.strip().splitlines()) == 1


def test_spark_options_need_the_engine(run, labels_csv):
    code, _, error = run("fit", labels_csv, "--master", "local[2]")
    assert code == 2
    assert "--engine spark" in error
