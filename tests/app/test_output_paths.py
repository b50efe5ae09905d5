"""Outputs never replace inputs, each other or others' files; one that a model lacks stops no others."""

import json
import os

import pytest

import annotruth as at

LABELS = "item,annotator,label\n" + "".join(
    f"{e},{s},{(e + (n == e % 5)) % 3 + 1}\n" for e in range(12) for n, s in enumerate("uvwxyz")
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(LABELS)
    (tmp_path / "gold.csv").write_text("item,label\n1,2\n")
    (tmp_path / "link.csv").symlink_to("in.csv")
    os.link(tmp_path / "in.csv", tmp_path / "hard.csv")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "labels.csv").write_text(LABELS)
    at.fit(tmp_path / "in.csv", "gpm").save(tmp_path / "fit")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "fit in.csv --soft in.csv",
        "fit in.csv --keep in.csv",
        "fit in.csv --report in.csv",
        "fit in.csv --soft link.csv",
        "fit link.csv --keep ./out/../in.csv",
        "fit hard.csv --soft in.csv",
        "fit in.csv --gold gold.csv --keep gold.csv",
        "fit in.csv --truth gold.csv --soft gold.csv",
        "fit in.csv --annotator-prior gold.csv --soft gold.csv",
        "fit out/labels.csv --out out",
        "fit fit/fit.json --save fit",
        "fit in.csv --soft same.csv --keep same.csv",
        "fit in.csv --out new --keep new/items.csv",
        "fit in.csv --out new --save new",
        "fit in.csv --save new --report new/fit.json",
        "fit in.csv --out fit",
        "update fit fit/fit.json",
        "update fit in.csv --gold fit/fit.json",
        "update fit in.csv --out fit",
        "update fit in.csv --save new --report fit/fit.json",
        "update fit in.csv --truth gold.csv --keep gold.csv",
        "report fit --report fit/fit.json",
        "next in.csv --out in.csv",
        "next in.csv --gold gold.csv --keep gold.csv",
        "next fit --out fit/fit.json",
        "next in.csv --out a.csv --keep a.csv",
        "compare in.csv --out in.csv",
        "compare in.csv --report link.csv",
        "compare in.csv --truth gold.csv --out gold.csv",
    ],
)
def test_no_output_replaces_an_input_or_another_output(refused, files, words):
    def contents():
        return {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}

    before = contents()
    assert "choose another" in refused(*words.split())
    assert contents() == before


@pytest.mark.parametrize("command", ["fit", "next", "compare"])
def test_a_file_of_another_format_is_no_folder(run, files, command):
    code, out, err = run(command, "in.csv", "--out", "items.tsv")
    assert (code, out) == (2, "")
    assert err.startswith(
        "annotruth: --out items.tsv: a table is written to a name that ends in .csv"
    )
    (files / "day.txt").mkdir()
    assert run("fit", "in.csv", "--model", "gpm", "--out", "day.txt")[0] == 0
    assert (files / "day.txt" / "items.csv").exists()


def test_the_same_command_can_be_repeated(run, files):
    words = [
        "fit",
        "in.csv",
        "--model",
        "gpm",
        "--gold",
        "gold.csv",
        "--out",
        "out2",
        "--save",
        "fit",
        "--report",
        "fit/r.html",
    ]
    lists = ["--soft", "s.csv", "--keep", "k.csv"]
    assert run(*words, *lists)[0] == 0
    assert run(*words)[0] == 0
    code, out, err = run(*words, *lists)
    assert (code, out) == (2, "")
    assert err == (
        "annotruth: --soft s.csv: the file exists: choose another path, or pass --force to replace "
        "it\n"
    )
    assert run(*words, *lists, "--force")[0] == 0
    assert (files / "in.csv").read_text() == LABELS


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "fit in.csv --report mine.html",
            "mine.html: the file exists and is not a page of annotruth",
        ),
        (
            "report fit --report mine.html",
            "mine.html: the file exists and is not a page of annotruth",
        ),
        ("fit in.csv --out out", "out: the folder holds other files and no tables of annotruth"),
        ("fit in.csv --save out", "out: the folder holds other files and no saved fit of annotr"),
        ("fit in.csv --save tables", "tables: the folder holds other files and no saved fit of"),
        ("fit in.csv --save odd", "odd: the folder holds other files and no saved fit of"),
        ("update fit in.csv --keep gold.csv", "gold.csv: the file exists: choose another path"),
        ("fit in.csv --report out", "--report out: this is a folder: name a file in it"),
        ("fit in.csv --out mine.html", "--out mine.html: this is a file: name a folder"),
        ("simulate --out out", "out: the folder holds other files and no simulated crowd of"),
        ("simulate --out tables", "tables: the folder holds other files and no simulated crowd of"),
        ("simulate --out in.csv", "--out in.csv: this is a file: name a folder"),
        ("demo --report mine.html", "mine.html: the file exists and is not a page of annotruth"),
    ],
)
def test_what_annotruth_did_not_write_is_replaced_only_by_force(run, refused, files, words, line):
    (files / "mine.html").write_text("<!doctype html><title>mine</title>")
    (files / "odd").mkdir()
    (files / "odd" / "fit.json").write_text("[1]")
    assert run("fit", "in.csv", "--model", "mean", "--out", "tables")[0] == 0
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    assert line in refused(*words.split())
    assert before == {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    if "name a" not in line and not words.startswith("update"):
        assert run(*words.split(), "--force")[0] == 0


@pytest.mark.parametrize("generator", ["crowd", "comparers", "sets"])
def test_a_simulated_crowd_is_replaced_by_another(run, files, generator):
    words = ("simulate", "--out", "crowd", "--generator", generator, "--items", "9", "--quiet")
    for seed in ("0", "1"):
        assert run(*words, "--seed", seed) == (0, "", "")


def test_an_output_that_the_model_lacks_does_not_stop_the_others(run, files):
    words = (
        "fit in.csv --model subject-bias --keep k.csv --report r.html --soft s.csv --out o --json"
    )
    code, out, err = run(*words.split())
    assert code == 2
    assert err.count("\n") == 1
    assert "--soft s.csv was not written: subject-bias estimates scores" in err
    assert json.loads(out)["model"] == "subject-bias"
    assert (files / "r.html").exists()
    assert (files / "o" / "items.csv").exists()
    assert (files / "k.csv").exists()
    assert not (files / "s.csv").exists()
    code, out, err = run(*words.split()[:-1], "--force")
    assert "written to o" in out
    assert "written to s.csv" not in out
