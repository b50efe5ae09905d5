"""Comparisons are sorted by annotator, on several threads where they are many."""

from functools import partial

import numpy as np
import pytest

from annotruth.kernels import find_kernel
from annotruth.observations import Comparisons
from annotruth.observations.pairs import votes as sort
from annotruth.observations.pairs.votes import RowVotes, sort_codes


@pytest.mark.parametrize("n_annotators", [1, 5, 3000])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(("n", "reference"), [(0, False), (1000, True), (20_000, False)])
def test_sorting_is_stable(n_annotators, in_order, n, reference, monkeypatch):
    monkeypatch.setattr(sort, "_ROWS_PER_TASK", 3000)  # several tasks
    monkeypatch.setattr(sort, "find_kernel", partial(find_kernel, reference=reference))
    rng = np.random.default_rng(2)
    annotator = rng.integers(n_annotators, size=n).astype(np.int32)
    annotator = np.sort(annotator) if in_order else annotator
    left, right = rng.integers(100, size=(2, n)).astype(np.int32)
    outcome = rng.integers(3, size=n).astype(np.int8)
    found = sort_codes(RowVotes(left, right, annotator, outcome), n_annotators)
    row = np.argsort(annotator, kind="stable")
    np.testing.assert_array_equal(found.row, row)
    for name, values in (("left", left), ("right", right), ("outcome", outcome)):
        np.testing.assert_array_equal(getattr(found, name), values[row])
        assert getattr(found, name).dtype == values.dtype
    counts = np.bincount(annotator, minlength=n_annotators)
    np.testing.assert_array_equal(np.diff(found.annotator_ptr), counts)
    assert found.annotator_ptr[0] == 0
    assert found.annotator_ptr.dtype == found.row.dtype == np.int64


def test_comparisons_of_some_annotators_and_some_comparisons():
    rng = np.random.default_rng(3)
    annotator = rng.integers(6, size=50)
    annotator[annotator == 4] = 3  # the fifth annotator has no comparisons
    votes = Comparisons.from_codes(
        rng.integers(5, size=50),
        rng.integers(5, 9, size=50),
        annotator,
        rng.integers(2, size=50),
        items=list("abcdefghi"),
        annotators=list("uvwxyz"),
        covariates={"length": rng.normal(size=50)},
    )
    of = votes.annotator_of_comparison()
    marked = np.array([False, True, False, True, True, False])
    keep = rng.random(50) < 0.4
    for some, kept, n in (
        (votes.of_annotators(marked), marked[of], votes.comparisons_per_annotator[marked]),
        (votes.subset(keep), keep, np.bincount(of[keep], minlength=6)),
    ):
        for name in ("left", "right", "outcome", "row"):
            np.testing.assert_array_equal(getattr(some, name), getattr(votes, name)[kept])
        np.testing.assert_array_equal(some.covariates["length"], votes.covariates["length"][kept])
        np.testing.assert_array_equal(some.comparisons_per_annotator, n)
    assert votes.of_annotators(marked).annotators.to_pylist() == ["v", "x", "y"]
