"""Latent classes with confusion matrices: starts, objective, known truths, updates and options."""

import warnings
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import annotruth as at
from annotruth.engines import get_engine
from annotruth.models.confusion.estimator import STEPS_PER_START
from annotruth.models.registry import get_model
from annotruth.observations import Labels

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
    # Many labels by one annotator on one item: products that underflow.
    labels = make_labels(
        rng,
        n_items=n_items,
        n_annotators=n_annotators,
        n_categories=n_categories,
        unused=unused,
        copies=copies,
    )
    labels.known[:n_known] = rng.integers(n_categories + unused, size=n_known)[:n_items]
    for acceleration in (False, True):
        fit = estimator(name, labels, tol=0.0, max_iter=60, acceleration=acceleration).result_
        objective = fit.history.objective
        assert np.isfinite(fit.history.log_likelihood).all()
        assert np.diff(objective).min(initial=0.0) >= -1e-11 * max(1.0, abs(objective[0]))


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


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ebcc"])  # many optima
def test_a_warm_start_ends_at_the_same_optimum(name):
    labels = at.simulate.crowd(n_items=80, n_annotators=10, n_categories=3, seed=4).labels
    rows = labels.to_arrow().to_pylist()
    first = [(row["item"], str(row["annotator"]), row["label"]) for row in rows]
    model = estimator(name, first[:-40], tol=1e-10)
    more = [*first[-40:], (1, "new", 2), (1000, "new", 3)]
    updated = replace(model).fit(first[:-40] + more, warm_start=model.result_).result_
    fresh = estimator(name, first[:-40] + more, tol=1e-10).result_
    if name != "mace":  # its steps from several starts are not counted
        assert updated.n_iter <= fresh.n_iter
    assert updated.history.objective[-1] == pytest.approx(fresh.history.objective[-1], abs=1e-6)
    np.testing.assert_allclose(updated.reliability, fresh.reliability, atol=1e-3)


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


@pytest.mark.parametrize(
    ("name", "option"),
    [
        *(("ibcc", option) for option in ("alpha", "diagonal", "off_diagonal")),
        *(("ebcc", option) for option in ("subtype_prior", "diagonal", "off_diagonal")),
        *(("mace", option) for option in ("alpha", "beta", "spam_prior")),
    ],
)
def test_priors_that_are_not_positive_and_finite_are_refused(name, option):
    for value in (0.0, float("inf")):
        with pytest.raises(at.InputError, match=f"{option} must be above 0, and finite, not"):
            at.fit(TABLE, name, **{option: value})


def test_wrong_numbers_of_starts_and_subtypes_are_refused():
    with pytest.raises(at.InputError, match="n_init must be 1 or more, not 0"):
        at.MACE(n_init=0).fit(TABLE)
    with pytest.raises(at.InputError, match="seed must be 0 or more, not -1"):
        at.MACE(seed=-1).fit(TABLE)
    with pytest.raises(at.InputError, match="n_subtypes must be from 1 to 1,000, not 0"):
        at.EBCC(n_subtypes=0).fit(TABLE)


def test_tables_that_are_too_large_are_refused():
    labels = at.Labels.of([(e, f"a{e}", f"c{e}") for e in range(900)])
    with pytest.raises(at.InputError, match=r"one-coin needs 5\.8 GB for 900 confusion matrices"):
        at.OneCoin().fit(labels)
