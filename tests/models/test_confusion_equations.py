"""Latent classes with confusion matrices: equations, recovery, starts, updates and refusals."""

import math
from collections import defaultdict
from contextlib import closing

import numpy as np
import pytest
from scipy.special import digamma
from tests.models.fitting import CLASSES, estimator
from tests.models.fitting import WORDS as TABLE

import annotruth as at
from annotruth.engines import get_engine
from annotruth.models.confusion.bcc import DirichletEquations
from annotruth.models.confusion.estimator import (
    STEPS_PER_START,
    LatentClassSteps,
    draws_of_annotators,
)
from annotruth.models.em import EMLoop, run_em
from annotruth.models.registry import get_model
from annotruth.observations import Labels, Scale


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


@pytest.fixture(params=["memory", "reference"])
def opened(request):
    """The table open in a session."""
    labels = Labels.of(TABLE, categories=list(CLASSES))
    with closing(get_engine(request.param).open(labels)) as session:
        yield labels, session


def geometric_mean(counts):
    return {key: math.exp(digamma(n) - digamma(sum(counts.values()))) for key, n in counts.items()}


def test_a_step_of_mace_by_hand(opened):
    steps = at.MACE(alpha=0.6, beta=0.4, spam_prior=2.0)._steps(*opened)
    start = steps.start()
    new, _ = steps.step(start)
    competence, spam = {}, {}
    for s, of_knowing, of_spam in zip("xyz", *start, strict=True):
        competence[s] = geometric_mean(dict(zip(("knows", "spams"), of_knowing, strict=True)))
        spam[s] = geometric_mean(dict(zip(CLASSES, of_spam, strict=True)))
    likelihood = {
        (s, k, r): competence[s]["knows"] * (k == r) + competence[s]["spams"] * spam[s][r]
        for s in "xyz"
        for k in CLASSES
        for r in CLASSES
    }
    posterior = posteriors(dict.fromkeys(CLASSES, 1 / 3), likelihood)
    for s, of_knowing, of_spam in zip("xyz", *new, strict=True):
        known, spammed = 0.6, dict.fromkeys(CLASSES, 2.0)
        n_labels = 0
        for e, by, r in TABLE:
            if by == s:
                p = posterior[e][r] * competence[s]["knows"] / likelihood[s, r, r]
                known += p
                spammed[r] += 1.0 - p
                n_labels += 1
        assert of_knowing == pytest.approx([known, 1.0 + n_labels - known])
        assert of_spam == pytest.approx([spammed[k] for k in CLASSES])


def test_a_step_of_ebcc_by_hand(opened):
    steps = at.EBCC(n_subtypes=2, n_init=1)._steps(*opened)
    start = steps.start()
    new, _ = steps.step(start)
    types = [(k, m) for k in CLASSES for m in (0, 1)]
    of_class = geometric_mean(dict(zip(CLASSES, start.classes, strict=True)))
    of_subtype = {
        k: geometric_mean(dict(enumerate(row)))
        for k, row in zip(CLASSES, start.subtypes, strict=True)
    }
    likelihood = {}
    for s, matrix in zip("xyz", start.labels, strict=True):
        for kind, column in zip(types, matrix.T, strict=True):
            mean = geometric_mean(dict(zip(CLASSES, column, strict=True)))
            likelihood |= {(s, kind, r): mean[r] for r in CLASSES}
    counts = defaultdict(float)
    for item in "abc":
        joint = {
            (k, m): of_class[k]
            * of_subtype[k][m]
            * math.prod(likelihood[s, (k, m), r] for e, s, r in TABLE if e == item)
            for k, m in types
        }
        for kind in types:
            p = joint[kind] / sum(joint.values())
            counts[kind] += p
            for e, s, r in TABLE:
                counts[s, kind, r] += p * (e == item)
    votes = {k: max(sum(share[k] for share in observed_shares().values()), 1.0) for k in CLASSES}
    for k, of_items, row in zip(CLASSES, new.classes, new.subtypes, strict=True):
        assert of_items == pytest.approx(votes[k] + counts[k, 0] + counts[k, 1])
        assert row == pytest.approx([0.05 + counts[k, m] for m in (0, 1)])
    for s, matrix in zip("xyz", new.labels, strict=True):
        for (k, m), column in zip(types, matrix.T, strict=True):
            prior = {r: 4.0 if r == k else 1.0 for r in CLASSES}
            expected = [prior[r] + counts[s, (k, m), r] for r in CLASSES]
            assert column == pytest.approx(expected)


