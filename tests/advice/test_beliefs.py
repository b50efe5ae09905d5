"""Uncertainty and gain, beside sums written out from their definitions."""

import numpy as np
import pytest

from annotruth import metrics, simulate
from annotruth.advice import beliefs as module
from annotruth.advice.beliefs import Beliefs, beliefs, share_counted
from annotruth.advice.crowd import judge
from annotruth.labels import Labels
from annotruth.models.robust_gpm.model import RobustGPM


def random_beliefs(seed, *, divided):
    """Beliefs of 6 items, and the rates of a label; with classes one more kind may be there."""
    rng = np.random.default_rng(seed)
    kinds, categories = (4, 4) if divided else (7, 4)
    opinions = np.eye(4) if divided else rng.dirichlet(np.ones(categories), size=kinds)
    halves = None
    if divided:
        halves = np.zeros((6, categories))
        for row in halves:
            row[rng.choice(categories, 2, replace=False)] = 0.5
    weights = rng.dirichlet(np.ones(kinds + divided), size=6)
    rates = rng.dirichlet(np.ones(categories), size=kinds).T
    return Beliefs(weights, opinions, halves), rates


def written_out(now, e):
    """One item's weights, and the opinions of its kinds, the divided one among them."""
    extra = [] if now.halves is None else [now.halves[e]]
    return now.weights[e], np.array([*now.opinions, *extra])


def uncertainty(weights, opinions):
    mean = weights @ opinions
    return sum(
        w * metrics.hellinger(theta, mean)[0] ** 2
        for w, theta in zip(weights, opinions, strict=True)
    )


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_uncertainty_gain_and_distance_are_what_they_say(seed, divided):
    now, rates = random_beliefs(seed, divided=divided)
    for e in range(6):
        weights, opinions = written_out(now, e)
        before = uncertainty(weights, opinions)
        assert now.uncertainty()[e] == pytest.approx(before, abs=1e-12)
        all_rates = rates if now.halves is None else np.column_stack([rates, rates @ now.halves[e]])
        after = sum(
            (weights @ row) * uncertainty(weights * row / (weights @ row), opinions)
            for row in all_rates
        )
        assert now.gain(rates)[e] == pytest.approx(before - after, abs=1e-12)
        mean = weights @ opinions
        far = [metrics.hellinger(theta, mean)[0] for theta in opinions]
        assert now.distance()[e] == pytest.approx(weights @ far, abs=1e-12)
        values = np.arange(4.0)
        scores = opinions @ values
        spread = weights @ (scores - weights @ scores) ** 2
        assert now.variance_of_score(values)[e] == pytest.approx(spread, abs=1e-12)
        leads = [np.mean(mean.argmax() == np.flatnonzero(t == t.max())) for t in opinions]
        assert now.p_leads()[e] == pytest.approx(weights @ leads, abs=1e-12)


@pytest.mark.parametrize("divided", [False, True])
def test_a_label_taken_in_reweighs_the_kinds(divided):
    now, rates = random_beliefs(3, divided=divided)
    label = np.array([0, 1, 2, 3, 0, 1])
    after = now.after(rates[label])
    for e, n in enumerate(label):
        row = rates[n] if now.halves is None else np.append(rates[n], rates[n] @ now.halves[e])
        joint = now.weights[e] * row
        np.testing.assert_allclose(after.weights[e], joint / joint.sum(), atol=1e-14)


def test_what_is_known_gains_nothing_however_divided():
    opinions = np.array([[0.5, 0.5, 0.0], [0.1, 0.1, 0.8]])
    now = Beliefs(np.array([[1.0, 0.0], [0.5, 0.5]]), opinions, None)
    known, open_ = now.gain(np.array([[0.4, 0.1], [0.4, 0.1], [0.2, 0.8]]))
    assert known == pytest.approx(0.0, abs=1e-12)
    assert open_ > 0.02


def test_beliefs_are_the_fits_own_where_labels_count_in_full(monkeypatch):
    monkeypatch.setattr(module, "wider_by_labels", lambda labels: 1.0)
    made = simulate.crowd(n_items=40, n_annotators=12, labels_per_item=6, seed=1)
    fit, kinds = RobustGPM(truth="opinions").fit_with_kinds(made.labels)
    ((_, _, now),) = beliefs(made.labels, kinds, 0.0)
    np.testing.assert_allclose(now.distribution(), fit.distribution.dense(5), atol=1e-9)
    np.testing.assert_allclose(now.p_leads(), fit.item_columns["p_leads"], atol=1e-9)


def test_labels_count_less_where_annotators_are_hardly_known():
    few, many = (
        simulate.crowd(n_items=30, n_annotators=20, labels_per_item=n, seed=1).labels
        for n in (2, 20)
    )
    assert share_counted(few) < share_counted(many) < 1.0


@pytest.mark.parametrize("divided", [0.0, 0.3])
def test_labels_that_count_less_leave_more_open(classes, divided, monkeypatch):
    labels, _ = classes(1, per_item=3, items=30)
    _, kinds = RobustGPM().fit_with_kinds(labels)
    found = []
    for factor in (1.0, 2.0, 1e6):
        monkeypatch.setattr(module, "wider_by_labels", lambda labels, factor=factor: factor)
        ((_, _, now),) = beliefs(labels, kinds, divided)
        found.append(now)
    full, half, none = found
    assert full.uncertainty().mean() < half.uncertainty().mean()
    expected = np.append((1.0 - divided) * kinds.prior, [divided / 6] if divided else [])
    np.testing.assert_allclose(none.weights[0], expected / expected.sum(), atol=1e-6)


@pytest.mark.parametrize("ordinal", [True, False])
def test_parts_change_nothing(three_sorts, ordinal, monkeypatch):
    crowd = judge(Labels.of(three_sorts(0, ordinal=ordinal)))
    ((lo, hi, whole),) = crowd.beliefs()
    monkeypatch.setattr(module, "MOST_NUMBERS", 2000)
    parts = list(crowd.beliefs())
    assert len(parts) > 3
    assert (parts[0][0], parts[-1][1]) == (lo, hi)
    np.testing.assert_allclose(np.concatenate([p.weights for *_, p in parts]), whole.weights)


def test_a_known_class_is_certain(classes):
    labels, truth = classes(1, per_item=3, items=30)
    crowd = judge(labels.with_gold({0: truth[0], 7: truth[7]}))
    ((_, _, now),) = crowd.beliefs()
    assert now.uncertainty()[[0, 7]] == pytest.approx(0.0, abs=1e-12)
    assert now.distribution()[7].argmax() == "abcd".index(truth[7])
