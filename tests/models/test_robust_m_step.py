"""The M-step of RobustGPM over annotators, where every item has one right label."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import annotruth as at
from annotruth.engines.memory import MemoryEngine
from annotruth.models.robust_gpm.class_steps import AnnotatorUpdate, ClassSteps
from annotruth.models.robust_gpm.states import TrueClasses
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
        old = np.random.default_rng(2).dirichlet(np.ones(N_CATEGORIES), (len(counts), N_CATEGORIES))
        old = old.transpose(0, 2, 1)
        confusion, annotators, expected, rise = update.confusion(strategies, log_prior, counts, old)
        pseudo_counts = update.pseudo_counts(strategies, log_prior, counts)
    weights = normalise_log_weights(strategies.log_probability.total(counts, repeated) + log_prior)
    mean = CONCENTRATION * strategies.probability.average(weights, repeated)
    np.testing.assert_allclose(pseudo_counts, mean, rtol=1e-12)
    mass = counts + mean
    np.testing.assert_allclose(confusion, mass / mass.sum(axis=1, keepdims=True), rtol=1e-12)
    rises = (mean * np.log(confusion / old)).sum(axis=(1, 2))
    assert rise == pytest.approx(rises.sum() if weight is None else rises @ weight, rel=1e-10)
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
        expected = [steps.e_step(parameters)[0].counts for parameters in (start, last)]
        steps.finalize(last)
        counts = steps.annotator_counts(start).counts[:, :-1]
        np.testing.assert_array_equal(counts, expected[0])
        steps.finalize(last)
        monkeypatch.setattr(session, "run_pass", None)
        counts = steps.annotator_counts(last).counts[:, :-1]
        np.testing.assert_array_equal(counts, expected[1])


CROWDS = [
    {"labels_per_item": 3},
    {"labels_per_item": 6, "spammer_share": 0.4},
    {"labels_per_item": 2, "n_annotators": 40},
    {"labels_per_item": 5, "behavior": "inverted", "spammer_share": 0.3},
]
CANDIDATES = [(1, 1024.0, False), (1, 16.0, True), (3, 16.0, True), (3, 4.0, True)]


@pytest.mark.parametrize("n_categories", [2, 3, 5])
@pytest.mark.parametrize("options", CROWDS)
@pytest.mark.parametrize(("n_subtypes", "concentration", "learn_crowd"), CANDIDATES)
def test_every_step_raises_the_objective(
    n_categories, options, n_subtypes, concentration, learn_crowd
):
    for seed in range(3):
        made = {"n_items": 60, "n_annotators": 12, "n_categories": n_categories, **options}
        labels = at.simulate.crowd(**made, seed=seed).labels
        with closing(MemoryEngine(threads=1).open(labels)) as session:
            session.allocate("fold", per="labels")
            items = TrueClasses(labels, n_subtypes, learn_crowd=learn_crowd)
            steps = ClassSteps(items, session, concentration)
            parameters, objectives = steps.start(), []
            for _ in range(25):
                counts, _ = steps.e_step(parameters)
                before = parameters
                parameters, monitor = steps.step(before)
                objectives.append(monitor.objective)
                # The other half: the crowd's confusion and the shares of strategies.
                evidence = [steps.strategy_evidence(each, counts) for each in (before, parameters)]
                if learn_crowd:  # otherwise rounding of a prior of 1e12 labels hides everything
                    assert evidence[1] - evidence[0] > -1e-9 * labels.n_labels
            assert np.diff(objectives).min() > -1e-12


def test_the_objective_is_the_log_posterior_at_the_pseudo_counts_of_each_step(labels):
    with closing(MemoryEngine(threads=1).open(labels)) as session:
        session.allocate("fold", per="labels")
        steps = ClassSteps(TrueClasses(labels), session, CONCENTRATION)
        first = steps.start()
        counts, before = steps.e_step(first)
        second, monitor = steps.step(first)
        third, after = steps.step(second)
        mass = counts.counts + steps._update.pseudo_counts(
            items_strategies := steps.items.strategies(first.serious),
            steps._log_prior(first, items_strategies),
            counts.counts,
        )
    pseudo_counts = mass - counts.counts
    np.testing.assert_allclose(second.confusion, mass / mass.sum(axis=1, keepdims=True))
    rise = (pseudo_counts * np.log(second.confusion / first.confusion)).sum()
    rise += np.log(second.state_prior / first.state_prior).mean()
    assert monitor.objective == pytest.approx(before / labels.n_labels)
    expected = (after.log_likelihood + rise) / labels.n_labels
    assert after.objective == pytest.approx(expected, rel=1e-12)
    assert after.compared == pytest.approx(after.log_likelihood / labels.n_labels)
    assert third.log_prior != second.log_prior
