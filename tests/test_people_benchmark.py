"""The measurements of `benchmarks/people`, on tiny crowds and on figures known by hand."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.observations import Labels

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed

from benchmarks.people import injected, kinds, stability, truth
from benchmarks.people.__main__ import main
from benchmarks.people.known import known_people, majority_agreement
from benchmarks.people.options import records
from benchmarks.people.verdicts import Verdicts
from benchmarks.truth.sets import TruthSet


def labels_of(rows, scale="nominal"):
    return Labels.of(rows, scale=scale)


def write_set(folder, labels, known=None):
    folder.mkdir(parents=True)
    names = labels.scale.names
    rows = zip(labels.item_of_label(), labels.annotator, labels.category_of_label(), strict=True)
    tables = {
        "labels.csv": [("item", "annotator", "label"), *((i, s, names[n]) for i, s, n in rows)]
    }
    if known is not None:
        tables["truth.csv"] = [("item", "label"), *((i, names[n]) for i, n in enumerate(known))]
    for name, lines in tables.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(lines)


@pytest.fixture
def data(tmp_path):
    """A set of classes, one of scores, and one of opinions on two classes."""
    crowd = at.simulate.crowd(n_items=40, n_annotators=9, n_categories=3, spammer_share=0.3, seed=1)
    write_set(tmp_path / "dog", crowd.labels, crowd.label)
    write_set(tmp_path / "ftv", at.simulate.crowd(n_items=30, n_annotators=8, seed=2).labels)
    binary = at.simulate.crowd(n_items=30, n_annotators=5, n_categories=2, seed=3)
    write_set(tmp_path / "opinion-hsbrexit", binary.labels)
    return tmp_path


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(injected, "N_LABELS", (10,))
    monkeypatch.setattr(stability, "N_WEEKS", 3)
    monkeypatch.setattr(stability, "N_ANNOTATORS", 10)
    monkeypatch.setattr(stability, "ITEMS_PER_WEEK", 10)


@pytest.mark.usefixtures("short")
def test_one_command_measures_every_part(data, tmp_path, capsys):
    file, page = tmp_path / "figures.json", tmp_path / "fairness.md"
    page.write_text((ROOT / "docs" / "fairness.md").read_text("utf-8"), "utf-8")
    arguments = ["--data-dir", str(data), "--runs", "1", "--json", str(file)]
    assert main([*arguments, "--docs", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "injected: robust-gpm: ftv: colluding, 50%, as crowd" in printed.err
    figures = json.loads(file.read_text())
    assert list(figures) == [
        "Rank correlation with real accuracy",
        "Area under the curve for the worst",
        "Flags: robust-gpm",
        *(["Interval of the accuracy: robust-gpm"] if has_accuracy() else []),
        "Genuine raters",
        "Added people: robust-gpm",
        "Added people by set: robust-gpm",
        "5% of the labels removed: robust-gpm",
        "Rows shuffled: robust-gpm",
        "Updates in 4 parts: robust-gpm",
        "A campaign of 3 weeks: robust-gpm",
    ]
    assert all(f"## {title}" in printed.out for title in figures)
    assert [row["set"] for row in figures["Genuine raters"]] == ["opinion-hsbrexit", "ftv"]
    added = figures["Added people by set: robust-gpm"]
    assert {row["set"] for row in added} == {"dog", "ftv"}
    assert {row["added"] for row in added} == {*injected.LABELLINGS, injected.COPYING}
    assert "| opinion-hsbrexit | robust-gpm | 5 " in page.read_text("utf-8")
    assert all(row["items"] <= 1e-9 for row in figures["Rows shuffled: robust-gpm"])


def has_accuracy():
    fit = at.fit(at.simulate.crowd(n_items=10, n_annotators=4, seed=0).labels)
    return "accuracy" in fit.annotator_table().column_names


def known_set():
    """Items 0 to 11, of class a but for the last two; one person right, two always a."""
    truth = [0] * 10 + [1] * 2
    rows = [(i, "right", "ab"[k]) for i, k in enumerate(truth)]
    rows += [(i, "repeats", "a") for i in range(12)]
    rows += [(i, "wrong", "ba"[k]) for i, k in enumerate(truth)]
    rows += [(i, "few", "b") for i in range(9)]
    labels = labels_of(rows)
    codes = labels.scale.codes_of(pa.array(["a", "b"]))
    return TruthSet("s", "s", labels, np.arange(12), codes[truth])


def test_real_accuracy_and_information_by_hand():
    found = known_set()
    known = known_people(found)
    assert found.labels.annotators.to_pylist() == ["right", "repeats", "wrong", "few"]
    assert known.n_known.tolist() == [12, 12, 12, 9]
    assert known.accuracy == pytest.approx([1, 10 / 12, 0, 0])
    assert known.is_evaluated.tolist() == [True, True, True, False]
    assert known.is_bad.tolist() == [False, False, True, False]
    # Repeating the frequent class is accurate, and says nothing.
    assert known.is_uninformative.tolist() == [False, True, True, False]


def test_agreement_with_the_majority_by_hand():
    rows = [("1", s, n) for s, n in zip("wxyz", "aaab", strict=True)]
    rows += [("2", "w", "a"), ("2", "z", "b"), ("3", "z", "b")]
    labels = labels_of(rows)
    assert majority_agreement(labels, with_own=True) == pytest.approx([0.75, 1, 1, 1.5 / 3])
    assert majority_agreement(labels, with_own=False) == pytest.approx([0.5, 1, 1, 0])


def measured_set(verdicts, name="s"):
    found = known_set()
    known = known_people(found)
    agreement = {
        truth.POSTERIOR: None,
        truth.OTHERS: majority_agreement(found.labels, with_own=False),
        truth.ALL: majority_agreement(found.labels, with_own=True),
    }
    n_labels = found.labels.labels_per_annotator
    return truth.MeasuredSet(name, known, n_labels, agreement, {"m": verdicts})


def test_flags_are_counted_against_what_people_are():
    verdicts = Verdicts(
        quality=np.array([0.9, 0.8, 0.1, 0.1]),
        measure="accuracy",
        low=np.array([0.8, 0.85, 0.0, 0.0]),
        high=np.array([1.0, 0.95, 0.3, 0.3]),
        flagged=np.array([False, True, False, True]),
        behavior=["serious", "repeated a", "low accuracy", "random"],
    )
    assert verdicts.noticed.tolist() == [False, True, True, True]
    one = measured_set(verdicts)
    # people, bad, uninformative, flagged (bad, uninformative, fine, at or above the median), ...
    assert truth.flag_counts(one, verdicts) == [3, 1, 2, 1, 0, 1, 0, 1, 0, 0, 0, 0]
    errors = [0.1, 10 / 12 - 0.8, 0.1]
    widths = [0.2, 0.1, 0.3]
    expected = [2 / 3, np.mean(widths), np.mean(errors), 3]
    assert truth.interval_figures(one.known, verdicts) == pytest.approx(expected)
    assert truth.rank_correlation(one.known, verdicts.quality) == pytest.approx(1)
    assert truth.area_for_worst(one.known, verdicts.quality) == 1
    assert truth.rank_correlation(one.known, np.ones(4)) is None
    sets = [one, measured_set(verdicts, "med_cause")]
    table = list(records(truth.interval_table(sets, "m")))
    assert [(row["set"], row["people"]) for row in table] == [
        ("s", 3),
        ("med_cause", 3),
        ("mean of sets", 3),
        ("all people", 3),
    ]
    assert table[3]["covered"] == pytest.approx(2 / 3)
    assert len(truth.interval_table(sets[1:], "m").rows) == 1
    (*_, mean) = records(truth.rank_table(sets, ["m"]))
    assert mean["m"] == pytest.approx(1)
    assert mean[truth.POSTERIOR] is None
    (*_, in_all, shares) = records(truth.flag_table(sets, "m"))
    assert (in_all["flagged"], shares["flagged, uninformative"]) == (2, 1)


def real_crowd(*, ordinal, n_categories=4):
    made = at.simulate.crowd(n_items=60, n_annotators=8, n_categories=n_categories, seed=4)
    labels = made.labels
    if not ordinal:
        labels = labels_of(
            [
                (int(i), int(s), f"c{n}")
                for i, s, n in zip(
                    labels.item_of_label(),
                    labels.annotator,
                    labels.category_of_label(),
                    strict=True,
                )
            ]
        )
    is_fine = np.arange(8) != 0
    right = np.asarray(made.label, dtype=np.int64)
    return kinds.RealCrowd(labels, is_fine, right, right)


def added_labels(kind, *, ordinal=False, n_labels=50, n=6):
    crowd, rng = real_crowd(ordinal=ordinal), np.random.default_rng(0)
    return crowd, kinds.add_people(crowd, injected.LABELLINGS[kind], np.full(n, n_labels), rng)


def given(crowd, added):
    """Whether somebody real gave the item this label."""
    return crowd.shares[added.item, added.category] > 0


@pytest.mark.parametrize("ordinal", [False, True])
def test_what_added_people_say(ordinal):
    crowd, added = added_labels("repeated", ordinal=ordinal)
    assert all(np.ptp(added.category[added.person == s]) == 0 for s in range(6))
    for kind in ("strict", "lenient"):
        crowd, added = added_labels(kind, ordinal=ordinal)
        assert given(crowd, added).all()
    crowd, added = added_labels("half-careless", ordinal=ordinal)
    crowd_random, random = added_labels("random", ordinal=ordinal)
    assert given(crowd_random, random).mean() < given(crowd, added).mean() < 1
    crowd, added = added_labels("colluding", ordinal=ordinal)
    answer = {}
    for item, category in zip(added.item, added.category, strict=True):
        assert answer.setdefault(item, category) == category
        assert category != crowd.right[item]


def test_flags_on_added_people_by_hand():
    flagged = np.array([True, True, False, True, True, False])
    is_added = np.array([False, False, False, True, True, True])
    is_fine = np.array([True, False, True, False, False, False])
    assert injected.f1_score(flagged, is_added, is_fine) == pytest.approx(2 * 2 / (3 + 3))
    assert injected.f1_score(None, is_added, is_fine) is None
    labels = labels_of([("1", "x", "a"), ("1", "y", "b"), ("2", "x", "b")])
    assert injected.wrong_share(labels, np.array([0, -1])) == 0.5
    assert injected.wrong_share(labels, np.array([-1, -1])) is None


def test_tables_are_compared_by_id():
    before = pa.table({"item": ["a", "b"], "x": [1.0, None], "y": [2, 3], "z": ["p", "q"]})
    after = pa.table({"item": ["b", "a"], "x": [None, 1.5], "y": [3, 2], "z": ["q", "r"]})
    assert stability.table_difference(before, after, "item") == (0.5, "x", 1)
    assert stability.table_difference(before, before, "item") == (0.0, "-", 0)
    other = pa.table({"item": ["a", "b"], "x": [1.0, 2.0], "y": [2, 3], "z": ["p", "q"]})
    assert stability.table_difference(before, other, "item").largest == np.inf
