"""RobustGPM's passes where opinions differ, as CUDA kernels, against their NumPy twins."""

from contextlib import closing

import numpy as np
import pytest
from tests.engines.gpu.host_device import device_of

import annotruth as at
from annotruth.engines import Input, Pass, Sum, get_engine
from annotruth.engines.gpu import GPUEngine
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
    threads = 4 if request.param == "host with warps" else 1
    return GPUEngine(device_of(request.param, threads=threads)).open(labels)


def random_shares(*shape, seed=0):
    shares = np.random.default_rng(seed).gamma(1.0, size=shape) + 1e-3
    return shares / shares.sum(axis=-1, keepdims=True)


@pytest.fixture
def tables():
    """The prior, what is known and the confusion."""
    return {
        "prior": random_shares(N_CLASSES),
        "known_truth": random_shares(N_CATEGORIES, N_CLASSES, seed=1),
        "confusion": random_shares(N_ANNOTATORS, N_CATEGORIES, N_CLASSES, seed=2),
    }


STRATEGIES = {
    "other": random_shares(N_CATEGORIES, N_CLASSES, N_STRATEGIES, seed=3),
    "repeated": random_shares(N_CATEGORIES, N_CLASSES, N_STRATEGIES, seed=4),
    "repeated_label": np.arange(N_ANNOTATORS) % N_CATEGORIES,
}
SHAPES = random_shares(N_CLASSES, N_CATEGORIES, seed=6)
OPINIONS = {
    "opinions": SHAPES,
    "modes": SHAPES.argmax(axis=1),
    "scores": SHAPES @ np.arange(N_CATEGORIES),
    "serious": random_shares(N_ANNOTATORS, N_CATEGORIES, N_CLASSES, seed=7),
}
LOG_LIKELIHOOD = Sum("log_likelihood", (1,))
COUNTS = Sum("counts", (N_ANNOTATORS, N_CATEGORIES, N_CLASSES), annotator_axis=0)
PAIRS = [Sum(name, (N_ANNOTATORS, N_ANNOTATORS)) for name in ("same", "expected", "common")]
ITEMS = {"theta": N_CATEGORIES, "leading": N_CATEGORIES, "spread": 3, "posterior": N_CLASSES}


@pytest.mark.parametrize(
    ("name", "state", "more", "sums"),
    [
        ("step", (), {}, (COUNTS, Sum("classes", (N_CLASSES,)), LOG_LIKELIHOOD)),
        ("count_agreements", (), {"place": np.arange(N_ANNOTATORS)}, PAIRS),
        (
            "leave_one_out",
            (),
            STRATEGIES,
            (Sum("log_likelihood", (N_ANNOTATORS, N_STRATEGIES), annotator_axis=0),),
        ),
        ("posterior", ("posterior",), {}, ()),
        ("summarize", (*list(ITEMS)[:3], "p_serious"), OPINIONS, (LOG_LIKELIHOOD,)),
    ],
)
def test_passes_equal_those_of_the_reference(labels, session, tables, name, state, more, sums):
    of_annotators = {"confusion", "place", "repeated_label", "serious"}
    inputs = {**tables, **more}
    declared = tuple(Input(each, 0 if each in of_annotators else None) for each in inputs)
    one = Pass(f"robust_gpm.{name}", state, declared, tuple(sums))
    results = []
    for each in (session, get_engine("reference").open(labels)):
        for array in state:
            per = "labels" if array == "p_serious" else "items"
            each.allocate(array, per=per, shape=(ITEMS[array],) if array in ITEMS else ())
        found = each.run_pass(one, **inputs)
        axes = {total.name: total.annotator_axis for total in sums}
        found = {
            key: values if axes[key] is None else each.to_host(values)
            for key, values in found.items()
        }
        results.append({**found, **{array: each.collect(array) for array in state}})
    for key, expected in results[1].items():
        np.testing.assert_allclose(results[0][key], expected, rtol=1e-8, atol=1e-8, err_msg=key)


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
