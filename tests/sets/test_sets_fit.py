"""Fits of sets: tables, saved fits, the command line, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

import annotruth as at
from annotruth.observations.sets import labels_in
from annotruth.sets.fit import given_sets


@pytest.fixture(scope="module")
def made() -> at.simulate.SetSimulation:
    return at.simulate.sets(n_items=60, n_annotators=8, n_labels=4, seed=3)


@pytest.fixture(scope="module")
def fit(made) -> at.Fit:
    return at.fit(made.answers)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sets")
    table = made.answers.to_arrow()
    cells = ["|".join(labels_in(key)) or "|" for key in table["label"].to_pylist()]
    csv.write_csv(table.set_column(2, "label", pa.array(cells)), path / "answers.csv")
    csv.write_csv(made.truth_table(), path / "truth.csv")
    return path


def test_tables(fit):
    items = fit.items()
    assert items.columns.tolist() == [
        *("item", "n_answers", "labels", "confidence"),
        *("p_1", "p_2", "p_3", "p_4"),
    ]
    assert fit.annotators().columns.tolist() == [
        *("annotator", "n_answers", "reliability", "low", "high", "spammer", "behavior"),
        *("sensitivity", "sensitivity_low", "sensitivity_high"),
        *("specificity", "specificity_low", "specificity_high"),
    ]
    assert fit.answers().columns.tolist() == ["item", "annotator", "labels", "p_serious"]
    assert fit.labels()["n_given"].tolist() == given_sets(fit.data).sum(axis=0).tolist()
    people = fit.annotators()
    assert (people["low"] <= people["reliability"]).all()
    assert (people["reliability"] <= people["high"]).all()
    assert len(fit.answers()) == fit.data.n_labels


def test_answers_are_in_the_order_of_the_input(made, fit):
    given = made.answers.to_arrow()
    answers = fit.table("answers")
    assert answers["item"].to_pylist() == given["item"].to_pylist()
    assert answers["labels"].to_pylist() == [
        "|".join(labels_in(key)) for key in given["label"].to_pylist()
    ]


def test_saved_fit_is_the_same(fit, tmp_path):
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    assert loaded.kind == "sets"
    assert loaded.to_dict() == fit.to_dict()
    for name, table in fit.tables().items():
        assert loaded.tables()[name].equals(table), name
    assert loaded.summary() == fit.summary()


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("labels", ["1", "2", "3"]),
        ("labels", ["1", "2", "3", "3"]),
        ("n_sets", 1),
        ("separator", 3),
    ],
)
def test_tampered_fits_are_refused(fit, tmp_path, entry, value):
    from annotruth.models.storage import folder as storage

    fit.save(tmp_path / "fit")
    path = tmp_path / "fit" / "fit.json"
    entries = json.loads(path.read_text())
    entries[entry] = value
    entries["checksum"] = storage._checksum(entries)
    path.write_text(json.dumps(entries))
    with pytest.raises(at.InputError, match="cannot be read"):
        at.load(tmp_path / "fit")


def test_evaluate_takes_frames_mappings_and_files(made, fit, folder):
    truth = made.truth_table()
    from_text = at.evaluate(fit, truth)
    sets = [cell.split("|") if cell else [] for cell in truth["label"].to_pylist()]
    as_mapping = dict(zip(truth["item"].to_pylist(), sets, strict=True))
    assert at.evaluate(fit, as_mapping) == from_text == at.evaluate(fit, folder / "truth.csv")
    assert from_text["f1_micro"] > 0.7
    with pytest.raises(at.InputError, match="truth names label 'owl', which is not among"):
        at.evaluate(fit, {1: ["owl"]})


@pytest.mark.parametrize(
    "refused",
    [
        lambda fit, path: at.update(fit, path),
        lambda fit, path: at.next_labels(fit),
        lambda fit, path: at.plan_labels(fit, "accuracy", 0.9),
        lambda fit, path: at.fit(fit),
        lambda fit, path: at.fit(path, separator="|", warm_start=fit),
        lambda fit, path: at.fit(path, "gpm", separator="|"),
        lambda fit, path: at.fit(path, separator="|", memory="1GB"),
        lambda fit, path: at.fit(path, separator="|", engine="spark"),
        lambda fit, path: at.fit(path, separator="|", classifier={}),
        lambda fit, path: at.compare(path, separator="|"),
        lambda fit, path: at.next_labels(path, separator="|"),
        lambda fit, path: at.GPM().fit(fit.data),
    ],
)
def test_what_is_not_for_sets_is_refused_in_one_line(fit, folder, refused):
    with pytest.raises(at.InputError) as error:
        refused(fit, folder / "answers.csv")
    text = str(error.value)
    assert "\n" not in text
    assert "sets" in text


def test_command_line(run, folder, tmp_path, made):
    code, out, _ = run(
        *("fit", folder / "answers.csv", "--separator", "|", "--truth", folder / "truth.csv"),
        *("--json", "--out", tmp_path / "out", "--save", tmp_path / "fit"),
        *("--report", tmp_path / "r.html", "--soft", tmp_path / "soft.csv"),
        *("--keep", tmp_path / "keep.csv"),
    )
    assert code == 0
    entries = json.loads(out)
    assert entries["model"] == "sets"
    assert (entries["n_items"], entries["n_annotators"]) == (60, 8)
    assert (entries["n_answers"], entries["n_labels"]) == (240, 4)
    assert entries["metrics"]["f1_micro"] > 0.7
    assert entries["spammers"] == int((made.behavior != "serious").sum())
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"items.csv", "annotators.csv", "answers.csv", "labels.csv", "fit.json"}
    again = at.fit(tmp_path / "out" / "answers.csv", separator="|", columns={"label": "labels"})
    assert again.data.n_labels <= 240  # empty sets are empty cells there
    assert run("report", tmp_path / "fit", "--report", tmp_path / "again.html")[0] == 0
    assert "Doubtful answers" in (tmp_path / "again.html").read_text()


def test_plain_labels_do_not_load_the_room(write):
    import subprocess
    import sys

    path = write("labels.csv", "item,annotator,label\na,x,1\na,y,2\nb,x,1\n")
    script = (
        "import sys, annotruth as at; at.fit(sys.argv[1], 'gpm'); "
        "assert not [m for m in sys.modules if m.startswith('annotruth.sets')], 'loaded'"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


def test_simulation_is_reproducible_and_checked():
    one, two = (at.simulate.sets(n_items=20, seed=4) for _ in range(2))
    assert one.answers.to_arrow().equals(two.answers.to_arrow())
    assert (one.truth == two.truth).all()
    with pytest.raises(at.InputError, match=r"answers_per_item is 99"):
        at.simulate.sets(answers_per_item=99)
    with pytest.raises(at.InputError, match=r"prevalence is \(0.1, 2.0\)"):
        at.simulate.sets(prevalence=(0.1, 2.0))


def test_the_command_simulates_sets(run, tmp_path):
    options = ("--generator", "sets", "--items", 30, "--categories", 4, "--labels-per-item", 3)
    code, out, _ = run("simulate", "--out", tmp_path / "p", *options)
    assert code == 0
    assert "90 answers of 30 items by 15 annotators, sets of 4 labels" in out
    made = at.simulate.sets(n_items=30, n_labels=4, answers_per_item=3)
    answers = at.read_labels(tmp_path / "p" / "labels.csv", separator="|")
    keys = made.answers.to_arrow()["label"].to_pylist()
    assert "[]" in keys
    assert answers.to_arrow()["label"].to_pylist() == keys
    fit = at.fit(made.answers)
    truth = tmp_path / "p" / "truth.csv"
    expected = at.evaluate(fit, made.truth_table())
    assert at.evaluate(fit, truth) == expected