def test_ebcc_divides_the_votes_among_the_subtypes(opened):
    steps, whole = (at.EBCC(n_subtypes=m, n_init=1)._steps(*opened) for m in (4, 1))
    divided = steps.start().labels - steps.equations.prior.labels
    votes = whole.start().labels - whole.equations.prior.labels
    np.testing.assert_allclose(divided.reshape(3, 3, 3, 4).sum(axis=3), votes)
    # Right and wrong labels differently: otherwise all subtypes would have the same rows.
    shares = divided.reshape(3, 3, 3, 4) / np.maximum(votes, 1e-9)[..., np.newaxis]
    right, wrong = shares[0, 0, 0], shares[0, 0, 1]
    assert min(right.std(), wrong.std()) > 0.01
    assert abs(np.corrcoef(right, wrong)[0, 1]) < 0.99


def test_draws_follow_annotators_into_another_order():
    draws = np.arange(6.0).reshape(3, 2)
    rows = [("a", "x", 1), ("b", "x", 2), ("a", "y", 1), ("b", "y", 1), ("c", "z", 2)]
    renamed = {"x": "r", "y": "q", "z": "p"}  # the reverse order
    one, other = (
        draws_of_annotators(draws, Labels.of(sorted(table, key=lambda row: row[1])))
        for table in (rows, [(item, renamed[who], label) for item, who, label in rows])
    )
    np.testing.assert_array_equal(one, other[::-1])
    assert len(np.unique(one)) == draws.size


def test_ebcc_with_one_subtype_is_ibcc():
    labels = at.simulate.crowd(n_items=40, n_annotators=8, n_categories=3, seed=2).labels
    one = at.EBCC(n_subtypes=1, n_init=1, tol=1e-10).fit(labels).result_
    votes = at.fit(labels, "majority").distribution.dense(3).sum(axis=0)
    assert (votes > 1).all()
    with closing(get_engine("memory").open(labels)) as session:
        equations = DirichletEquations(labels, class_prior=votes)
        steps = LatentClassSteps(equations, session)
        run_em(steps, steps.start(), EMLoop(tol=1e-10, max_iter=1000, acceleration=True))
        posterior = session.collect("posterior")
    np.testing.assert_allclose(one.distribution.dense(3), posterior, atol=1e-4)


NAMES = ("one-coin", "ibcc", "ebcc", "mace")


def test_the_best_of_several_starts_is_continued():
    labels = at.simulate.crowd(n_items=60, n_annotators=12, n_categories=3, seed=8).labels
    with closing(get_engine("memory").open(labels)) as session:
        steps = at.EBCC(n_init=4, seed=2)._steps(labels, session)
        chosen = steps.start()
        runs = []
        for number in range(4):
            parameters = steps._start(number)
            for _ in range(STEPS_PER_START):
                parameters, monitor = steps.step(parameters)
            runs.append((monitor.objective, parameters))
    objectives = [objective for objective, _ in runs]
    assert np.ptp(objectives) > 1e-6
    assert np.argmax(objectives) > 0  # or the test could not fail
    best = runs[np.argmax(objectives)][1]
    for field, expected in zip(chosen, best, strict=True):
        np.testing.assert_array_equal(field, expected)


def test_the_same_seed_gives_the_same_fit_and_another_seed_another_start():
    labels = at.simulate.crowd(n_items=60, n_annotators=12, n_categories=3, seed=8).labels
    for cls in (at.EBCC, at.MACE):
        one, again, other = (
            cls(seed=seed).fit(labels).result_.history.objective for seed in (4, 4, 5)
        )
        np.testing.assert_array_equal(one, again)
        assert one[0] != other[0]


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


def test_tables_that_are_too_large_are_refused():
    labels = at.Labels.of([(e, f"a{e}", f"c{e}") for e in range(900)])
    with pytest.raises(at.InputError, match=r"one-coin needs 5\.8 GB for 900 confusion matrices"):
        at.OneCoin().fit(labels)


RECOVERED = ("dawid-skene", "one-coin", "ibcc", "ebcc", "mace")
WITH_MATRICES = ("dawid-skene", "ibcc", "ebcc")
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


@pytest.mark.parametrize("name", RECOVERED)
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
    if name == "dawid-skene":  # maximum likelihood
        assert model.result_.log_likelihood > np.logaddexp.reduce(log, axis=1).sum()


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
