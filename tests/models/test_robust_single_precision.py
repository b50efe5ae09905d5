"""RobustGPM in single precision: the same steps as in double, to six digits."""

from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import annotruth as at
from annotruth import simulate
from annotruth.engines import get_engine, memory
from annotruth.models.robust_gpm import single_precision as robust_singles
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.models.robust_gpm.single_precision import QuickOpinions
from annotruth.models.robust_gpm.steps import Opinions


def stepped(steps, n_steps):
    here, heights = steps.start(), []
    for _ in range(n_steps):
        here, monitor = steps.step(here)
        heights.append(monitor.objective)
    return here, np.array(heights)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), categories=st.integers(1, 6), gold=st.booleans())
def test_steps_are_those_of_double_precision(make_labels, seed, categories, gold):
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
            (quick, risen), (double, wanted) = (
                stepped(kind(labels, session), 8) for kind in (QuickOpinions, Opinions)
            )
        np.testing.assert_allclose(risen, wanted, rtol=3e-7, atol=3e-7)
        assert np.diff(risen).min() > -1e-6
        np.testing.assert_allclose(quick.weights, double.weights, atol=1e-4)
        np.testing.assert_allclose(quick.prior, double.prior, atol=1e-5)
        assert quick.always == pytest.approx(double.always, abs=1e-5)


def test_large_crowds_are_fitted_in_single_precision_unless_tol_is_fine(monkeypatch):
    # A crowd in which no leap is so near to a fall that rounding decides.
    made = simulate.crowd(n_items=200, n_annotators=40, labels_per_item=6, seed=3)
    used = []

    class Noted(QuickOpinions):
        def __init__(self, *given):
            used.append(len(used))
            super().__init__(*given)

    monkeypatch.setattr(robust_singles, "QuickOpinions", Noted)
    double = at.fit(made.labels, "robust-gpm")
    assert not used
    monkeypatch.setattr(memory, "SINGLE_PRECISION_LABELS", made.labels.n_labels)
    single = at.fit(made.labels, "robust-gpm")
    assert used
    np.testing.assert_allclose(single.reliability, double.reliability, atol=1e-3)
    np.testing.assert_allclose(single.expectation, double.expectation, atol=1e-3)
    assert single.history.n_iter == double.history.n_iter
    used.clear()
    at.fit(made.labels, "robust-gpm", tol=1e-8)
    assert not used


def test_threads_do_not_change_a_digit(monkeypatch):
    monkeypatch.setattr(memory, "_LABELS_PER_PARTITION", 100)
    monkeypatch.setattr(memory, "SINGLE_PRECISION_LABELS", 0)
    made = simulate.crowd(n_items=400, n_annotators=600, labels_per_item=8, seed=2)
    fits = [
        RobustGPM(truth="opinions", engine=memory.MemoryEngine(threads=threads))
        .fit(made.labels)
        .result_
        for threads in (1, 3)
    ]
    np.testing.assert_array_equal(*(fit.reliability for fit in fits))
    np.testing.assert_array_equal(*(fit.history.objective for fit in fits))
