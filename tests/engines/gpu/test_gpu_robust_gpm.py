"""RobustGPM with one right label on the GPU engine: CUDA kernels against the NumPy twins."""

from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import pytest
from tests.engines.gpu.host_device import host_device
from tests.engines.gpu.test_gpu_engine import device, fits  # noqa: F401

import annotruth as at
from annotruth.engines import get_engine
from annotruth.engines.gpu import GPUEngine
from annotruth.errors import InputError
from annotruth.kernels.shared import NEVER
from annotruth.models.evidence.chance import Folds, assign_folds
from annotruth.models.robust_gpm.choice import Candidate
from annotruth.models.robust_gpm.class_results import ClassState
from annotruth.observations import Scale

CANDIDATES = [Candidate(1, 1024.0, learn_crowd=False), Candidate(3, 16.0, learn_crowd=True)]


@pytest.fixture
def labels():
    """Labels of classes, some of them known; annotators have different numbers of labels."""
    crowd = at.simulate.crowd(
        n_items=150, n_annotators=25, n_categories=3, labels_per_item=5, seed=4
    )
    labels = replace(crowd.labels, scale=Scale.nominal(["cat", "dog", "owl"]))
    known = {labels.items[e].as_py(): "owl" for e in range(5)}
    return labels.with_gold(known)


@pytest.fixture
def sessions(labels):
    """The labels, opened on the card and on the reference engine, with folds; and the hashes."""
    folds = Folds(held_share=0.2, n_folds=2, sampled_share=0.7)
    with ExitStack() as stack:
        opened = [
            stack.enter_context(closing(engine.open(labels)))
            for engine in (GPUEngine(host_device()), get_engine("reference"))
        ]
        yield opened, [assign_folds(labels, session, folds) for session in opened]


def test_folds_are_those_of_other_engines(sessions):
    (gpu, reference), (gpu_hashes, hashes) = sessions
    np.testing.assert_array_equal(gpu.collect("item_hash"), reference.collect("item_hash"))
    np.testing.assert_array_equal(gpu.collect("fold"), reference.collect("fold"))
    annotators = gpu.to_host(gpu_hashes.annotator_hash)
    np.testing.assert_array_equal(annotators, hashes.annotator_hash)


@pytest.mark.parametrize("held", [NEVER, 1])
@pytest.mark.parametrize("candidate", CANDIDATES)
def test_a_step_equals_the_twins(labels, sessions, candidate, held):
    gpu, reference = (candidate.steps(labels, session, held) for session in sessions[0])
    found, expected = gpu.start(), reference.start()
    for _ in range(2):
        np.testing.assert_allclose(
            gpu.session.to_host(found.confusion), expected.confusion, atol=1e-6
        )
        np.testing.assert_allclose(found.prior, expected.prior, atol=1e-6)
        (found, one), (expected, other) = gpu.step(found), reference.step(expected)
        assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-6)


def check_same(fit, reference):
    choices = (ClassState.from_fit(each).choice for each in (fit, reference))
    (candidate, correlation), (other, expected) = choices
    assert candidate == other
    assert correlation == pytest.approx(expected, rel=1e-5)
    assert (fit.verdict, fit.n_iter) == (reference.verdict, reference.n_iter)
    assert fit.log_likelihood == pytest.approx(reference.log_likelihood, rel=1e-6)
    np.testing.assert_allclose(fit.reliability, reference.reliability, atol=1e-5)
    np.testing.assert_allclose(fit.low, reference.low, atol=1e-4)
    np.testing.assert_allclose(fit.p_serious, reference.p_serious, atol=1e-5)
    assert fit.behavior == reference.behavior
    np.testing.assert_array_equal(fit.label, reference.label)
    for readout in ("right", "opinion"):
        shares = fit.soft_label_table(readout).drop_columns("item")
        others = reference.soft_label_table(readout).drop_columns("item")
        np.testing.assert_allclose(shares.to_pandas(), others.to_pandas(), atol=1e-5)
    for name in ("counts", "pseudo_counts", "loo_log_likelihood", "repeated_label"):
        np.testing.assert_allclose(
            fit.parameters[name], reference.parameters[name], rtol=1e-4, atol=1e-4
        )


def test_a_fit_equals_the_reference(labels, device):  # noqa: F811
    check_same(*fits(labels, device, "robust-gpm"))


def test_a_fit_on_an_ordinal_scale_with_an_annotator_prior_equals_the_reference(labels, device):  # noqa: F811
    ordinal = replace(labels, scale=Scale.ordinal([1, 2, 3]), known=np.full_like(labels.known, -1))
    prior = np.tile([3.0, 1.0], (labels.n_annotators, 1))
    ordinal = replace(ordinal, annotator_prior=prior)
    check_same(*fits(ordinal, device, "robust-gpm", truth="class"))


def test_labels_of_chance_are_seen_as_such(device):  # noqa: F811
    rng = np.random.default_rng(0)
    rows = [(e, s, "ab"[rng.integers(2)]) for e in range(60) for s in range(8)]
    fit, reference = fits(at.Labels.of(rows), device, "robust-gpm")
    assert fit.verdict == "chance"
    check_same(fit, reference)


@pytest.mark.parametrize("truth", ["class", "opinions"])
def test_a_fit_does_not_depend_on_the_grid(labels, truth):
    if truth == "opinions":
        labels = replace(labels, scale=Scale.ordinal([1, 2, 3]))
    first, second = (
        at.fit(labels, truth=truth, engine=GPUEngine(host_device(n_processors=n, threads=4)))
        for n in (1, 3)
    )
    for name in ("reliability", "p_serious"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(first.distribution.probability, second.distribution.probability)


def test_labels_that_count_less_name_the_engine_that_can(labels):
    weighted = replace(labels, annotator_weight=np.full(labels.n_annotators, 0.5))
    with pytest.raises(InputError, match="engine='memory"):
        GPUEngine(host_device()).open(weighted)
