"""Latent classes with confusion matrices: starts, objective, known truths, updates and options."""

import warnings
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import annotruth as at
from annotruth.engines import get_engine
from annotruth.models.confusion.estimator import STEPS_PER_START
from annotruth.models.registry import get_model

NAMES = ("one-coin", "ibcc", "ebcc", "mace")
TABLE = [("a", "x", "cat"), ("a", "y", "cat"), ("b", "x", "dog"), ("b", "y", "owl")]


def estimator(name, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        gold = options.pop("gold", None)
        return get_model(name)(**options).fit(data, gold=gold)


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


# Extrapolations amplify the rounding of sums in another order.


def test_a_warm_start_of_ebcc_keeps_its_subtypes():
    labels = at.simulate.crowd(n_items=80, n_annotators=10, n_categories=3, seed=4).labels
    rows = [tuple(row.values()) for row in labels.to_arrow().to_pylist()]
    model = estimator("ebcc", rows)
    before = model.result_.parameters["subtypes"]
    more = [*rows, (1, 1000, 2), (1000, 1000, 3)]
    after = replace(model).fit(more, warm_start=model.result_).result_.parameters["subtypes"]
    np.testing.assert_allclose(after, before, atol=2.0)


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
