"""The GPU engine: its CUDA kernels, compiled for the processor, against the NumPy twins.

On a machine with a card, the same tests also run there.
"""

import importlib.util
from contextlib import closing

import numpy as np
import pytest
from benchmarks.gpu.crowds import make_labels
from tests.engines.gpu.card_array import CardArray, CardNumPy
from tests.engines.gpu.host_device import device_of, host_device

import annotruth as at
from annotruth.engines import get_engine
from annotruth.engines.gpu import GPUEngine
from annotruth.errors import InputError
from annotruth.models.confusion.dawid_skene import DawidSkeneSteps
from annotruth.models.gpm import GPMSteps
from annotruth.observations import Labels, Scale


@pytest.fixture(params=["host", "host with warps", "host with more shared memory", "card"])
def device(request):
    # Shared memory for the sums of 8 of the annotators, or of all.
    return device_of(
        request.param,
        threads=4 if request.param == "host with warps" else 1,
        shared_bytes=1 << 16 if request.param == "host with more shared memory" else 64,
    )


@pytest.fixture
def labels():
    """Labels with skewed numbers per annotator, of whom some fit into shared memory."""
    crowd = at.simulate.crowd(
        n_items=120, n_annotators=30, n_categories=4, labels_per_item=6, seed=1
    )
    return crowd.labels


def fits(labels, device, model, **options):
    reference = at.fit(labels, model, engine="reference", **options)
    return at.fit(labels, model, engine=GPUEngine(device), **options), reference


@pytest.mark.parametrize(
    ("behavior", "acceleration"), [("uniform", False), ("uniform", True), ("learned", False)]
)
def test_gpm_equals_the_reference(labels, device, precision, behavior, acceleration):
    options = {"behavior": behavior, "acceleration": acceleration, "tol": 1e-3}
    fit, reference = fits(labels, device, "gpm", **options)
    assert fit.reliability.max() <= 1.0
    if precision == "single":
        np.testing.assert_allclose(fit.reliability, reference.reliability, atol=2e-3)
        np.testing.assert_allclose(fit.log_likelihood, reference.log_likelihood, rtol=1e-6)
        np.testing.assert_allclose(fit.p_serious, reference.p_serious, atol=5e-3)
        # Of annotators who are always serious, single precision leaves no irregular labels from
        # which a behavior could be learned, and the interval depends on it.
        sometimes = reference.reliability < 0.9999
        np.testing.assert_allclose(fit.low[sometimes], reference.low[sometimes], atol=5e-3)
        np.testing.assert_allclose(fit.low, reference.low, atol=0.03)
        return
    np.testing.assert_allclose(fit.reliability, reference.reliability, atol=1e-9)
    np.testing.assert_allclose(fit.log_likelihood, reference.log_likelihood, rtol=1e-11)
    np.testing.assert_allclose(fit.p_serious, reference.p_serious, atol=1e-7)
    shares, expected = (one.distribution.probability for one in (fit, reference))
    np.testing.assert_allclose(shares, expected, atol=1e-9)
    # The slopes with which intervals are found are cut off at 2**20.
    np.testing.assert_allclose(fit.low, reference.low, atol=1e-3)


def test_annotators_who_are_nearly_always_serious_decide(device):
    """Labels of an item that equally many gave differ by 1e-9; single precision has no such digits."""
    rng = np.random.default_rng(3)
    rows = [(e, s, int(rng.choice([e % 3, rng.integers(3)]))) for e in range(90) for s in range(8)]
    fit, reference = fits(at.Labels.of(rows), device, "gpm")
    shares = np.sort(reference.distribution.dense(3), axis=1)
    lead = shares[:, 2] - shares[:, 1]
    assert ((lead > 1e-12) & (lead < 1e-7)).any()
    decided = lead > 1e-12
    np.testing.assert_array_equal(fit.label[decided], reference.label[decided])


def test_dawid_skene_equals_the_reference(labels, device):
    fit, reference = fits(labels, device, "dawid-skene")
    np.testing.assert_allclose(fit.reliability, reference.reliability, atol=1e-7)
    np.testing.assert_allclose(fit.log_likelihood, reference.log_likelihood, rtol=1e-9)
    np.testing.assert_array_equal(fit.label, reference.label)


@pytest.mark.parametrize("model", ["gpm", "dawid-skene"])
def test_known_truths_are_kept(labels, device, precision, model):
    gold = {labels.items[e].as_py(): labels.scale.categories[e % 4].as_py() for e in range(20)}
    fit, reference = fits(labels.with_gold(gold), device, model)
    np.testing.assert_allclose(fit.reliability, reference.reliability, atol=2e-3)
    assert (fit.label[:20] == np.arange(20) % 4).sum() == (
        reference.label[:20] == np.arange(20) % 4
    ).sum()


@pytest.mark.parametrize("model", ["gpm", "dawid-skene"])
def test_results_do_not_depend_on_the_grid(labels, precision, model):
    first, second = (
        at.fit(labels, model, engine=GPUEngine(host_device(n_processors=n, threads=threads)))
        for n, threads in [(1, 4), (3, 4)]
    )
    np.testing.assert_array_equal(first.reliability, second.reliability)
    assert first.log_likelihood == second.log_likelihood


