"""The benchmark of models on sets with known classes, on tiny simulated folders."""

import csv
import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import annotruth as at

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def truth(monkeypatch):
    """Import a module of the benchmark, which is not part of the package."""
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.truth.{name}")


def write_set(folder, rows, known):
    folder.mkdir(parents=True)
    for name, head, lines in (
        ("labels.csv", ("item", "annotator", "label"), rows),
        ("truth.csv", ("item", "label"), known),
    ):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([head, *lines])


@pytest.fixture
def data(tmp_path):
    """Two sets of classes, one of scores, and a folder without a truth."""
    for seed, name in enumerate(("cf", "mine")):
        crowd = at.simulate.crowd(
            n_items=30, n_annotators=6, n_categories=3, spammer_share=0.2, seed=seed
        )
        labels = crowd.labels
        rows = zip(
            labels.item_of_label(), labels.annotator, labels.category_of_label(), strict=True
        )
        known = enumerate(crowd.label)
        rows = [(e, s, f"c{n}") for e, s, n in rows]
        write_set(tmp_path / "data" / name, rows, [(e, f"c{n}") for e, n in known])
    scores = [(e, s, 3 * e + s) for e in range(20) for s in range(3)]
    write_set(tmp_path / "data" / "slider", scores, [(e, 3 * e + 1) for e in range(20)])
    (tmp_path / "data" / "votes").mkdir()
    return tmp_path / "data"


def test_one_command_prints_tables_and_writes_results(truth, data, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["--data-dir", str(data), "--models", "gpm,majority,no-such-model"]
    assert truth("__main__").main([*arguments, "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "no-such-model is left out" in printed.err
    assert "slider is left out: 60 different numbers" in printed.err
    assert "## Means over 2 sets" in printed.out
    assert "## Difference to majority, 95% intervals over 2 families" in printed.out
    results = json.loads((out / "results.json").read_text())
    assert results["families"] == {"cf": "CrowdScale 2013", "mine": "mine"}
    with (out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["set"], row["model"]) for row in rows} == {
        (name, model) for name in ("cf", "mine") for model in ("gpm", "majority")
    }
    mean = np.mean([float(row["nll"]) for row in rows if row["model"] == "gpm"])
    assert results["means"]["gpm"]["nll"] == pytest.approx(mean)
    assert (out / "calibration.svg").read_text().count("<path") == 2


@pytest.fixture
def votes(truth, tmp_path):
    """Items a to d: a vote of 2 to 1, a tie, an unanimous one, and a truth nobody gave."""
    votes = {"a": "xxy", "b": "xy", "c": "yyy", "d": "x"}
    rows = [(item, s, label) for item, given in votes.items() for s, label in enumerate(given)]
    known = [("a", "x"), ("b", "y"), ("c", "x"), ("d", "z"), ("unlabelled", "x")]
    write_set(tmp_path / "votes", rows, known)
    return truth("sets").load_set(tmp_path / "votes", "nominal")


def test_measures_by_hand(truth, votes):
    p = np.array([[2 / 3, 1 / 3], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    score = truth("scoring").score_probabilities(votes, p, 1.0)
    assert score.accuracy == pytest.approx((1 + 0.5 + 0 + 0) / 4)  # a tie counts one half
    likelihood = [0.99 * x + 0.005 for x in (2 / 3, 0.5, 0.0, 0.0)]
    assert score.nll == pytest.approx(-np.log(likelihood).mean())
    assert score.brier == pytest.approx((2 / 9 + 0.5 + 2 + 2) / 4)
    # Bins: 0.5 (accuracy 0.5), 2/3 (1), and the two of 1.0 (0).
    assert score.ece == pytest.approx((0 + 1 / 3 + 2 * 1) / 4)
    assert score.not_given == 0
    assert score.bins.n.sum() == 4


def test_calibrated_probabilities_have_no_calibration_error(truth):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1.0, 200_000)
    bins = truth("scoring").calibration_bins(confidence, rng.random(200_000) < confidence)
    assert np.abs(bins.accuracy - bins.confidence).max() < 0.02
    assert bins.n.tolist()[:7] == [0] * 7


def test_the_bootstrap_draws_families(truth):
    difference = truth("summary").difference
    values = np.array([0.1, 0.1, 0.1, -0.1])
    alone = difference(values, ["a", "b", "c", "d"])
    together = difference(values, ["a", "a", "a", "d"])
    assert alone.mean == together.mean == pytest.approx(0.05)
    # Of two families, one in four draws has the last one only.
    assert (together.low, together.high) == (pytest.approx(-0.1), pytest.approx(0.1))
    assert alone.low > -0.1
    assert difference(values, ["a"] * 4).low == pytest.approx(0.05)


def test_published_figures_are_reproduced(truth, datasets):
    """The figures of majority vote and GPM that docs/how-good.md compares with."""
    contenders, _ = truth("contenders").ours(["majority", "gpm"])
    found = truth("sets").load_set(datasets / "cf", "nominal")
    majority, gpm = (contender(found) for contender in contenders.values())
    assert [round(x, 4) for x in majority[:3]] == [0.8822, 0.4484, 0.0936]
    assert [round(x, 4) for x in gpm[:3]] == [0.8839, 0.4413, 0.0649]


def test_the_page_in_the_documentation_is_brought_up_to_date(truth, data, tmp_path, capsys):
    docs = tmp_path / "docs"
    (docs / "pictures").mkdir(parents=True)
    page = (ROOT / "docs" / "how-good.md").read_text("utf-8")
    (docs / "how-good.md").write_text(page, "utf-8")
    arguments = ["--data-dir", str(data), "--models", "gpm,majority", "--docs", str(docs)]
    assert truth("__main__").main(arguments) == 0
    text = (docs / "how-good.md").read_text("utf-8")
    assert "| mine " in text
    assert "| hate-speech |" not in text
    assert text.count("<!-- ") == page.count("<!-- ")
    assert (docs / "pictures" / "calibration.svg").exists()


def test_a_page_without_a_place_for_a_table_is_refused(truth, tmp_path):
    truth("sets")
    replace_tables = importlib.import_module("benchmarks.pages").replace_tables
    (tmp_path / "page.md").write_text("<!-- one -->old<!-- end one --> text")
    replace_tables(tmp_path / "page.md", {"one": r"| \1 |"})
    text = (tmp_path / "page.md").read_text()
    assert text == "<!-- one -->\n\n| \\1 |\n\n<!-- end one --> text"
    with pytest.raises(ValueError, match="no place for the table two"):
        replace_tables(tmp_path / "page.md", {"two": ""})
