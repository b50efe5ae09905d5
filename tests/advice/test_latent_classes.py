"""Uncertainty and gain by latent classes, beside sums written out from their definitions."""

from dataclasses import replace

import numpy as np
import pytest

import annotruth as at
from annotruth import metrics, simulate
from annotruth.analyses.advice import latent_classes as module
from annotruth.analyses.advice.advice import basis_of
from annotruth.analyses.advice.latent_classes import (
    ItemPosterior,
    LatentClassBasis,
    estimate_divided,
    posterior_of,
)
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.observations import Labels


def random_posterior(seed, *, divided):
    """The posterior of 6 items, and the confusion of an annotator; with classes there may be divided items."""
    rng = np.random.default_rng(seed)
    n_classes, n_categories = (4, 4) if divided else (7, 4)
    opinions = np.eye(4) if divided else rng.dirichlet(np.ones(n_categories), size=n_classes)
    halves = None
    if divided:
        halves = np.zeros((6, n_categories))
        for row in halves:
            row[rng.choice(n_categories, 2, replace=False)] = 0.5
    weights = rng.dirichlet(np.ones(n_classes + divided), size=6)
    confusion = rng.dirichlet(np.ones(n_categories), size=n_classes).T
    return ItemPosterior(weights, opinions, halves), confusion


def written_out(posterior, e):
    """One item's weights, and the opinions of its classes, the divided one among them."""
    extra = [] if posterior.halves is None else [posterior.halves[e]]
    return posterior.weights[e], np.array([*posterior.opinions, *extra])


def uncertainty(weights, opinions):
    mean = weights @ opinions
    return sum(
        w * metrics.hellinger(theta, mean)[0] ** 2
        for w, theta in zip(weights, opinions, strict=True)
    )


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_uncertainty_gain_and_distance_match_their_definitions(seed, divided):
    posterior, confusion = random_posterior(seed, divided=divided)
    for e in range(6):
        weights, opinions = written_out(posterior, e)
        before = uncertainty(weights, opinions)
        assert posterior.uncertainty()[e] == pytest.approx(before, abs=1e-12)
        all_confusion = confusion
        if posterior.halves is not None:
            all_confusion = np.column_stack([confusion, confusion @ posterior.halves[e]])
        after = sum(
            (weights @ row) * uncertainty(weights * row / (weights @ row), opinions)
            for row in all_confusion
        )
        assert posterior.gain(confusion)[e] == pytest.approx(before - after, abs=1e-12)
        mean = weights @ opinions
        distances = [metrics.hellinger(theta, mean)[0] for theta in opinions]
        assert posterior.expected_distance()[e] == pytest.approx(weights @ distances, abs=1e-12)
        values = np.arange(4.0)
        scores = opinions @ values
        variance = weights @ (scores - weights @ scores) ** 2
        assert posterior.score_variance(values)[e] == pytest.approx(variance, abs=1e-12)
        tops = [np.mean(mean.argmax() == np.flatnonzero(t == t.max())) for t in opinions]
        assert posterior.p_top_label()[e] == pytest.approx(weights @ tops, abs=1e-12)


@pytest.mark.parametrize("divided", [False, True])
def test_a_label_updates_the_posterior_by_bayes_rule(divided):
    posterior, confusion = random_posterior(3, divided=divided)
    label = np.array([0, 1, 2, 3, 0, 1])
    after = posterior.updated(confusion[label])
    for e, n in enumerate(label):
        row = confusion[n]
        if posterior.halves is not None:
            row = np.append(row, row @ posterior.halves[e])
        joint = posterior.weights[e] * row
        np.testing.assert_allclose(after.weights[e], joint / joint.sum(), atol=1e-14)


def test_a_certain_item_gains_nothing_however_divided():
    opinions = np.array([[0.5, 0.5, 0.0], [0.1, 0.1, 0.8]])
    posterior = ItemPosterior(np.array([[1.0, 0.0], [0.5, 0.5]]), opinions, None)
    certain, uncertain = posterior.gain(np.array([[0.4, 0.1], [0.4, 0.1], [0.2, 0.8]]))
    assert certain == pytest.approx(0.0, abs=1e-12)
    assert uncertain > 0.02


