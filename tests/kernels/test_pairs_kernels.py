"""Kernels of pair comparisons against their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins, assert_same

from annotruth.kernels.arrays import PairBlock, VoteBlock
from annotruth.observations import Comparisons

BRADLEY_TERRY, LAYOUT = (
    (Kernels(family), Twins(family)) for family in ("pairs.bradley_terry", "pairs.layout")
)


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


@pytest.mark.parametrize(("lo", "hi"), [(0, 200), (30, 70), (50, 50)])
def test_add_votes_equals_its_twin(votes, lo, hi):
    tables = np.zeros((2, 9, 9, 3))
    for module, table in zip(LAYOUT, tables, strict=True):
        module.add_votes(votes.votes.block(), lo, hi, table)
    np.testing.assert_array_equal(*tables)
    assert tables[0].sum() == hi - lo


@pytest.mark.parametrize("prior", [(10.0, 1.0), (4.0, 2.0)])
@pytest.mark.parametrize(("lo", "hi"), [(0, 12), (3, 7)])
def test_crowd_bt_equals_its_twins(votes, lo, hi, prior):
    rng = np.random.default_rng(1)
    strength, start = np.exp(rng.normal(size=9)), rng.uniform(0.2, 0.9, size=12)
    results = []
    for module in BRADLEY_TERRY:
        eta, agrees = start.copy(), np.zeros(votes.n_comparisons)
        net_wins, totals, end_totals = np.zeros(9), np.zeros(2), np.zeros(1)
        arguments = (votes.block(), lo, hi, eta)
        module.crowd_step(*arguments, strength, 0.4, np.array(prior), net_wins, totals)
        module.crowd_posterior(*arguments, agrees, strength, 0.4, end_totals)
        results.append((eta, agrees, net_wins, totals, end_totals))
    assert_same(results, atol=1e-12)
    assert (results[0][0][lo:hi] != start[lo:hi]).all()


@pytest.mark.parametrize("shift", [0, 4])
def test_sorting_by_ranges_equals_the_twins(shift):
    rng = np.random.default_rng(2)
    n, n_annotators = 500, 50
    annotator, left, right = rng.integers(n_annotators, size=(3, n)).astype(np.int32)
    outcome = rng.integers(3, size=n).astype(np.int8)
    n_ranges = ((n_annotators - 1) >> shift) + 1
    begin = np.append(0, np.bincount(annotator >> shift).cumsum())
    results = []
    for module in LAYOUT:
        counts, records = np.zeros(n_ranges, np.int64), np.zeros((n, 4), np.int32)
        module.count_ranges(annotator, 30, n, shift, counts)
        codes = annotator, left, right, outcome
        module.distribute_votes(*codes, 0, 300, shift, begin[:-1], records)
        module.distribute_votes(
            *codes, 300, n, shift, begin[:-1] + np.bincount(annotator[:300] >> shift), records
        )
        pointers, row = np.zeros(1 << shift, np.int64), np.zeros(n, np.int64)
        made = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int8)
        module.sort_range(records, begin[1], begin[2], pointers, *made, row)
        results.append((counts, records, pointers, *made, row))
    assert_same(results, rtol=0.0, atol=0.0)


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


def test_many_votes_of_a_pair_are_counted():
    n = 150_000
    codes = np.zeros(n, np.int32)
    table = np.zeros((2, 2, 3))
    LAYOUT[0].add_votes(VoteBlock(codes, codes + 1, np.full(n, 2, np.int8)), 0, n, table)
    assert table[0, 1].tolist() == [0, 0, n]
    assert table.sum() == n
