"""RobustGPM's passes where opinions differ, as CUDA kernels, against their NumPy twins."""

import importlib.util
from contextlib import closing

import numpy as np
import pytest
from tests.engines.gpu.test_gpu_engine import host_device
from tests.kernels.twins import Twins

import annotruth as at
from annotruth.engines import Input, Pass, Sum, get_engine
from annotruth.engines.gpu import GPUEngine, opinions
from annotruth.engines.gpu.device import CUDADevice
from annotruth.models.robust_gpm.opinion_model import OpinionModel
from annotruth.observations import Labels, Scale

N_ANNOTATORS, N_CATEGORIES, N_CLASSES, N_STRATEGIES = 9, 4, 10, 7


@pytest.fixture
def labels():
    """Labels with skewed numbers per annotator, and some known truths."""
    rng = np.random.default_rng(5)
    item, annotator = np.nonzero(rng.random((40, N_ANNOTATORS)) < np.linspace(0.2, 1, N_ANNOTATORS))
    labels = Labels.from_codes(
        item,
        annotator,
        rng.integers(N_CATEGORIES, size=len(item)),
        items=np.arange(40),
        annotators=np.arange(N_ANNOTATORS),
        scale=Scale.ordinal(range(N_CATEGORIES)),
    )
    return labels.with_gold({e: e % N_CATEGORIES for e in range(5)})


@pytest.fixture(params=["host", "host with warps", "card"])
def session(request, labels):
    return GPUEngine(device_of(request.param)).open(labels)


def device_of(name):
    if name != "card":
        return host_device(threads=4 if name == "host with warps" else 1)
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is missing: install it to test on a card")
    return CUDADevice()


def random_shares(*shape, seed=0):
    shares = np.random.default_rng(seed).gamma(1.0, size=shape) + 1e-3
    return shares / shares.sum(axis=-1, keepdims=True)


@pytest.fixture
def tables():
    prior = random_shares(N_CLASSES)
    known_truth = random_shares(N_CATEGORIES, N_CLASSES, seed=1)
    likelihood = random_shares(N_ANNOTATORS, N_CATEGORIES, N_CLASSES, seed=2)
    return prior, known_truth, likelihood


@pytest.fixture
def strategies():
    other, repeated = (
        random_shares(N_CATEGORIES, N_CLASSES, N_STRATEGIES, seed=seed) for seed in (3, 4)
    )
    repeated_label = np.arange(N_ANNOTATORS) % N_CATEGORIES
    return other, repeated, repeated_label


def test_step(labels, session, tables):
    sums = opinions.step(session, *opinions.take_logs(session, *tables))
    counts, classes = np.zeros(tables[2].shape), np.zeros(N_CLASSES)
    total = np.zeros(1)
    Twins("robust_gpm").step(labels.block(), 0, labels.n_items, *tables, counts, classes, total)
    np.testing.assert_allclose(session.to_host(sums["counts"]), counts, atol=1e-5)
    np.testing.assert_allclose(sums["classes"], classes, atol=1e-5)
    np.testing.assert_allclose(sums["log_likelihood"], total, rtol=1e-6)


def test_count_agreements(labels, session, tables):
    shape, place = (N_ANNOTATORS, N_ANNOTATORS), np.arange(N_ANNOTATORS)
    one = Pass(
        "robust_gpm.count_agreements",
        inputs=(Input("prior"), Input("known_truth"), Input("confusion", 0), Input("place", 0)),
        sums=(Sum("same", shape), Sum("expected", shape), Sum("common", shape)),
    )
    inputs = dict(zip(("prior", "known_truth", "confusion"), tables, strict=True))
    inputs["confusion"] = session.to_engine(tables[2])
    sums = session.run_pass(one, **inputs, place=place)
    twins = [np.zeros(shape) for _ in range(3)]
    Twins("robust_gpm").count_agreements(labels.block(), 0, labels.n_items, *tables, place, *twins)
    for actual, twin in zip(sums.values(), twins, strict=True):
        np.testing.assert_allclose(actual, twin, rtol=1e-12)


