"""Latent classes with confusion matrices: one-coin, iBCC, EBCC and MACE recover what is known."""

import numpy as np
import pytest

import annotruth as at
from annotruth.models.registry import get_model
from annotruth.observations import Labels, Scale

NAMES = ("one-coin", "ibcc", "ebcc", "mace")
WITH_MATRICES = ("ibcc", "ebcc")
PRIOR = np.array([0.5, 0.3, 0.2])


def draw_labels(rng, *, prior, confusion, n_items, labels_per_item):
    """Draw labels of the classes x, y, z; return them and the true classes."""
    truth = rng.choice(len(prior), size=n_items, p=prior)
    people = np.argsort(rng.random((n_items, len(confusion))), axis=1)[:, :labels_per_item]
    below = np.cumsum(confusion[people, truth[:, np.newaxis]], axis=2)[:, :, :-1]
    label = (rng.random((*people.shape, 1)) >= below).sum(axis=2)
    labels = Labels.from_codes(
        np.repeat(np.arange(n_items), labels_per_item),
        people.ravel(),
        label.ravel(),
        items=np.arange(n_items),
        annotators=np.arange(len(confusion)),
        scale=Scale.nominal(["x", "y", "z"]),
    )
    return labels, truth


@pytest.fixture(scope="module")
def one_accuracy():
    """Labels by annotators of one accuracy each: labels, true classes, accuracies."""
    rng = np.random.default_rng(5)
    accuracy = rng.uniform(0.35, 0.95, size=20)
    wrong = (1.0 - accuracy)[:, np.newaxis, np.newaxis] / 2
    confusion = np.where(np.eye(3), accuracy[:, np.newaxis, np.newaxis], wrong)
    drawn = draw_labels(rng, prior=PRIOR, confusion=confusion, n_items=4000, labels_per_item=8)
    return (*drawn, accuracy)


@pytest.fixture(scope="module")
def any_matrix():
    """Labels by annotators with confusion matrices: labels, true classes, matrices."""
    rng = np.random.default_rng(6)
    confusion = rng.dirichlet(np.ones(3), size=(20, 3)) + 2.0 * np.eye(3) * rng.random((20, 1, 1))
    confusion /= confusion.sum(axis=2, keepdims=True)
    drawn = draw_labels(rng, prior=PRIOR, confusion=confusion, n_items=4000, labels_per_item=8)
    return (*drawn, confusion)


@pytest.mark.parametrize("name", NAMES)
def test_known_accuracies_are_recovered(name, one_accuracy):
    labels, truth, accuracy = one_accuracy
    model = get_model(name)().fit(labels)
    fit = model.result_
    assert fit.converged
    if name == "mace":  # it spams evenly, and is right by chance in a third of the cases
        np.testing.assert_allclose(fit.reliability, (accuracy - 1 / 3) * 1.5, atol=0.06)
    else:
        np.testing.assert_allclose(fit.reliability, accuracy, atol=0.04)
        # The prior of EBCC has the observed shares of all items as pseudo-counts.
        atol = 0.05 if name == "ebcc" else 0.03
        np.testing.assert_allclose(model.prevalence_, PRIOR, atol=atol)
    assert np.mean(fit.label == truth) > 0.93
    # Well-specified: the probabilities are calibrated.
    assert fit.distribution.confidence().mean() == pytest.approx(
        np.mean(fit.label == truth), abs=0.01
    )


@pytest.mark.parametrize("name", WITH_MATRICES)
def test_known_matrices_are_recovered(name, any_matrix):
    labels, truth, confusion = any_matrix
    model = get_model(name)().fit(labels)
    np.testing.assert_allclose(model.confusion_, confusion, atol=0.09)
    assert np.abs(model.confusion_ - confusion).mean() < 0.02
    # Nobody who knows the matrices finds more classes.
    log = np.zeros((labels.n_items, 3)) + np.log(PRIOR)
    np.add.at(
        log,
        labels.item_of_label(),
        np.log(confusion)[labels.annotator, :, labels.category_of_label()],
    )
    best = np.mean(log.argmax(axis=1) == truth)
    assert np.mean(model.result_.label == truth) > best - 0.01


def test_ebcc_finds_items_that_look_like_another_class():
    """Half of the dogs look like wolves, which only experts notice."""
    rng = np.random.default_rng(3)
    n_items = 600
    truth = rng.integers(2, size=n_items)
    looks = np.where((truth == 0) & (rng.random(n_items) < 0.4), 1, truth)
    people = [f"p{s}" for s in range(12)]
    sees = [truth if s < 3 else looks for s in range(12)]
    rows = [
        (e, people[s], int(sees[s][e] if rng.random() < 0.95 else 1 - sees[s][e]))
        for e in range(n_items)
        for s in range(12)
    ]
    gold = {e: int(truth[e]) for e in range(60)}
    labels = Labels.of(rows, scale="nominal").with_gold(gold)
    with_subtypes, without = (
        np.mean(at.fit(labels, name).label[60:] == truth[60:]) for name in ("ebcc", "ibcc")
    )
    assert with_subtypes > 0.97
    assert with_subtypes > without + 0.02


def test_mace_gives_spammers_no_competence():
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=200)
    rows = [(e, f"good {s}", int(truth[e])) for e in range(200) for s in range(4)]
    rows += [(e, "repeats", 1) for e in range(200)]
    rows += [(e, "random", int(rng.integers(3))) for e in range(200)]
    model = at.MACE().fit(Labels.of(rows, scale="nominal"))
    people = model.result_.data.annotators.to_pylist()
    competence = dict(zip(people, model.result_.reliability, strict=True))
    assert competence["good 0"] > 0.98
    assert competence["repeats"] < 0.05
    assert competence["random"] < 0.15
    spam = model.result_.parameters["spam"][people.index("repeats")]
    assert spam[1] / spam.sum() > 0.8


def test_a_strong_prior_makes_annotators_equal():
    crowd = at.simulate.crowd(n_items=40, n_annotators=8, n_categories=3, seed=2)
    fit = at.IBCC(alpha=1e6, diagonal=2e6, off_diagonal=1e6).fit(crowd.labels).result_
    votes = at.fit(crowd.labels, "majority").distribution
    assert (votes.dense(3)[np.arange(40), fit.label] == votes.confidence()).all()
