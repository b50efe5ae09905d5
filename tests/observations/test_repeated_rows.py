"""Identical rows count once; different labels of one annotator for one item are refused."""

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.observations import Labels

ROWS = [("a", "x", "cat"), ("a", "y", "dog"), ("a", "x", "cat"), ("b", "x", "dog")]


@pytest.fixture
def csv(tmp_path):
    """Twenty items by three annotators, of which every fourth row is there again later."""
    rng = np.random.default_rng(3)
    rows = [(f"i{e}", s, rng.choice(["cat", "dog"])) for e in range(20) for s in "xyz"]
    frame = pd.DataFrame(rows + rows[::4], columns=["item", "annotator", "label"])
    path = tmp_path / "labels.csv"
    frame.to_csv(path, index=False)
    return path


def test_identical_rows_count_once(rows_of):
    labels = Labels.of(ROWS)
    assert rows_of(labels) == [ROWS[0], ROWS[1], ROWS[3]]
    assert labels.n_repeated == 1


def test_rows_that_are_kept_or_replaced_are_not_counted(rows_of):
    kept = Labels.of(ROWS, duplicates="keep")
    assert (rows_of(kept), kept.n_repeated) == (ROWS, 0)
    last = Labels.of(ROWS, duplicates="last")
    assert (rows_of(last), last.n_repeated) == (ROWS[1:], 0)


def test_numbers_are_identical_by_value():
    assert Labels.of(pd.DataFrame(ROWS, columns=["item", "worker", "label"])).n_repeated == 1
    rows = [("a", "x", 1), ("a", "x", 1.0), ("a", "y", 2)]
    assert Labels.of(rows).n_labels == 2


def test_other_labels_are_refused_and_only_they_are_named():
    rows = [*ROWS, ("b", "x", "cat"), ("b", "x", "dog")]
    with pytest.raises(at.InputError) as caught:
        Labels.of(rows)
    assert str(caught.value) == (
        "labelled twice: annotator 'x' on item 'b', annotator 'x' on item 'b'; pass "
        "duplicates='keep' to count both, or duplicates='last' to count the later one"
    )


def test_covariates_are_those_of_the_first_row():
    frame = pd.DataFrame(ROWS, columns=["item", "annotator", "label"]).assign(seconds=range(4))
    labels = Labels.of(frame, covariates=["seconds"])
    seconds = labels.in_row_order(labels.covariates.labels["seconds"].to_numpy())
    assert seconds.tolist() == [0, 1, 3]


def test_the_summary_and_the_saved_fit_count_them(csv, tmp_path):
    fit = at.fit(csv, "majority")
    assert "15 repeated rows counted once" in fit.summary().splitlines()
    fit.save(tmp_path / "fit")
    assert at.load(tmp_path / "fit").data.n_repeated == 15


def test_an_update_counts_them_once(csv, tmp_path):
    fit = at.fit(csv, "majority")
    again = at.update(fit, csv)  # the same export again
    assert (again.data.n_labels, again.data.n_repeated) == (60, 15)
    more = at.update(fit, [("new", "x", "cat"), ("new", "x", "cat")])
    assert (more.data.n_labels, more.data.n_repeated) == (61, 16)
