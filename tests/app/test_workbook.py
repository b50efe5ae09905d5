"""Workbooks by commands: written, recognised, filled in by people, and read back."""

import hashlib
import importlib.util
import json

import pytest

import annotruth as at

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("xlsxwriter")
pytest.importorskip("python_calamine")

HOSTILE = ["=1+1", "<b>x</b>", "a\nb", "007", "-5", "日本", "x" * 300]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with labels of people with hostile names."""
    monkeypatch.chdir(tmp_path)
    rows = [
        (f"i{e}", s, "abc"[(e + (k == e % 9)) % 3])
        for e in range(24)
        for k, s in enumerate(HOSTILE)
    ]
    at.Labels.of(rows).to_arrow().to_pandas().to_csv("labels.csv", index=False)
    return tmp_path


def decide(path, **decisions):
    """Write decisions into the workbook, as somebody does in a spreadsheet."""
    book = openpyxl.load_workbook(path)
    sheet = book["Decisions"]
    header = [cell.value for cell in sheet[1]]
    who, decision = (header.index(name) for name in ("Annotator", "Your decision"))
    for row in sheet.iter_rows(min_row=2):
        row[decision].value = decisions.get(str(row[who].value), row[decision].value)
    book.save(path)


@pytest.mark.parametrize("name", HOSTILE)
def test_decisions_are_read_back(run, folder, name):
    assert run("fit", "labels.csv", "--out", "r.xlsx", "--save", "fit", "--quiet")[0] == 0
    decide("r.xlsx", **{name: " Do not pay", "007": "pay" if name != "007" else "do not pay"})
    for words in (("fit", "labels.csv"), ("update", "fit", "labels.csv"), ("next", "fit")):
        code, out, err = run(*words, "--drop", "r.xlsx", "--json")
        assert code == 0, err
        assert json.loads(out)["n_annotators"] == len(HOSTILE) - 1
    assert name not in at.load("fit").data.annotators.to_pylist()


def test_sheets_may_be_in_any_order(run, folder):
    assert run("fit", "labels.csv", "--out", "r.xlsx", "--quiet")[0] == 0
    decide("r.xlsx", **{"007": "do not pay"})
    book = openpyxl.load_workbook("r.xlsx")
    book.move_sheet("Pay", -9)
    book.save("r.xlsx")
    found = json.loads(run("fit", "labels.csv", "--drop", "r.xlsx", "--json")[1])
    assert found["n_annotators"] == len(HOSTILE) - 1


def test_other_words_are_refused_and_no_decision_leaves_nobody_out(run, refused, folder):
    assert run("fit", "labels.csv", "--keep", "k.xlsx", "--quiet")[0] == 0
    assert openpyxl.load_workbook("k.xlsx").sheetnames == ["Decisions", "About"]
    assert json.loads(run("fit", "labels.csv", "--drop", "k.xlsx", "--json")[1])[
        "n_annotators"
    ] == len(HOSTILE)
    decide("k.xlsx", **{"007": "no"})
    line = refused("fit", "labels.csv", "--drop", "k.xlsx")
    assert "'Your decision' has 'no': choose pay, do not pay, ask, or leave it empty" in line


def test_own_outputs_are_replaced_until_somebody_saves_them(run, refused, folder):
    at.fit("labels.csv").save("fit")
    words = [
        ("fit", "labels.csv", "--out", "r.xlsx", "--keep", "k.csv"),
        ("fit", "labels.csv", "--keep", "k.json"),
        ("next", "fit", "--out", "n.csv", "--keep", "k.xlsx"),
        ("next", "fit", "--out", "n.json"),
        ("compare", "fit", "--models", "gpm,majority", "--out", "c.xlsx"),
    ]
    for each in words * 2:
        assert run(*each, "--quiet")[0] == 0, each
    decide("r.xlsx", **{"007": "ask"})
    before = hashlib.sha256((folder / "r.xlsx").read_bytes()).hexdigest()
    assert "r.xlsx: the file exists and was not written by annotruth, or was changed" in refused(
        "fit", "labels.csv", "--out", "r.xlsx"
    )
    assert hashlib.sha256((folder / "r.xlsx").read_bytes()).hexdigest() == before
    # As a spreadsheet writes it, without quotes, or of another kind: somebody may have worked on it.
    text = (folder / "k.csv").read_text()
    for other in (
        text.replace('"', ""),
        "annotator,verdict,reason\n",
        "",
        (folder / "n.csv").read_text(),
    ):
        (folder / "k.csv").write_text(other)
        assert "k.csv: the file exists" in refused("fit", "labels.csv", "--keep", "k.csv")
    assert "n.csv: the file exists" in refused("fit", "labels.csv", "--out", "n.csv")
    assert run("fit", "labels.csv", "--out", "r.xlsx", "--force", "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--out", "r.xlsx", "--format", "parquet"), "the name of a file says its format"),
        (("--out", "r.xlsx", "--safe-cells"), "--safe-cells is for CSV files"),
        (("--out", "r.xlsx", "--question", "all"), "a workbook is for one question"),
        (("--out", "r.xlsx", "--memory", "1GB"), "r.xlsx: a workbook needs all labels in memory"),
        (("--out", "r.xlsx", "--engine", "spark"), "Spark writes tables to a folder"),
        (("--out", "r.xlsx", "--price", "-1"), "price is -1.0: give the price of one label"),
        (("--price", "1"), "--price is for --out FILE.xlsx, or for a fit that is saved"),
        (["--out", "r.xls"], "or to a workbook that ends in .xlsx"),
    ],
)
def test_what_a_workbook_is_not_for(refused, folder, words, line):
    assert line in refused("fit", "labels.csv", *words)
    assert sorted(each.name for each in folder.iterdir()) == ["labels.csv"]


@pytest.mark.parametrize("command", ["fit", "next", "compare"])
def test_a_missing_package_is_named_before_the_fit(refused, folder, monkeypatch, command):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(at.RobustGPM, "fit", lambda *_, **__: pytest.fail("it was fitted"))
    assert "pip install 'annotruth[excel]'" in refused(command, "labels.csv", "--out", "r.xlsx")


def test_rankings(run, folder):
    made = at.simulate.comparers(n_items=6, n_annotators=8, comparisons_per_annotator=20, seed=1)
    made.comparisons.to_arrow().to_pandas().to_csv("votes.csv", index=False)
    words = ("rank", "votes.csv", "--save", "ranking", "--price", "0.1", "--out", "r.xlsx")
    assert run(*words, "--quiet")[0] == 0
    for out in ("n.csv", "n", "n.xlsx") * 2:
        assert run("next", "ranking", "--budget", 3, "--out", out, "--quiet")[0] == 0
    decide("r.xlsx", **{str(made.comparisons.annotators[0].as_py()): "do not pay"})
    assert (
        json.loads(run("rank", "votes.csv", "--drop", "r.xlsx", "--json")[1])["n_annotators"] == 7
    )
    book = openpyxl.load_workbook("n.xlsx")
    assert book["Compare next"].max_row == 4
    assert [cell.value for cell in book["Pay"][1]][-2:] == ["Amount", "Amount decided"]