def classes_of(labels, **options):
    model = RobustGPM(**options).fit(labels)
    return model.result_, model.latent_classes()


def test_with_full_label_weight_the_posterior_is_the_fits_own():
    made = simulate.crowd(n_items=40, n_annotators=12, labels_per_item=6, seed=1)
    fit, classes = classes_of(made.labels, truth="opinions")
    posterior = posterior_of(made.labels, replace(classes, label_weight=1.0), 0.0, 0, 40)
    np.testing.assert_allclose(posterior.distribution(), fit.distribution.dense(5), atol=1e-9)
    np.testing.assert_allclose(posterior.p_top_label(), fit.item_columns["p_leads"], atol=1e-9)


def test_labels_count_less_with_few_labels_per_annotator():
    few, many = (
        classes_of(simulate.crowd(n_items=30, n_annotators=20, labels_per_item=n, seed=1).labels)[1]
        for n in (2, 20)
    )
    assert few.label_weight < many.label_weight < 1.0


@pytest.mark.parametrize("divided", [0.0, 0.3])
def test_labels_that_count_less_leave_more_uncertainty(classes, divided):
    labels, _ = classes(1, per_item=3, items=30)
    _, latent = classes_of(labels)
    full, half, none = (
        posterior_of(labels, replace(latent, label_weight=weight), divided, 0, 30)
        for weight in (1.0, 0.25, 1e-12)
    )
    assert full.uncertainty().mean() < half.uncertainty().mean()
    expected = np.append((1.0 - divided) * latent.prior, [divided / 6] if divided else [])
    np.testing.assert_allclose(none.weights[0], expected / expected.sum(), atol=1e-6)


@pytest.mark.parametrize("ordinal", [True, False])
def test_partitions_do_not_change_the_posterior(three_kinds_of_items, ordinal, monkeypatch):
    basis = basis_of(at.fit(three_kinds_of_items(0, ordinal=ordinal)))
    assert isinstance(basis, LatentClassBasis)
    ((lo, hi, whole),) = basis.posteriors()
    monkeypatch.setattr(module, "MAX_NUMBERS", 2000)
    parts = list(basis.posteriors())
    assert len(parts) > 3
    assert (parts[0][0], parts[-1][1]) == (lo, hi)
    np.testing.assert_allclose(np.concatenate([p.weights for *_, p in parts]), whole.weights)


def test_a_known_class_is_certain(classes):
    labels, truth = classes(1, per_item=3, items=30)
    basis = basis_of(at.fit(labels.with_gold({0: truth[0], 7: truth[7]})))
    ((_, _, posterior),) = basis.posteriors()
    assert posterior.uncertainty()[[0, 7]] == pytest.approx(0.0, abs=1e-12)
    assert posterior.distribution()[7].argmax() == "abcd".index(truth[7])


def test_the_share_of_divided_items_is_estimated(three_kinds_of_items):
    basis = basis_of(at.fit(three_kinds_of_items(2, ordinal=False)))
    assert basis.divided_share == pytest.approx(1 / 3, abs=0.06)


def test_without_divided_items_the_share_is_near_zero(classes):
    labels, _ = classes(1, per_item=10)
    assert basis_of(at.fit(labels)).divided_share < 0.02


def test_opinions_and_single_categories_have_no_divided_class(three_kinds_of_items):
    rows = three_kinds_of_items(0, ordinal=True)
    assert basis_of(at.fit(rows, truth="opinions")).divided_share == 0
    assert basis_of(at.fit([("a", "x", "one"), ("b", "x", "one")])).divided_share == 0


def test_annotators_are_not_blamed_for_divided_items(three_kinds_of_items):
    labels = Labels.of(three_kinds_of_items(2, ordinal=False))
    model = RobustGPM().fit(labels)
    classes = model.latent_classes()
    corrected, _ = estimate_divided(labels, classes)
    serious = model.result_.reliability > 0.5
    before, after = (np.einsum("snn->s", each.confusion) / 5 for each in (classes, corrected))
    assert after[serious].mean() > before[serious].mean() + 0.1
    np.testing.assert_allclose(corrected.confusion.sum(axis=1), 1.0, atol=1e-9)