def test_leave_one_out(labels, session, tables, strategies):
    other, repeated, repeated_label = strategies
    twin = np.zeros((N_ANNOTATORS, N_STRATEGIES))
    sums = opinions.leave_one_out(
        session, *opinions.take_logs(session, *tables), other, repeated, repeated_label
    )
    Twins("robust_gpm").leave_one_out(labels.block(), 0, labels.n_items, *tables, *strategies, twin)
    np.testing.assert_allclose(session.to_host(sums["log_likelihood"]), twin, rtol=1e-5)


def test_posterior_and_summary(labels, session, tables):
    twin = np.zeros((labels.n_items, N_CLASSES))
    Twins("robust_gpm").posterior(labels.block(), 0, labels.n_items, twin, *tables)
    session.allocate("posterior", per="items", shape=(N_CLASSES,))
    logs = opinions.take_logs(session, *tables)
    opinions.write_posterior(session, "posterior", *logs)
    np.testing.assert_allclose(session.collect("posterior"), twin, atol=1e-6)

    shapes = random_shares(N_CLASSES, N_CATEGORIES, seed=6)
    serious = random_shares(N_ANNOTATORS, N_CATEGORIES, N_CLASSES, seed=7)
    inputs = (shapes, shapes.argmax(axis=1), shapes @ np.arange(N_CATEGORIES), serious)
    widths = {"theta": N_CATEGORIES, "leading": N_CATEGORIES, "spread": 3}
    arrays = [np.zeros((labels.n_items, width)) for width in widths.values()]
    arrays.append(np.zeros(labels.n_labels))
    total = np.zeros(1)
    Twins("robust_gpm").summarize(
        labels.block(), 0, labels.n_items, *arrays, *tables, *inputs, total
    )
    for name, width in widths.items():
        session.allocate(name, per="items", shape=(width,))
    session.allocate("p_serious", per="labels")
    names = (*widths, "p_serious")
    sums = opinions.summarize(session, names, *logs, *inputs)
    for name, array in zip(names, arrays, strict=True):
        np.testing.assert_allclose(session.collect(name), array, atol=2e-6, err_msg=name)
    np.testing.assert_allclose(sums["log_likelihood"], total, rtol=1e-6)


def test_large_arrays_are_copied_in_parts(monkeypatch):
    device = device_of("card")
    monkeypatch.setattr("annotruth.engines.gpu.device._FEW_BYTES", 64)
    monkeypatch.setattr("annotruth.engines.gpu.device._STAGED_BYTES", 128)
    values = np.arange(120.0).reshape(30, 4)
    np.testing.assert_array_equal(device.to_host(device.xp.asarray(values).T), values.T)


@pytest.mark.parametrize("device", ["host", "card"])
@pytest.mark.parametrize("n_categories", [5, 9])
def test_fits_equal_the_reference(n_categories, device):
    crowd = at.simulate.crowd(
        n_items=40, n_annotators=9, n_categories=n_categories, labels_per_item=5, seed=2
    )
    reference = fit_opinions(crowd.labels, get_engine("reference"))
    fit = fit_opinions(crowd.labels, GPUEngine(device_of(device)))
    assert fit.n_iter == reference.n_iter
    np.testing.assert_allclose(fit.log_likelihood, reference.log_likelihood, rtol=1e-6)
    for name in ("reliability", "low", "high", "p_serious"):
        np.testing.assert_allclose(getattr(fit, name), getattr(reference, name), atol=1e-4)
    np.testing.assert_allclose(
        fit.distribution.probability, reference.distribution.probability, atol=1e-4
    )
    assert fit.behavior == reference.behavior
    for name, column in fit.annotator_columns.items():
        np.testing.assert_allclose(column, reference.annotator_columns[name], atol=1e-3)


def fit_opinions(labels, engine):
    with closing(engine.open(labels)) as session:
        return OpinionModel(at.RobustGPM()).fit(labels, session, None, None)


def test_results_do_not_depend_on_the_grid():
    labels = at.simulate.crowd(n_items=40, n_annotators=9, labels_per_item=5, seed=2).labels
    first, second = (
        fit_opinions(labels, GPUEngine(host_device(threads=1, n_processors=n))) for n in (1, 3)
    )
    np.testing.assert_array_equal(first.reliability, second.reliability)
    np.testing.assert_array_equal(first.p_serious, second.p_serious)
    np.testing.assert_array_equal(first.distribution.probability, second.distribution.probability)
    assert first.log_likelihood == second.log_likelihood
