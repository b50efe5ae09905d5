"""Dawid and Skene: equations, likelihood and results."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from tests.models.fitting import NUMBERS as TABLE
from tests.models.fitting import estimator

import annotruth as at
from annotruth.models.confusion.dawid_skene import DawidSkene
from annotruth.observations import Labels, Scale

CLASSES = (1, 2, 3)


fit_unconverged = partial(estimator, "dawid-skene")


def m_step_by_hand(table, t):
    """Return the prior and the confusion matrices of posteriors t[item, class]."""
    items, people = sorted({e for e, *_ in table}), sorted({s for _, s, _ in table})
    p = {k: sum(t[e, k] for e in items) / len(items) for k in CLASSES}
    pi = {}
    for s, k in itertools.product(people, CLASSES):
        seen = sum(t[e, k] for e, who, _ in table if who == s)
        for n in CLASSES:
            count = sum(t[e, k] for e, who, r in table if (who, r) == (s, n))
            pi[s, k, n] = count / seen if seen else 1 / 3
    return p, pi


def e_step_by_hand(table, p, pi):
    """Return the posteriors and the log-likelihood."""
    t, log_likelihood = {}, 0.0
    for e in sorted({e for e, *_ in table}):
        joint = {k: p[k] * math.prod(pi[s, k, r] for i, s, r in table if i == e) for k in CLASSES}
        log_likelihood += math.log(sum(joint.values()))
        t |= {(e, k): joint[k] / sum(joint.values()) for k in CLASSES}
    return t, log_likelihood


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_the_first_step_equals_the_papers_equations(engine):
    shares = {
        (e, k): sum((i, r) == (e, k) for i, _, r in TABLE) / sum(i == e for i, *_ in TABLE)
        for e in "abc"
        for k in CLASSES
    }
    p, pi = m_step_by_hand(TABLE, shares)
    t, before = e_step_by_hand(TABLE, p, pi)
    p, pi = m_step_by_hand(TABLE, t)
    t, after = e_step_by_hand(TABLE, p, pi)

    with pytest.warns(at.ConvergenceWarning, match=r"reached max_iter \(1\)"):
        model = DawidSkene(max_iter=1, engine=engine).fit(TABLE)
    fit = model.result_
    np.testing.assert_allclose(model.prevalence_, list(p.values()), rtol=1e-13)
    np.testing.assert_allclose(model.confusion_.ravel(), list(pi.values()), rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(
        fit.distribution.dense(3).ravel(), list(t.values()), rtol=1e-13, atol=1e-16
    )
    np.testing.assert_allclose(fit.history.log_likelihood, [before, after], rtol=1e-13)
    assert fit.history.objective[0] == pytest.approx(before / len(TABLE), rel=1e-13)
    right = [np.mean([t[e, r] for e, who, r in TABLE if who == s]) for s in ("ann", "bob", "cy")]
    np.testing.assert_allclose(fit.reliability, right, rtol=1e-13)


def test_an_annotator_who_inverts_labels_is_as_informative():
    # d gives the opposite of the truth, which a confusion matrix corrects.
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    noisy = [(e, s, int(t ^ (rng.random() < 0.3))) for e, t in enumerate(truth) for s in "abc"]
    model = DawidSkene().fit(noisy + [(e, "d", int(1 - t)) for e, t in enumerate(truth)])
    fit = model.result_
    assert (fit.items().label.to_numpy() == truth).mean() > 0.95
    assert fit.annotators().set_index("annotator").reliability["d"] < 0.1


def test_the_likelihood_includes_known_truths():
    table = [("a", "x", 1), ("b", "x", 2), ("c", "x", 2)]
    model = DawidSkene().fit(table, gold={"a": 1, "b": 1, "c": 2})
    np.testing.assert_allclose(model.confusion_[0], [[0.5, 0.5], [0.0, 1.0]])
    expected = 2 * math.log(2 / 3) + math.log(1 / 3) + 2 * math.log(0.5)
    assert model.result_.log_likelihood == pytest.approx(expected)


def test_a_category_without_labels_has_prior_0_and_a_uniform_row():
    labels = Labels.of(TABLE, categories=[1, 2, 3, 4])
    model = DawidSkene().fit(labels)
    assert model.prevalence_[3] == 0.0
    np.testing.assert_array_equal(model.confusion_[:, 3], 0.25)
    np.testing.assert_array_equal(model.confusion_[:, :2, 3], 0.0)
    known = fit_unconverged(Labels.of([("a", "x", 1)], categories=[1, 2]), gold={"a": 2})
    np.testing.assert_allclose(known.confusion_[0], [[0.5, 0.5], [1.0, 0.0]])
    assert (model.result_.items().p_4 == 0.0).all()


def test_two_thousand_labels_of_one_item_do_not_underflow():
    rng = np.random.default_rng(2)
    table = [(e, s, int(rng.random() < (0.3, 0.7)[e % 2])) for e in range(6) for s in range(2000)]
    fit = fit_unconverged(table, max_iter=20).result_
    assert np.isfinite(fit.history.log_likelihood).all()
    assert np.diff(fit.history.log_likelihood).min() >= -1e-9
    assert fit.items().label.tolist() == [0, 1] * 3


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_the_labels_of_a_single_annotator_are_the_result(engine):
    table = [("a", "x", 1), ("b", "x", 2), ("c", "x", 2)]
    model = DawidSkene(engine=engine).fit(table)
    assert model.result_.items().label.tolist() == [1, 2, 2]
    np.testing.assert_allclose(model.prevalence_, [1 / 3, 2 / 3])
    np.testing.assert_allclose(model.confusion_[0], np.eye(2))
    assert model.result_.log_likelihood == pytest.approx(math.log(1 / 3) + 2 * math.log(2 / 3))


def test_the_tolerance_does_not_depend_on_the_number_of_labels():
    rng = np.random.default_rng(3)
    table = [(e, s, int(rng.integers(3))) for e in range(40) for s in range(6)]
    twice = table + [(e + 40, s, r) for e, s, r in table]
    one, two = (DawidSkene(max_iter=5000).fit(t).result_ for t in (table, twice))
    assert one.n_iter == two.n_iter
    assert one.stop_reason == "change of the log-likelihood per label below 1e-07"


def test_too_many_categories_for_memory_are_refused():
    n_annotators, n_categories = 300, 1000
    labels = Labels.from_codes(
        np.zeros(n_annotators, dtype=np.int64),
        np.arange(n_annotators),
        np.zeros(n_annotators, dtype=np.int64),
        items=["a"],
        annotators=np.arange(n_annotators),
        scale=Scale.nominal(list(range(n_categories))),
    )
    text = r"needs 2\.4 GB for 300 confusion matrices of 1,000 x 1,000 .* merge rare categories"
    with pytest.raises(at.InputError, match=text):
        DawidSkene().fit(labels)