@pytest.mark.parametrize("unused", [0, 3])
def test_a_class_without_labels_stays_without_items(device, unused):
    # Kernels leave out the first class, which follows from the others without rounding.
    rng = np.random.default_rng(4)
    used = [n for n in range(4) if n != unused]
    labels = Labels.from_codes(
        np.repeat(np.arange(50), 7),
        rng.integers(9, size=350),
        rng.choice(used, size=350),
        items=np.arange(50),
        annotators=np.arange(9),
        scale=Scale.nominal(list("abcd")),
    )
    with closing(GPUEngine(device).open(labels)) as session:
        steps = DawidSkeneSteps(labels, session)
        parameters = steps.start()
        for _ in range(20):
            parameters, _ = steps.step(parameters)
        confusion = session.to_host(parameters.confusion, 1)
    assert parameters.prior[unused] == 0.0
    assert parameters.prior[used].min() > 0.0
    np.testing.assert_array_equal(confusion[..., unused], 0.25)  # as at the start


def test_items_with_many_labels_do_not_underflow(device, precision):
    n = 3000
    labels = Labels.from_codes(
        np.zeros(n, np.int64),
        np.arange(n),
        np.arange(n) % 2,
        items=["a"],
        annotators=np.arange(n),
        scale=Scale.nominal(["no", "yes"]),
    )
    for model in ("gpm", "dawid-skene"):
        fit, reference = fits(labels, device, model)
        np.testing.assert_allclose(fit.log_likelihood, reference.log_likelihood, rtol=1e-5)


def test_sums_of_annotators_who_are_never_serious_are_small(device, precision):
    """What is rounded is never below 0, which would be a large number without a sign."""
    rows = [(e, s, "yes") for e in range(50) for s in range(9)] + [(e, 9, "no") for e in range(50)]
    fit, reference = fits(at.Labels.of(rows), device, "gpm")
    assert reference.reliability[9] < 1e-6
    np.testing.assert_allclose(fit.reliability, reference.reliability, atol=1e-5)


@pytest.mark.parametrize("power_law", [False, True])
@pytest.mark.parametrize("n_annotators", [8, 60])
def test_steps_with_few_and_with_many_annotators_equal_the_reference(
    precision, n_annotators, power_law
):
    """The sums of all annotators, of the busiest or of none are in shared memory, which holds 8."""
    labels = make_labels(6_000, n_annotators, power_law=power_law)
    found = []
    for engine in (GPUEngine(host_device(threads=4)), get_engine("reference")):
        with closing(engine.open(labels)) as session:
            steps = GPMSteps(labels, session, learned=False)
            parameters = steps.start()
            for _ in range(5):
                parameters, monitor = steps.step(parameters)
            reliability = session.to_host(parameters.eps)
            found.append((reliability, session.collect("theta"), monitor.log_likelihood))
    (reliability, theta, total), (other, expected, sum_in_memory) = found
    atol, rtol = (1e-9, 1e-11) if precision == "double" else (1e-4, 1e-6)
    np.testing.assert_allclose(reliability, other, atol=atol)
    np.testing.assert_allclose(theta, expected, atol=10 * atol)
    np.testing.assert_allclose(total, sum_in_memory, rtol=rtol)


def test_annotators_stay_on_the_card(labels):
    with closing(GPUEngine(host_device()).open(labels)) as session:
        steps = DawidSkeneSteps(labels, session)
        parameters, _ = steps.step(steps.start())
        assert isinstance(parameters.confusion, CardArray)
        back = session.to_host(session.to_engine(labels.labels_per_category))
        np.testing.assert_array_equal(back, labels.labels_per_category)


def test_arrays_of_the_card_meet_no_others():
    card = CardNumPy().asarray(np.ones(3))
    assert isinstance(np.exp(card) + card * 2.0, CardArray)
    for mixed in (
        lambda: card + np.ones(3),
        lambda: np.maximum(np.ones(3), card),
        lambda: np.concatenate([card, np.ones(3)]),
        lambda: np.divide(card, card, where=card > 0),
        lambda: np.ascontiguousarray(card),
    ):
        with pytest.raises(TypeError):
            mixed()


def test_other_models_name_the_engine_that_can(labels, device):
    with pytest.raises(InputError, match="engine='memory"):
        at.fit(labels, "glad", engine=GPUEngine(device))


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_the_message_says_what_to_install():
    with pytest.raises(InputError, match=r"pip install 'annotruth\[gpu\]'"):
        at.fit([("a", "ann", 1), ("a", "bob", 2)], "gpm", engine="gpu")


@pytest.mark.parametrize("power_law", [False, True])
def test_labels_of_the_benchmark_are_valid(power_law):
    made = make_labels(20_000, 100, power_law=power_law)
    codes = made.item_of_label(), made.annotator, made.category_of_label()
    again = Labels.from_codes(
        *codes, items=made.items, annotators=made.annotators, scale=made.scale
    )
    for name in ("item_ptr", "cell_ptr", "cell_category"):
        np.testing.assert_array_equal(getattr(made, name), getattr(again, name))
    assert (made.labels_per_item == 10).all()
    assert made.labels_per_annotator.min() > 0
