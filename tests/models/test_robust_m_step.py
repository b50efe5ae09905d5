"""The M-step of RobustGPM over annotators, where every item has one right label."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from annotruth.engines.memory import MemoryEngine
from annotruth.models.robust_gpm.class_steps import AnnotatorUpdate, ClassSteps
from annotruth.models.robust_gpm.classes import TrueClasses
from annotruth.models.robust_gpm.strategies import NO_LABEL, normalise_log_weights

N_CATEGORIES, CONCENTRATION = 3, 5.0


@pytest.fixture
def labels(make_labels):
    rng = np.random.default_rng(0)
    return make_labels(rng, n_items=30, n_annotators=9, n_categories=N_CATEGORIES, density=0.5)


@pytest.fixture
def case(labels):
    """Return strategies, their log-prior, counts and repeated labels of some annotators."""
    rng = np.random.default_rng(1)
    strategies = TrueClasses(labels).strategies(rng.dirichlet(np.ones(3), 3).T)
    n_annotators = labels.n_annotators
    log_prior = np.log(rng.dirichlet(np.ones(strategies.n_strategies), n_annotators))
    counts = rng.gamma(1.0, size=(n_annotators, N_CATEGORIES, N_CATEGORIES))
    return strategies, log_prior, counts, rng.integers(NO_LABEL, N_CATEGORIES, n_annotators)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("one_prior", [False, True])
def test_groups_of_annotators_are_computed_as_all_of_them_are(labels, case, weighted, one_prior):
    strategies, log_prior, counts, repeated = case
    log_prior = log_prior[:1] if one_prior else log_prior
    weight = np.linspace(0.2, 1.0, len(counts)) if weighted else None
    summary = replace(labels, annotator_weight=weight)
    with closing(MemoryEngine(threads=1).open(labels)) as session:
        update = AnnotatorUpdate(session, summary, repeated, CONCENTRATION)
        confusion, annotators, expected = update.confusion(strategies, log_prior, counts)
        pseudo_counts = update.pseudo_counts(strategies, log_prior, counts)
    weights = normalise_log_weights(strategies.log_probability.total(counts, repeated) + log_prior)
    mean = CONCENTRATION * strategies.probability.average(weights, repeated)
    np.testing.assert_allclose(pseudo_counts, mean, rtol=1e-12)
    mass = counts + mean
    np.testing.assert_allclose(confusion, mass / mass.sum(axis=1, keepdims=True), rtol=1e-12)
    counted = weights if weight is None else weights * weight[:, np.newaxis]
    np.testing.assert_allclose(annotators, counted.sum(axis=0), rtol=1e-12)
    every = np.einsum("sg,snz->gnz", counted, counts)
    is_repeated = repeated[:, np.newaxis] == np.arange(N_CATEGORIES)
    repeating = np.einsum("sg,snz,sn->gnz", counted, counts, is_repeated)
    np.testing.assert_allclose(expected.repeated, repeating, rtol=1e-12)
    np.testing.assert_allclose(expected.other, every - repeating, atol=1e-12)


def test_the_counts_after_em_are_those_of_its_last_pass(labels, monkeypatch):
    with closing(MemoryEngine(threads=1).open(labels)) as session:
        session.allocate("fold", per="labels")
        steps = ClassSteps(TrueClasses(labels), session)
        start = steps.start()
        last, _ = steps.step(start)
        expected = [steps.e_step(parameters)[0].labels for parameters in (start, last)]
        steps.finalize(last)
        counts = steps.annotator_counts(start).counts[:, :-1]
        np.testing.assert_array_equal(counts, expected[0])
        steps.finalize(last)
        monkeypatch.setattr(session, "run_pass", None)
        counts = steps.annotator_counts(last).counts[:, :-1]
        np.testing.assert_array_equal(counts, expected[1])
