"""RobustGPM in single precision: the same steps as in double precision, to six digits."""

from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import annotruth as at
from annotruth import simulate
from annotruth.engines import get_engine, memory
from annotruth.models.robust_gpm import opinion_steps
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.models.robust_gpm.opinion_steps import OpinionSteps, SinglePrecisionOpinionSteps
from annotruth.models.robust_gpm.opinions import OpinionShapes


def run_steps(steps, n_steps):
    parameters, objectives = steps.start(), []
    for _ in range(n_steps):
        parameters, monitor = steps.step(parameters)
        objectives.append(monitor.objective)
    return parameters, np.array(objectives), steps.leave_one_out(parameters)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), categories=st.integers(1, 6), gold=st.booleans())
def test_steps_equal_those_in_double_precision(make_labels, seed, categories, gold):
    rng = np.random.default_rng(seed)
    labels = make_labels(
        rng,
        n_items=int(rng.integers(1, 40)),
        n_annotators=int(rng.integers(1, 30)),
        n_categories=categories,
        density=rng.uniform(0.1, 1.0),
    )
    if gold:
        labels.known[0] = 0
    if seed % 2:
        labels = labels.with_annotator_prior({"annotator 0": 0.3})
    for engine in ("memory", "reference"):
        with closing(get_engine(engine).open(labels)) as session:
            (single, objectives, loo), (double, expected, expected_loo) = (
                run_steps(steps(OpinionShapes(labels), session), 8)
                for steps in (SinglePrecisionOpinionSteps, OpinionSteps)
            )
        np.testing.assert_allclose(objectives, expected, rtol=3e-7, atol=3e-7)
        assert np.diff(objectives).min() > -1e-6
        np.testing.assert_allclose(single.strategy_weights, double.strategy_weights, atol=1e-4)
        np.testing.assert_allclose(single.class_prior, double.class_prior, atol=1e-5)
        assert single.always_share == pytest.approx(double.always_share, abs=1e-5)
        np.testing.assert_allclose(loo, expected_loo, rtol=1e-4, atol=1e-3)


def test_many_labels_are_fitted_in_single_precision_unless_tol_is_fine(monkeypatch):
    # A crowd in which rounding does not decide about any extrapolation.
    crowd = simulate.crowd(n_items=200, n_annotators=40, labels_per_item=6, seed=5)
    made = []

    class CountedSteps(SinglePrecisionOpinionSteps):
        def __init__(self, *arguments):
            made.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(opinion_steps, "SinglePrecisionOpinionSteps", CountedSteps)
    double = at.fit(crowd.labels, "robust-gpm")
    assert not made
    monkeypatch.setattr(memory, "SINGLE_PRECISION_LABELS", crowd.labels.n_labels)
    single = at.fit(crowd.labels, "robust-gpm")
    assert made
    np.testing.assert_allclose(single.reliability, double.reliability, atol=1e-3)
    np.testing.assert_allclose(single.expectation, double.expectation, atol=1e-3)
    assert single.history.n_iter == double.history.n_iter
    made.clear()
    at.fit(crowd.labels, "robust-gpm", tol=1e-8)
    assert not made


def test_results_are_identical_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PARTITION", 100)
    monkeypatch.setattr(memory, "SINGLE_PRECISION_LABELS", 0)
    crowd = simulate.crowd(n_items=400, n_annotators=600, labels_per_item=8, seed=2)
    fits = [
        RobustGPM(truth="opinions", engine=memory.MemoryEngine(threads=threads))
        .fit(crowd.labels)
        .result_
        for threads in (1, 3)
    ]
    np.testing.assert_array_equal(*(fit.reliability for fit in fits))
    np.testing.assert_array_equal(*(fit.history.objective for fit in fits))
