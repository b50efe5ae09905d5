"""Pair comparisons on the GPU engine: its CUDA kernels, compiled for the processor, against the twins.

On a machine with a card, the same tests also run there.
"""

import importlib.util
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from tests.engines.gpu.host_device import COMPILER, HostDevice
from tests.models.pairs.crowds import comparisons

import annotruth as at
from annotruth.engines import Pass, Sum, get_engine
from annotruth.engines.gpu import GPUEngine, pairs
from annotruth.engines.gpu.device import CUDADevice
from annotruth.errors import InputError
from annotruth.models.pairs.pair_gpm import model as pair_gpm
from annotruth.models.pairs.pair_gpm.parameters import states_for
from annotruth.models.pairs.pair_gpm.posterior import annotator_posterior, side_biases
from annotruth.models.pairs.pair_gpm.state_shares import StateShares
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps

# Everything is in double precision; sums are integers, whose units are fine.
SAME = {"rtol": 1e-9, "atol": 1e-9}


def host_device(**options):
    if COMPILER is None:
        pytest.skip("g++ is missing: install it to test CUDA kernels on the processor")
    return HostDevice(**options)


@pytest.fixture(params=["host", "card"])
def device(request):
    if request.param == "host":
        return host_device()
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is missing: install it to test on a card")
    return CUDADevice()


def make_votes(*, ties=False, covariates=False, n_annotators=8, n_votes=400, seed=0):
    """Votes of annotators with unequal numbers of them; the last annotator has none."""
    rng = np.random.default_rng(seed)
    n_items = 7
    scores = rng.normal(size=n_items)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    outcome = (rng.random(n_votes) > 1.0 / (1.0 + np.exp(scores[right] - scores[left]))).astype(int)
    annotator = np.minimum(rng.geometric(0.3, size=n_votes), n_annotators - 1) - 1
    outcome[annotator == 1] = 0  # always left
    outcome[annotator == 2] = np.where(left == 3, 0, np.where(right == 3, 1, outcome))[
        annotator == 2
    ]  # favours item 3
    outcome[annotator == 3] = 1 - outcome[annotator == 3]  # inverted
    if ties:
        outcome[rng.random(n_votes) < 0.15] = 2
    return comparisons(
        *(left, right, outcome, annotator),
        n_items=n_items,
        n_annotators=n_annotators,
        covariates={"length": rng.normal(size=n_votes)} if covariates else None,
    )


def random_shares(states, rng):
    """Return probabilities of sharpness and behaviors that are not those of the parameters."""
    return StateShares(rng.dirichlet(np.ones(len(states.beta))), rng.dirichlet(states.eps + 1.0))


def passes(engine, data, n_groups):
    """Return what each pass computes at some parameters: numbers by name."""
    rng = np.random.default_rng(1)
    with closing(engine.open(data)) as session:
        steps = PairGPMSteps(data, session, states_for(data), n_groups)
        start = steps.start()
        parameters = start._replace(
            theta=rng.normal(size=start.theta.shape), offsets=rng.normal(size=start.offsets.shape)
        )
        found = {f"first {name}": sums for name, sums in steps.sums(parameters).items()}
        found |= dict(zip(("group", "nu", "behavior"), steps.shares.best(parameters), strict=True))
        found["favoured"] = session.collect("favoured")
        # Some levels are left out, and one annotator.
        steps.prune(parameters)
        found["pruned"] = session.collect("active").copy()
        steps.leave_out(np.arange(data.n_annotators) == 2)
        found |= steps.sums(parameters, prune=1e-4)
        found["active"] = session.collect("active").copy()
        found["by_level"] = session.collect("by_level").copy()
        steps.consider_all_states(np.arange(data.n_annotators) == 2)
        posterior = annotator_posterior(steps, parameters, random_shares(steps.states, rng))
        found |= {f"posterior {name}": each for name, each in posterior._asdict().items()}
        found["bias"] = side_biases(steps, parameters, posterior)
        found["information"] = steps.information(parameters)
    return found


@pytest.mark.parametrize(
    ("ties", "covariates", "n_groups"), [(False, False, 1), (True, False, 1), (False, True, 2)]
)
def test_passes_equal_their_twins(device, ties, covariates, n_groups):
    data = make_votes(ties=ties, covariates=covariates, n_votes=150 if ties else 400)
    expected = passes(get_engine("reference"), data, n_groups)
    actual = passes(GPUEngine(device), data, n_groups)
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(actual[name], values, err_msg=name, **SAME)
    assert (expected["pruned"] != expected["active"]).any()
    assert (expected["favoured"] >= 0).any()


