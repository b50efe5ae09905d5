"""Held-out scores: what is held out, what it scores, and what it tells of models."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

import annotruth as at
from annotruth import simulate
from annotruth.labels import Labels, Scale
from annotruth.models.base import Estimator
from annotruth.models.em import direct_history
from annotruth.models.registry import MODELS
from annotruth.models.result import Fit
from annotruth.selection.heldout import parts_of

QUICK = ("majority", "mean", "gpm", "robust-gpm", "dawid-skene", "glad", "subject-bias")


@dataclass(kw_only=True)
class Stubborn(Estimator):
    """Says the first category of everything with probability ``p``."""

    name: ClassVar[str] = "stubborn"
    p: float = 1.0

    def _fit(self, labels, progress, previous):
        score = np.zeros(labels.n_items)
        return Fit(self.name, self.settings(), labels, direct_history(), score=score)

    def _predict_proba(self, item, annotator):
        rest = (1 - self.p) / (self.result_.data.n_categories - 1)
        rows = np.full((len(item), self.result_.data.n_categories), rest)
        rows[:, 0] = self.p
        return rows


@pytest.fixture(scope="module")
def crowd():
    return simulate.crowd(n_items=60, n_annotators=12, n_categories=4, seed=11).labels


def pairs(labels):
    return list(zip(labels.item_of_label(), labels.annotator, strict=True))


SPARSE = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 7), st.integers(1, 3)),
    min_size=1,
    max_size=40,
    unique_by=lambda row: row[:2],
)


@settings(deadline=None, max_examples=200)
@given(rows=SPARSE, folds=st.integers(2, 6))
def test_labels_keep_company(rows, folds):
    labels = Labels.of(rows)
    single = np.minimum(
        labels.labels_per_item[labels.item_of_label()],
        labels.labels_per_annotator[labels.annotator],
    )
    if (single == 1).all():
        with pytest.raises(at.InputError, match=r"no label can be predicted .* robust-gpm"):
            parts_of(labels, folds, seed=0)
        return
    part = parts_of(labels, folds, seed=0)
    assert (part[single == 1] == -1).all()
    for one in range(folds):
        left = part != one
        assert len(np.unique(labels.item_of_label()[left])) == labels.n_items
        assert len(np.unique(labels.annotator[left])) == labels.n_annotators
    # Everybody takes back one label at the most.
    assert np.count_nonzero(part < 0) <= labels.n_items + labels.n_annotators


def test_an_items_labels_are_dealt_evenly(crowd):
    part = parts_of(crowd, 5, seed=0)
    assert (part >= 0).all()
    each = np.zeros((crowd.n_items, 5), dtype=int)
    np.add.at(each, (crowd.item_of_label(), part), 1)
    assert each.min() == 2  # 12 labels an item
    assert each.max() == 3
    # Which of them is up to chance: two seeds agree on a fifth.
    assert 0.1 < (part == parts_of(crowd, 5, seed=1)).mean() < 0.35


def test_a_label_is_predicted_from_the_others_and_the_gold(crowd, monkeypatch):
    gold = crowd.with_gold({3: 2})
    seen = []
    original = Stubborn._predict_proba

    def watch(self, item, annotator):
        data = self.result_.data
        seen.append((set(pairs(data)), set(zip(item, annotator, strict=True)), data.known))
        return original(self, item, annotator)

    monkeypatch.setattr(Stubborn, "_predict_proba", watch)
    at.held_out(Stubborn(), gold, folds=4)
    assert len(seen) == 4
    everything = set(pairs(gold))
    for trained, asked, known in seen:
        assert not trained & asked
        assert trained | asked == everything
        np.testing.assert_array_equal(known, gold.known)


def test_the_score_by_hand():
    rows = [(e, s, 1 + (e + s) % 2) for e in range(3) for s in range(3)] + [("lone", 0, 1)]
    found = at.held_out(Stubborn(p=0.9), [(str(e), s, n) for e, s, n in rows], folds=3)
    assert (found.n_scored, found.n_unscored) == (9, 1)
    of = {1: np.log(0.99 * 0.9 + 0.005), 2: np.log(0.99 * 0.1 + 0.005)}
    log_p = {e: [of[n] for item, _, n in rows if item == e] for e in range(3)}
    mean = np.mean([p for own in log_p.values() for p in own])
    assert found.score == pytest.approx(mean, rel=1e-12)
    sums = [sum(p - mean for p in own) for own in log_p.values()]
    error = np.sqrt(3 / 2 * sum(u**2 for u in sums)) / 9
    assert found.standard_error == pytest.approx(error, rel=1e-12)
    assert "9 labels scored" in repr(found)


def test_what_cannot_be_costs_no_more_than_the_floor(crowd):
    found = at.held_out(Stubborn(p=1.0), crowd)
    assert found.log_p.min() == pytest.approx(np.log(0.01 / 4))
    assert found.log_p.max() == pytest.approx(np.log(0.99 + 0.01 / 4))


def test_differences_are_of_the_same_labels(crowd):
    one, other = (at.held_out(Stubborn(p=p), crowd) for p in (0.25, 0.3))
    gain, error = one.ahead_of(other)
    assert gain == pytest.approx(one.score - other.score)
    assert error < other.standard_error + one.standard_error
    assert one.ahead_of(one) == (0.0, 0.0)


@pytest.mark.parametrize("name", QUICK)
def test_the_order_of_rows_changes_nothing_that_matters(name, crowd):
    frame = crowd.to_arrow().to_pandas()
    shuffled = frame.sample(frac=1.0, random_state=1)
    one, other = (at.held_out(name, data, folds=3) for data in (frame, shuffled))
    assert one.score == pytest.approx(other.score, abs=1e-6)
    assert one.standard_error == pytest.approx(other.standard_error, abs=1e-6)


def test_options_of_an_estimator_count(crowd):
    model = at.GPM(max_iter=1)
    found = at.held_out(model, crowd)
    assert not found.converged
    assert found.score != at.held_out("gpm", crowd).score
    assert not hasattr(model, "result_")


def test_large_tables_are_asked_in_pieces(crowd, monkeypatch):
    whole = at.held_out("robust-gpm", crowd)
    monkeypatch.setattr("annotruth.selection.heldout._MOST_NUMBERS", 32 * 7)
    pieces = at.held_out("robust-gpm", crowd)
    np.testing.assert_allclose(whole.log_p, pieces.log_p, rtol=1e-12)


def test_fewer_than_two_folds_are_refused(crowd):
    with pytest.raises(at.InputError, match="folds must be 2 or more, not 1"):
        at.held_out("gpm", crowd, folds=1)


def test_progress_tells_the_part(crowd):
    told = []
    at.held_out("gpm", crowd, folds=2, progress=told.append)
    assert {heard.stage for heard in told} == {f"trying gpm, part {k} of 2" for k in (1, 2)}


@pytest.mark.parametrize("name", MODELS)
def test_noise_cannot_be_predicted(name):
    """Labels without structure: nobody beats the frequencies of the categories."""
    rng = np.random.default_rng(7)
    item, annotator = np.indices((120, 10)).reshape(2, -1)
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    labels = Labels.from_codes(
        item,
        annotator,
        rng.choice(4, size=len(item), p=shares),
        items=list(range(120)),
        annotators=list(range(10)),
        scale=Scale.ordinal([1, 2, 3, 4]),
    )
    observed = np.bincount(labels.category_of_label()) / labels.n_labels
    found = at.held_out(name, labels)
    assert found.score <= -entropy(observed) + found.standard_error / 2


def test_repeaters_are_predicted_by_who_knows_of_them():
    made = simulate.crowd(
        n_items=120,
        n_annotators=20,
        labels_per_item=8,
        behavior="repeated",
        spammer_share=0.3,
        seed=3,
    )
    robust, plain = (at.held_out(name, made.labels, folds=3) for name in ("robust-gpm", "gpm"))
    gain, error = robust.ahead_of(plain)
    assert gain > 5 * error


def test_subject_bias_predicts_its_own_votes_best():
    rng = np.random.default_rng(1)
    psi, bias, sd = rng.uniform(2, 6, 100), rng.normal(0, 0.8, 20), rng.uniform(0.3, 0.9, 20)
    votes = psi[:, np.newaxis] + bias + sd * rng.normal(size=(100, 20))
    item, annotator = np.indices(votes.shape).reshape(2, -1)
    labels = Labels.from_codes(
        item,
        annotator,
        np.clip(np.rint(votes), 1, 7).astype(int).ravel() - 1,
        items=list(range(100)),
        annotators=list(range(20)),
        scale=Scale.ordinal(list(range(1, 8))),
    )
    own = at.held_out("subject-bias", labels)
    for name in MODELS:
        gain, error = own.ahead_of(at.held_out(name, labels))
        assert gain >= -error, name


def test_dawid_skene_predicts_confusions_best():
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=150)
    rates = rng.dirichlet(np.full(3, 0.7), size=(10, 3))
    item, annotator = np.indices((150, 10)).reshape(2, -1)
    said = (rng.random((len(item), 1)) > rates[annotator, truth[item]].cumsum(axis=1)).sum(axis=1)
    labels = Labels.from_codes(
        item,
        annotator,
        np.minimum(said, 2),
        items=list(range(150)),
        annotators=list(range(10)),
        scale=Scale.ordinal([1, 2, 3]),
    )
    own = at.held_out("dawid-skene", labels)
    for name in ("majority", "gpm", "glad", "subject-bias"):
        gain, error = own.ahead_of(at.held_out(name, labels))
        assert gain > 3 * error, name
