"""Kernels of pair comparisons against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins, assert_same

from annotruth.kernels.arrays import ComparisonBlock, PairBlock
from annotruth.observations import Comparisons

BRADLEY_TERRY = Kernels("pairs.bradley_terry"), Twins("pairs.bradley_terry")


@pytest.fixture
def votes():
    rng = np.random.default_rng(0)
    n_items, n_annotators, n = 9, 12, 400
    left = rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    annotator = rng.integers(1, n_annotators, size=n)  # the first annotator has no votes
    return Comparisons.from_codes(
        left,
        right,
        annotator,
        rng.integers(3, size=n),
        items=list(range(n_items)),
        annotators=list(range(n_annotators)),
    )


@pytest.mark.parametrize("prior", [(10.0, 1.0), (4.0, 2.0)])
@pytest.mark.parametrize(("lo", "hi"), [(0, 12), (3, 7)])
def test_crowd_bt_equals_its_twins(votes, lo, hi, prior):
    rng = np.random.default_rng(1)
    strength, start = np.exp(rng.normal(size=9)), rng.uniform(0.2, 0.9, size=12)
    block = ComparisonBlock(votes.annotator_ptr, votes.left, votes.right, votes.outcome)
    results = []
    for module in BRADLEY_TERRY:
        eta, agrees = start.copy(), np.zeros(votes.n_comparisons)
        net_wins, totals, end_totals = np.zeros(9), np.zeros(2), np.zeros(1)
        arguments = (block, lo, hi, eta)
        module.crowd_step(*arguments, strength, 0.4, np.array(prior), net_wins, totals)
        module.crowd_posterior(*arguments, agrees, strength, 0.4, end_totals)
        results.append((eta, agrees, net_wins, totals, end_totals))
    assert_same(results, atol=1e-12)
    assert (results[0][0][lo:hi] != start[lo:hi]).all()


@pytest.mark.parametrize(("lo", "hi"), [(0, 30), (4, 19), (7, 7)])
@pytest.mark.parametrize("nu", [0.0, 0.6])
def test_log_partition_equals_its_twin(lo, hi, nu):
    rng = np.random.default_rng(3)
    left, right = rng.integers(8, size=(2, 30)).astype(np.int32)
    block = PairBlock(np.sort(left), right, rng.integers(1, 9, size=30).astype(np.float64))
    strength = np.exp(rng.normal(size=8))
    results = []
    for module in BRADLEY_TERRY:
        sums = (np.zeros(30), np.zeros(8), np.zeros(8), np.zeros(8), np.zeros(6))
        information, *others = sums
        module.log_partition(block, lo, hi, information, strength, 1.3, nu, *others)
        results.append(sums)
    assert_same(results, rtol=1e-11, atol=1e-12)
