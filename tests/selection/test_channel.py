"""The channel from classes to labels that all models are compared through."""

import numpy as np
import pytest

import annotruth as at
from annotruth.labels import Labels, Scale
from annotruth.selection.channel import LabelChannel
from annotruth.selection.heldout import assign_folds

ROWS = [("a", "x", 0), ("a", "y", 1), ("a", "z", 0), ("b", "x", 1), ("b", "y", 1), ("c", "z", 2)]


def by_hand(rows, n):
    """Return the matrices of all annotators, annotators x classes x labels, by dictionaries."""
    items, people = sorted({row[0] for row in rows}), sorted({row[1] for row in rows})
    votes = {i: [label for item, _, label in rows if item == i] for i in items}
    share = {i: np.bincount(votes[i], minlength=n) / len(votes[i]) for i in items}
    counts = np.zeros((len(people), n, n))
    for item, person, label in rows:
        counts[people.index(person), :, label] += share[item]
    total = counts.sum(axis=0)
    crowd = (total + 1 / n) / (total.sum(axis=1, keepdims=True) + 1)
    return (counts + n * crowd) / (counts.sum(axis=2, keepdims=True) + n)


def test_the_channel_is_that_of_the_equations():
    labels = Labels.of(ROWS)
    annotator, label = np.indices((3, 3)).reshape(2, -1)
    likelihood = LabelChannel(labels).likelihood(annotator, label).reshape(3, 3, 3)
    expected = by_hand(ROWS, 3).transpose(0, 2, 1)  # annotators x labels x classes
    np.testing.assert_allclose(likelihood, expected, rtol=1e-12)
    np.testing.assert_allclose(likelihood.sum(axis=1), 1.0, rtol=1e-12)


def crowd_with_spammers(seed):
    """Return labels of classes, of which a third are given by people with a favorite class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=200)
    item, annotator = np.repeat(np.arange(200), 6), rng.integers(12, size=1200)
    favorite = rng.dirichlet([0.5, 0.5, 0.5], size=12)
    serious = np.where(rng.random(1200) < 0.8, truth[item], rng.integers(3, size=1200))
    bored = (rng.random((1200, 1)) > favorite[annotator].cumsum(axis=1)).sum(axis=1)
    label = np.where(annotator < 4, np.minimum(bored, 2), serious)
    _, first = np.unique(item * 12 + annotator, return_index=True)
    return Labels.from_codes(
        item[first],
        annotator[first],
        label[first],
        items=list(range(200)),
        annotators=list(range(12)),
        scale=Scale.nominal(["x", "y", "z"]),
    )


def test_on_nominal_scales_distributions_are_compared():
    """Annotators' parameters of a model have no influence, on ordinal scales they have."""
    labels = crowd_with_spammers(0)
    choice = at.choose(labels, ["majority", "dawid-skene"], folds=3)
    for name, result in choice.scores.items():
        assert result.score != pytest.approx(at.held_out(name, labels, folds=3).score, abs=1e-6)
    # Vote shares through this channel are better than vote shares as predictions.
    assert choice.scores["majority"].score > at.held_out("majority", labels, folds=3).score


def test_the_score_is_that_of_the_mixed_channel():
    labels = crowd_with_spammers(1)
    result = at.choose(labels, ["majority"], folds=2).scores["majority"]
    fold = assign_folds(labels, 2, 0)
    item, category = labels.item_of_label(), labels.category_of_label()
    log_p = np.full(labels.n_labels, np.nan)
    for current in (0, 1):
        rest, rows = labels.subset(fold != current), np.flatnonzero(fold == current)
        theta = at.fit(rest, "majority").distribution.dense(3)
        likelihood = LabelChannel(rest).likelihood(labels.annotator[rows], category[rows])
        p = (theta[item[rows]] * likelihood).sum(axis=1)
        log_p[rows] = np.log(0.99 * p + 0.01 / 3)
    np.testing.assert_allclose(result.log_p, log_p[fold >= 0], rtol=1e-12)


def test_a_model_without_probabilities_of_classes_is_refused(monkeypatch):
    labels = crowd_with_spammers(2)
    monkeypatch.setattr(
        "annotruth.models.baselines.MajorityVote._fit",
        lambda self, labels, progress, previous: at.fit(
            Labels.of([(0, "a", 1), (0, "b", 2)]), "mean"
        ),
    )
    choice = at.choose(labels, ["majority", "gpm"], folds=2)
    assert choice.model == "gpm"
    assert "reports no probabilities of classes" in choice.refused["majority"]