def test_votes_are_counted(device):
    data = make_votes(ties=True)
    table = Sum("votes", (7, 7, 3))
    expected, actual = (
        engine.open(data.votes).run_pass(Pass("pairs.counts.add_votes", sums=(table,)))["votes"]
        for engine in (get_engine("reference"), GPUEngine(device))
    )
    np.testing.assert_array_equal(actual, expected)
    assert actual.sum() == 400


@pytest.mark.parametrize("model", ["bradley-terry", "thurstone", "pair-gpm"])
def test_rankings_equal_those_in_memory(device, model):
    data = make_votes(n_votes=150)
    expected, actual = (at.rank(data, model, engine=each) for each in ("memory", GPUEngine(device)))
    np.testing.assert_allclose(actual.scores.mean, expected.scores.mean, **SAME)
    np.testing.assert_allclose(actual.scores.interval, expected.scores.interval, atol=1e-7)
    np.testing.assert_allclose(actual.log_likelihood, expected.log_likelihood, rtol=1e-9)
    assert actual.n_iter == expected.n_iter
    if model == "pair-gpm":
        assert actual.behavior == expected.behavior
        np.testing.assert_allclose(actual.reliability, expected.reliability, atol=1e-7)
        np.testing.assert_allclose(actual.p_serious, expected.p_serious, atol=1e-7)


def test_many_votes_start_from_a_sample(device, monkeypatch):
    """As fits of many comparisons do, which leave out states by the first votes of each annotator."""
    monkeypatch.setattr(pair_gpm, "_LARGE", 200)
    monkeypatch.setattr(pair_gpm, "_SAMPLE", 80)
    data = make_votes(n_votes=250)
    engines = "memory", GPUEngine(device)
    expected, actual = (at.rank(data, engine=each, tol=0.1) for each in engines)
    # On the processor, a pass leaves out what is less likely than 1e-9 after some of the votes.
    np.testing.assert_allclose(actual.scores.mean, expected.scores.mean, atol=1e-6)
    assert actual.behavior == expected.behavior


def test_results_do_not_depend_on_the_grid():
    data = make_votes(n_votes=100)
    first, second, third = (
        at.rank(data, engine=GPUEngine(host_device(n_processors=n, threads=threads)), tol=1.0)
        for n, threads in [(1, 1), (3, 5), (3, 5)]
    )
    for other in (second, third):
        np.testing.assert_array_equal(first.scores.mean, other.scores.mean)
        np.testing.assert_array_equal(first.reliability, other.reliability)
        np.testing.assert_array_equal(first.p_serious, other.p_serious)
        assert first.log_likelihood == other.log_likelihood


def test_weights_of_annotators_count(device):
    data = replace(make_votes(n_votes=100), annotator_weight=np.where(np.arange(8) < 2, 0.5, 1.0))
    engines = "memory", GPUEngine(device)
    expected, actual = (at.rank(data, engine=each, tol=1.0) for each in engines)
    np.testing.assert_allclose(actual.scores.mean, expected.scores.mean, **SAME)


def test_predictions_equal_those_in_memory(device):
    data = make_votes(n_votes=150)
    model = at.PairGPM(tol=1.0).fit(data)
    codes = np.array([0, 1]), np.array([3, 2]), np.array([1, 2])
    expected = model.predict_proba(*codes)
    model.engine = GPUEngine(device)
    np.testing.assert_allclose(model.predict_proba(*codes), expected, rtol=1e-12)


def test_other_models_name_the_engine_that_can(device):
    with pytest.raises(
        InputError, match=r"pair-gpm, bradley-terry and thurstone .*--engine memory"
    ):
        at.rank(make_votes(), "crowd-bt", engine=GPUEngine(device))


def test_comparisons_on_disk_are_refused(device, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,annotator,winner\na,b,x,left\nb,c,x,right\n")
    with pytest.raises(InputError, match="in memory only"):
        at.rank(path, engine=GPUEngine(device), memory="1GB")


def test_more_items_or_votes_than_fit_are_refused(device, monkeypatch):
    monkeypatch.setattr(pairs, "MAX_VOTES", 10)
    with pytest.raises(InputError, match=r"at most 10 comparisons, not 400: .*--engine memory"):
        GPUEngine(device).open(make_votes())
    monkeypatch.setattr(device, "free_bytes", lambda: 100)
    with pytest.raises(InputError, match=r"the comparisons need .*--engine memory"):
        GPUEngine(device).open(make_votes(n_votes=9))


def test_errors_of_the_card_are_one_line(monkeypatch):
    class OutOfMemoryError(MemoryError):
        __module__ = "cupy.cuda.memory"

    def fail(*arguments, **options):
        raise OutOfMemoryError("Out of memory allocating 8 bytes")

    device = host_device()
    monkeypatch.setattr(device, "run", fail)
    with pytest.raises(InputError, match=r"is full .*--engine memory"):
        at.rank(make_votes(), engine=GPUEngine(device))
