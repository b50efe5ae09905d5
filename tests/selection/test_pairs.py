"""Held-out comparisons: folds, scores, and the choice of a model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import annotruth as at
from annotruth.models.em import direct_history
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.posterior import ScorePosterior
from annotruth.models.result import Fit
from annotruth.observations import Comparisons
from annotruth.selection.choose import choose_among
from annotruth.selection.heldout import assign_folds, held_out, score_folds


@dataclass(kw_only=True)
class ShareOfLeft(PairEstimator):
    """Predicts left with ``p_left``, or by each annotator's own share with ``by_annotator``."""

    name: ClassVar[str] = "share-of-left"
    p_left: float = 0.5
    by_annotator: bool = False

    def _fit(self, data, progress):
        if self.p_left > 1:
            raise at.InputError("p_left is no probability")
        scores = ScorePosterior(np.zeros(data.n_items), np.eye(data.n_items))
        part = np.zeros(data.n_items, dtype=np.int64)
        return Fit(self.name, self.settings(), data, direct_history(), scores=scores, part=part)

    def predict_proba(self, left, right, annotator, covariates=None):
        p = np.full(len(left), self.p_left)
        if self.by_annotator:
            data = self.result_.data
            n_left = np.bincount(data.annotator_of_comparison(), data.outcome == 0)
            p = ((n_left + 1) / (data.comparisons_per_annotator + 2))[annotator]
        return np.stack([p, 1 - p, np.zeros(len(p))], axis=1)


class AlsoShareOfLeft(ShareOfLeft):
    name: ClassVar[str] = "other"


def votes_of(rows, n_items=6, n_annotators=5):
    left, right, annotator, outcome = np.array(rows).T
    return Comparisons.from_codes(
        left, right, annotator, outcome, items=range(n_items), annotators=range(n_annotators)
    )


def crowd(p_left, n_each=40):
    """Comparisons of random pairs by annotators who choose left with these probabilities."""
    rng = np.random.default_rng(0)
    n = len(p_left) * n_each
    left = rng.integers(0, 6, n)
    right = (left + rng.integers(1, 6, n)) % 6
    annotator = np.repeat(np.arange(len(p_left)), n_each)
    outcome = (rng.random(n) >= np.array(p_left)[annotator]).astype(int)
    return Comparisons.from_codes(
        left, right, annotator, outcome, items=range(6), annotators=range(len(p_left))
    )


ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(0, 4), st.integers(0, 2)).map(
        lambda row: (row[0], (row[0] + row[1]) % 6, *row[2:])
    ),
    min_size=2,
    max_size=40,
)


@settings(deadline=None, max_examples=100)
@given(rows=ROWS, folds=st.integers(2, 5))
def test_every_item_and_annotator_keeps_a_comparison_in_every_fold(rows, folds):
    votes = votes_of(rows)
    try:
        fold = assign_folds(votes, folds, seed=0)
    except at.InputError:  # each is the only one of its annotator or of an item
        return
    for k in range(folds):
        kept = votes.subset(fold != k)
        assert ((kept.comparisons_per_annotator > 0) == (votes.comparisons_per_annotator > 0)).all()
        assert ((kept.comparisons_per_item > 0) == (votes.comparisons_per_item > 0)).all()


def test_comparisons_that_stand_alone_cannot_be_held_out():
    with pytest.raises(at.InputError, match="no comparison can be predicted from the others"):
        assign_folds(votes_of([(0, 1, 0, 0), (2, 3, 1, 0)]), 2, seed=0)


def test_folds_do_not_depend_on_the_order_of_rows():
    votes = crowd([0.3, 0.7])
    annotator = votes.annotator_of_comparison()
    order = np.random.default_rng(1).permutation(votes.n_comparisons)
    shuffled = Comparisons.from_codes(
        *(values[order] for values in (votes.left, votes.right, annotator, votes.outcome)),
        items=range(6),
        annotators=range(2),
    )
    first, second = (
        sorted(zip(v.left, v.right, v.annotator_of_comparison(), v.outcome, fold, strict=True))
        for v in (votes, shuffled)
        for fold in [assign_folds(v, 4, seed=3)]
    )
    assert first == second


def test_subset_keeps_codes_and_order():
    votes = votes_of([(0, 1, 2, 0), (1, 2, 0, 2), (3, 4, 2, 1)])
    kept = votes.subset(np.array([False, True, True]))
    assert kept.annotator_of_comparison().tolist() == [2, 2]
    assert (kept.left.tolist(), kept.right.tolist()) == ([0, 3], [1, 4])
    assert (kept.outcome.tolist(), kept.row.tolist()) == ([0, 1], [0, 2])
    assert (kept.n_items, kept.n_annotators) == (6, 5)


def test_the_score_is_that_of_held_out():
    votes = crowd([0.25] * 4)
    result = held_out(ShareOfLeft(p_left=0.25), votes)
    p = np.where(votes.outcome == 0, 0.99 * 0.25 + 0.005, 0.99 * 0.75 + 0.005)
    assert result.n_scored == votes.n_comparisons
    assert result.score == pytest.approx(np.log(p).mean())
    assert "per comparison, 160 comparisons scored" in repr(result)


def test_pairs_are_one_cluster_whichever_item_is_on_the_left():
    votes = votes_of([(0, 1, s, s % 2) for s in range(4)] + [(1, 0, s, 0) for s in range(4)])
    fold = assign_folds(votes, 2, seed=0)
    assert len(set(score_folds(ShareOfLeft(), votes, fold).item)) == 1


def test_a_model_is_chosen_by_held_out_and_refusals_are_listed():
    votes = crowd([0.1, 0.2, 0.9] * 5)
    choice = choose_among(
        votes,
        {"share-of-left": ShareOfLeft, "other": lambda: AlsoShareOfLeft(by_annotator=True)},
        "share-of-left",
    )
    assert choice.model == "other"
    assert "predicts held-out comparisons best" in choice.why
    assert "per comparison" in choice.why
    impossible = {"other": lambda: AlsoShareOfLeft(p_left=2.0)}
    refused = choose_among(votes, {"share-of-left": ShareOfLeft, **impossible}, "share-of-left")
    assert refused.refused == {"other": "p_left is no probability"}
    with pytest.raises(at.InputError, match="no model can be fitted; p_left"):
        choose_among(votes, impossible, "share-of-left")
