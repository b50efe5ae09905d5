"""Models with latent classes and confusion matrices: one-coin and iBCC."""

import math
import warnings
from collections import defaultdict
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

import annotruth as at
from annotruth.engines import get_engine
from annotruth.labels import Labels, Scale
from annotruth.models.registry import get_model

NAMES = ("one-coin", "ibcc")
WITH_MATRICES = ("ibcc",)
TABLE = [
    ("a", "x", "cat"),
    ("a", "y", "cat"),
    ("a", "z", "dog"),
    ("b", "x", "dog"),
    ("b", "y", "owl"),
    ("c", "x", "owl"),
    ("c", "z", "owl"),
]
CLASSES = ("cat", "dog", "owl")


def estimator(name, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        gold = options.pop("gold", None)
        return get_model(name)(**options).fit(data, gold=gold)


def observed_shares():
    shares = {}
    for item in "abc":
        given = [label for e, _, label in TABLE if e == item]
        shares[item] = {k: given.count(k) / len(given) for k in CLASSES}
    return shares


def posteriors(prior, likelihood):
    """Return each item's posterior, from dictionaries."""
    found = {}
    for item in "abc":
        joint = {
            k: prior[k] * math.prod(likelihood[s, k, r] for e, s, r in TABLE if e == item)
            for k in CLASSES
        }
        found[item] = {k: joint[k] / sum(joint.values()) for k in CLASSES}
    return found


def one_coin_first_step():
    shares = observed_shares()
    right = defaultdict(list)
    for e, s, r in TABLE:
        right[s].append(shares[e][r])
    accuracy = {s: sum(values) / len(values) for s, values in right.items()}
    prior = {k: sum(shares[e][k] for e in "abc") / 3 for k in CLASSES}
    likelihood = {
        (s, k, r): accuracy[s] if r == k else (1 - accuracy[s]) / 2
        for s in "xyz"
        for k in CLASSES
        for r in CLASSES
    }
    return prior, likelihood


def dirichlet_first_step(counts):
    """Return the geometric means of the prior and of confusion matrices."""
    items = {k: 1.0 + sum(counts[e][k] for e in "abc") for k in CLASSES}
    prior = {k: math.exp(digamma(items[k]) - digamma(sum(items.values()))) for k in CLASSES}
    likelihood = {}
    for s in "xyz":
        for k in CLASSES:
            given = {
                r: (4.0 if r == k else 1.0)
                + sum(counts[e][k] for e, by, label in TABLE if by == s and label == r)
                for r in CLASSES
            }
            for r in CLASSES:
                likelihood[s, k, r] = math.exp(digamma(given[r]) - digamma(sum(given.values())))
    return prior, likelihood


FIRST_STEP = {
    "one-coin": one_coin_first_step,
    "ibcc": lambda: dirichlet_first_step(observed_shares()),
}


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("name", FIRST_STEP)
def test_first_posteriors_by_hand(name, engine):
    labels = Labels.of(TABLE, categories=list(CLASSES))
    with closing(get_engine(engine).open(labels)) as session:
        steps = get_model(name)()._steps(labels, session)
        steps.finalize(steps.start())
        found = session.collect("posterior")
    expected = posteriors(*FIRST_STEP[name]())
    for row, item in zip(found, labels.items.to_pylist(), strict=True):
        assert row == pytest.approx([expected[item][k] for k in CLASSES], rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(1, 12),
    n_annotators=st.integers(1, 6),
    n_categories=st.integers(1, 4),
    unused=st.integers(0, 1),
    n_known=st.integers(0, 3),
    copies=st.sampled_from([1, 1, 60]),
)
def test_the_objective_never_falls(
    name, make_labels, seed, n_items, n_annotators, n_categories, unused, n_known, copies
):
    rng = np.random.default_rng(seed)
    labels = make_labels(rng, n_items=n_items, n_annotators=n_annotators, n_categories=n_categories)
    # Many labels by one annotator on one item: products that underflow.
    cell = np.repeat(labels.cell_of_label(), copies)
    labels = Labels.from_codes(
        labels.item_of_cell()[cell],
        np.repeat(labels.annotator, copies),
        labels.cell_category[cell],
        items=labels.items,
        annotators=labels.annotators,
        scale=Scale.nominal(list(range(n_categories + unused))),
    )
    labels.known[:n_known] = rng.integers(n_categories + unused, size=n_known)[:n_items]
    for acceleration in (False, True):
        fit = estimator(name, labels, tol=0.0, max_iter=60, acceleration=acceleration).result_
        objective = fit.history.objective
        assert np.isfinite(fit.history.log_likelihood).all()
        assert np.diff(objective).min(initial=0.0) >= -1e-11 * max(1.0, abs(objective[0]))


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


PRIOR = np.array([0.5, 0.3, 0.2])


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
    model = estimator(name, labels)
    fit = model.result_
    assert fit.converged
    np.testing.assert_allclose(fit.reliability, accuracy, atol=0.04)
    np.testing.assert_allclose(model.prevalence_, PRIOR, atol=0.03)
    assert np.mean(fit.label == truth) > 0.93
    # Well-specified: the probabilities are calibrated.
    assert fit.distribution.confidence().mean() == pytest.approx(
        np.mean(fit.label == truth), abs=0.01
    )


@pytest.mark.parametrize("name", WITH_MATRICES)
def test_known_matrices_are_recovered(name, any_matrix):
    labels, truth, confusion = any_matrix
    model = estimator(name, labels)
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


# Extrapolations amplify the rounding of sums in another order.
@pytest.mark.parametrize(("acceleration", "tolerance"), [(False, 1e-10), (True, 1e-5)])
@pytest.mark.parametrize("name", NAMES)
def test_renaming_categories_renames_the_results(name, acceleration, tolerance):
    crowd = at.simulate.crowd(n_items=60, n_annotators=10, n_categories=4, seed=3)
    rows = [
        (row["item"], row["annotator"], f"c{row['label']}")
        for row in crowd.labels.to_arrow().to_pylist()
    ]
    turned = [2, 0, 3, 1]
    one, other = (
        estimator(
            name,
            Labels.of(rows, categories=[f"c{1 + k}" for k in order], scale="nominal"),
            acceleration=acceleration,
        ).result_
        for order in (range(4), turned)
    )
    np.testing.assert_allclose(
        one.distribution.dense(4)[:, turned], other.distribution.dense(4), atol=tolerance
    )
    np.testing.assert_allclose(one.reliability, other.reliability, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_known_truths_fix_items_and_assess_annotators(name):
    table = [(e, s, e % 2) for e in range(8) for s in "ab"] + [
        (e, "c", 1 - e % 2) for e in range(8)
    ]
    plain = estimator(name, table).result_
    gold = estimator(name, table, gold={e: 1 - e % 2 for e in range(8)}).result_
    assert (plain.reliability.argmin(), gold.reliability.argmax()) == (2, 2)
    assert gold.label.tolist() == [1 - e % 2 for e in range(8)]
    assert (gold.distribution.confidence() == 1.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_start_ends_at_the_same_optimum(name):
    labels = at.simulate.crowd(n_items=80, n_annotators=10, n_categories=3, seed=4).labels
    rows = labels.to_arrow().to_pylist()
    first = [(row["item"], str(row["annotator"]), row["label"]) for row in rows]
    model = estimator(name, first[:-40], tol=1e-10)
    more = [*first[-40:], (1, "new", 2), (1000, "new", 3)]
    updated = model.partial_fit(more).result_
    fresh = estimator(name, first[:-40] + more, tol=1e-10).result_
    assert updated.n_iter <= fresh.n_iter
    assert updated.history.objective[-1] == pytest.approx(fresh.history.objective[-1], abs=1e-6)
    np.testing.assert_allclose(updated.reliability, fresh.reliability, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_matrices_and_latent_classes_are_probabilities(name):
    labels = at.simulate.crowd(n_items=30, n_annotators=8, n_categories=4, seed=1).labels
    model = estimator(name, labels)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1.0)
    assert model.confusion_.shape == (8, 4, 4)
    assert model.prevalence_.sum() == pytest.approx(1.0)
    classes = model.latent_classes()
    assert classes.one_truth
    np.testing.assert_allclose(classes.confusion.sum(axis=1), 1.0, atol=1e-9)
    assert len(at.next_labels(model.result_, budget=5).items()) > 0


@pytest.mark.parametrize("option", ["alpha", "diagonal", "off_diagonal"])
def test_priors_that_are_not_positive_are_refused(option):
    with pytest.raises(at.InputError, match=f"{option} must be above 0, not 0"):
        at.IBCC(**{option: 0.0}).fit(TABLE)


def test_a_strong_prior_makes_annotators_equal():
    crowd = at.simulate.crowd(n_items=40, n_annotators=8, n_categories=3, seed=2)
    fit = at.IBCC(alpha=1e6, diagonal=2e6, off_diagonal=1e6).fit(crowd.labels).result_
    votes = at.fit(crowd.labels, "majority").distribution
    assert (votes.dense(3)[np.arange(40), fit.label] == votes.confidence()).all()


def test_tables_that_are_too_large_are_refused():
    labels = at.Labels.of([(e, f"a{e}", f"c{e}") for e in range(900)])
    with pytest.raises(at.InputError, match=r"one-coin needs 5\.8 GB for 900 confusion matrices"):
        at.OneCoin().fit(labels)
