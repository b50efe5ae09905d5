"""Held-out scores: the folds, the score, and which models predict which labels best."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

import annotruth as at
from annotruth import simulate
from annotruth.models.base import Estimator
from annotruth.models.em import direct_history
from annotruth.models.registry import MODELS
from annotruth.models.result import Fit
from annotruth.observations import Labels, Scale
from annotruth.selection.heldout import HeldOut, assign_folds

QUICK = ("majority", "mean", "gpm", "robust-gpm", "dawid-skene", "glad", "subject-bias")


@dataclass(kw_only=True)
class ConstantModel(Estimator):
    """Predicts the first category of every item with probability ``p``."""

    name: ClassVar[str] = "constant"
    p: float = 1.0

    def _fit(self, labels, progress):
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
def test_every_item_and_annotator_keeps_a_label_in_every_fold(rows, folds):
    labels = Labels.of(rows)
    single = np.minimum(
        labels.labels_per_item[labels.item_of_label()],
        labels.labels_per_annotator[labels.annotator],
    )
    if (single == 1).all():
        with pytest.raises(at.InputError, match=r"no label can be predicted .* robust-gpm"):
            assign_folds(labels, folds, seed=0)
        return
    fold = assign_folds(labels, folds, seed=0)
    assert (fold[single == 1] == -1).all()
    for held_out in range(folds):
        fitted = fold != held_out
        assert len(np.unique(labels.item_of_label()[fitted])) == labels.n_items
        assert len(np.unique(labels.annotator[fitted])) == labels.n_annotators
    # At most one label per item and annotator is never held out.
    assert np.count_nonzero(fold < 0) <= labels.n_items + labels.n_annotators


def test_labels_of_an_item_are_spread_evenly_over_the_folds(crowd):
    fold = assign_folds(crowd, 5, seed=0)
    assert (fold >= 0).all()
    counts = np.zeros((crowd.n_items, 5), dtype=int)
    np.add.at(counts, (crowd.item_of_label(), fold), 1)
    assert counts.min() == 2  # 12 labels per item
    assert counts.max() == 3
    # The assignment is random: two seeds agree on a fifth of the labels.
    assert 0.1 < (fold == assign_folds(crowd, 5, seed=1)).mean() < 0.35


def test_a_label_is_predicted_from_other_folds_and_gold(crowd, monkeypatch):
    gold = crowd.with_gold({3: 2})
    calls = []
    original = ConstantModel._predict_proba

    def spy(self, item, annotator):
        data = self.result_.data
        calls.append((set(pairs(data)), set(zip(item, annotator, strict=True)), data.known))
        return original(self, item, annotator)

    monkeypatch.setattr(ConstantModel, "_predict_proba", spy)
    at.held_out(ConstantModel(), gold, folds=4)
    assert len(calls) == 4
    all_pairs = set(pairs(gold))
    for fitted, predicted, known in calls:
        assert not fitted & predicted
        assert fitted | predicted == all_pairs
        np.testing.assert_array_equal(known, gold.known)


def test_score_and_standard_error_computed_by_hand():
    rows = [(e, s, 1 + (e + s) % 2) for e in range(3) for s in range(3)] + [("lone", 0, 1)]
    result = at.held_out(ConstantModel(p=0.9), [(str(e), s, n) for e, s, n in rows], folds=3)
    assert (result.n_scored, result.n_unscored) == (9, 1)
    log_p_of = {1: np.log(0.99 * 0.9 + 0.005), 2: np.log(0.99 * 0.1 + 0.005)}
    log_p = {e: [log_p_of[n] for item, _, n in rows if item == e] for e in range(3)}
    mean = np.mean([p for of_item in log_p.values() for p in of_item])
    assert result.score == pytest.approx(mean, rel=1e-12)
    # Three items and three annotators: V_item + V_annotator - V_label.
    deviation = np.array(list(log_p.values())) - mean
    by_item, by_annotator = (3 / 2 * (deviation.sum(axis=k) ** 2).sum() for k in (1, 0))
    variance = by_item + by_annotator - 9 / 8 * (deviation**2).sum()
    error = np.sqrt(max(variance, by_item, by_annotator)) / 9
    assert result.standard_error == pytest.approx(error, rel=1e-12)
    assert "9 labels scored" in repr(result)


def test_the_standard_error_covers_effects_of_items_and_of_annotators():
    """The spread of means over new items and new annotators is close to the standard error."""
    rng = np.random.default_rng(3)
    item, annotator = np.indices((40, 25)).reshape(2, -1)
    means, errors = [], []
    for _ in range(400):
        effects = rng.normal(size=40)[item] + rng.normal(size=25)[annotator]
        held_out = HeldOut("any", effects + rng.normal(size=1000), item, annotator, 0, True)
        means.append(held_out.score)
        errors.append(held_out.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_the_loss_of_a_label_is_bounded(crowd):
    result = at.held_out(ConstantModel(p=1.0), crowd)
    assert result.log_p.min() == pytest.approx(np.log(0.01 / 4))
    assert result.log_p.max() == pytest.approx(np.log(0.99 + 0.01 / 4))


def test_ahead_of_compares_the_same_labels(crowd):
    one, other = (at.held_out(ConstantModel(p=p), crowd) for p in (0.25, 0.3))
    gain, error = one.ahead_of(other)
    assert gain == pytest.approx(one.score - other.score)
    assert error < other.standard_error + one.standard_error
    assert one.ahead_of(one) == (0.0, 0.0)


@pytest.mark.parametrize("name", QUICK)
def test_the_order_of_rows_does_not_matter(name, crowd):
    frame = crowd.to_arrow().to_pandas()
    shuffled = frame.sample(frac=1.0, random_state=1)
    one, other = (at.held_out(name, data, folds=3) for data in (frame, shuffled))
    assert one.score == pytest.approx(other.score, abs=1e-6)
    assert one.standard_error == pytest.approx(other.standard_error, abs=1e-6)


def test_options_of_an_estimator_are_used_and_it_is_not_changed(crowd):
    model = at.GPM(max_iter=1)
    result = at.held_out(model, crowd)
    assert not result.converged
    assert result.score != at.held_out("gpm", crowd).score
    assert not hasattr(model, "result_")


def test_predicting_few_labels_at_a_time_gives_the_same_scores(crowd, monkeypatch):
    at_once = at.held_out("robust-gpm", crowd)
    monkeypatch.setattr("annotruth.selection.heldout._MAX_PREDICTIONS", 32 * 7)
    few_at_a_time = at.held_out("robust-gpm", crowd)
    np.testing.assert_allclose(at_once.log_p, few_at_a_time.log_p, rtol=1e-12)


def test_fewer_than_two_folds_are_refused(crowd):
    with pytest.raises(at.InputError, match="folds must be 2 or more, not 1"):
        at.held_out("gpm", crowd, folds=1)


def test_progress_names_the_fold(crowd):
    reported = []
    at.held_out("gpm", crowd, folds=2, progress=reported.append)
    stages = {f"cross-validating gpm, fold {k} of 2" for k in (1, 2)}
    assert {one.stage for one in reported} == stages


@pytest.mark.parametrize("name", MODELS)
def test_no_model_predicts_noise_better_than_the_category_frequencies(name):
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
    result = at.held_out(name, labels)
    assert result.score <= -entropy(observed) + result.standard_error / 2


def test_robust_gpm_predicts_annotators_who_repeat_a_label():
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


def test_subject_bias_predicts_votes_from_its_model_best():
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
    best = at.held_out("subject-bias", labels)
    for name in MODELS:
        gain, error = best.ahead_of(at.held_out(name, labels))
        assert gain >= -error, name


def test_dawid_skene_predicts_labels_from_its_model_best():
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=150)
    rates = rng.dirichlet(np.full(3, 0.7), size=(10, 3))
    item, annotator = np.indices((150, 10)).reshape(2, -1)
    label = (rng.random((len(item), 1)) > rates[annotator, truth[item]].cumsum(axis=1)).sum(axis=1)
    labels = Labels.from_codes(
        item,
        annotator,
        np.minimum(label, 2),
        items=list(range(150)),
        annotators=list(range(10)),
        scale=Scale.ordinal([1, 2, 3]),
    )
    best = at.held_out("dawid-skene", labels)
    for name in ("majority", "gpm", "glad", "subject-bias"):
        gain, error = best.ahead_of(at.held_out(name, labels))
        assert gain > 3 * error, name
