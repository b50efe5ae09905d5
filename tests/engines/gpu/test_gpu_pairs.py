"""Pair comparisons on the GPU engine: its CUDA kernels, compiled for the processor, against the twins.

On a machine with a card, the same tests also run there.
"""

import numpy as np
import pytest
from tests.engines.gpu.host_device import device_of, host_device
from tests.models.pairs.crowds import comparisons

import annotruth as at
from annotruth.engines import Pass, Sum, get_engine
from annotruth.engines.gpu import GPUEngine, pairs
from annotruth.errors import InputError

# Everything is in double precision; sums are integers, whose units are fine.
SAME = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(params=["host", "card"])
def device(request):
    return device_of(request.param)


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


def test_votes_are_counted(device):
    data = make_votes(ties=True)
    table = Sum("votes", (7, 7, 3))
    expected, actual = (
        engine.open(data.votes).run_pass(Pass("pairs.layout.add_votes", sums=(table,)))["votes"]
        for engine in (get_engine("reference"), GPUEngine(device))
    )
    np.testing.assert_array_equal(actual, expected)
    assert actual.sum() == 400


@pytest.mark.parametrize("model", ["bradley-terry", "thurstone"])
def test_rankings_equal_those_in_memory(device, model):
    data = make_votes(n_votes=150)
    expected, actual = (at.rank(data, model, engine=each) for each in ("memory", GPUEngine(device)))
    np.testing.assert_allclose(actual.scores.mean, expected.scores.mean, **SAME)
    np.testing.assert_allclose(actual.scores.interval, expected.scores.interval, atol=1e-7)
    np.testing.assert_allclose(actual.log_likelihood, expected.log_likelihood, rtol=1e-9)
    assert actual.n_iter == expected.n_iter


def test_pair_gpm_names_the_engine_that_can(device):
    with pytest.raises(InputError, match=r"not on the engine gpu: pass `--engine memory`"):
        at.rank(make_votes(), engine=GPUEngine(device))


def test_other_models_name_the_engine_that_can(device):
    with pytest.raises(InputError, match=r"bradley-terry and thurstone .*--engine memory"):
        at.rank(make_votes(), "crowd-bt", engine=GPUEngine(device))


def test_comparisons_on_disk_are_refused(device, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,annotator,winner\na,b,x,left\nb,c,x,right\n")
    with pytest.raises(InputError, match="in memory only"):
        at.rank(path, "crowd-bt", engine=GPUEngine(device), memory="1GB")


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
        at.rank(make_votes(), "bradley-terry", engine=GPUEngine(device))
