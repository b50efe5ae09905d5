"""Latent classes with confusion matrices: steps of one-coin, iBCC, EBCC and MACE by hand."""

import math
from collections import defaultdict
from contextlib import closing

import numpy as np
import pytest
from scipy.special import digamma

import annotruth as at
from annotruth.engines import get_engine
from annotruth.models.confusion.bcc import DirichletEquations
from annotruth.models.confusion.estimator import LatentClassSteps, draws_of_annotators
from annotruth.models.em import run_em
from annotruth.models.registry import get_model
from annotruth.observations import Labels

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
        run_em(steps, steps.start(), tol=1e-10, max_iter=1000, accelerate=True)
        posterior = session.collect("posterior")
    np.testing.assert_allclose(one.distribution.dense(3), posterior, atol=1e-4)
