"""The kernels of latent states of items against their NumPy twins."""

from dataclasses import replace

import numpy as np
import pytest
from tests.kernels.twins import Twins

from annotruth.kernels import held_out, item_states
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER, NOT_SAMPLED
from annotruth.observations import Labels, Scale

ITEM_STATES = (item_states, Twins("item_states"))
HELD_OUT = (held_out, Twins("held_out"))
RANGES = pytest.mark.parametrize(("lo", "hi"), [(0, 40), (7, 23), (39, 40)])
HELD = pytest.mark.parametrize("held", [NEVER, 0, 1])
ANNOTATORS, CATEGORIES, SUBTYPES = 11, 4, 3
STATES = CATEGORIES * SUBTYPES


@pytest.fixture(scope="module")
def labels(make_labels):
    labels = make_labels(
        np.random.default_rng(3), n_items=40, n_annotators=ANNOTATORS, n_categories=CATEGORIES
    )
    labels.known[::6] = 2
    return labels


@pytest.fixture(scope="module")
def fold(labels):
    """Folds 0 and 1, labels that are never held out, and items that are not sampled."""
    rng = np.random.default_rng(4)
    fold = rng.choice([NEVER, 0.0, 1.0], labels.n_labels)
    ends = labels.cell_ptr[labels.item_ptr]
    for e in (3, 9, 14):
        fold[ends[e] : ends[e + 1]] = NOT_SAMPLED
    fold[ends[20] : ends[21]] = 1.0  # all labels of an item are held out at once
    return fold


def make_tables(n_states):
    """Prior, truth likelihood, counts and pseudo-counts with totals after the last label."""
    rng = np.random.default_rng(5)
    counts = rng.uniform(0.0, 9.0, (ANNOTATORS, CATEGORIES, n_states))
    pseudo = rng.uniform(0.1, 3.0, (ANNOTATORS, CATEGORIES, n_states))
    tables = [
        np.concatenate([table, table.sum(axis=1, keepdims=True)], axis=1)
        for table in (counts, pseudo)
    ]
    prior, truth = rng.dirichlet(np.ones(n_states)), rng.random((CATEGORIES, n_states))
    truth[:, 0] = 0.0
    return prior, truth, *tables


def assert_same(results):
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-13)


def random_hashes(*lengths):
    rng = np.random.default_rng(6)
    return [rng.integers(2**63, size=n).astype(np.uint64) for n in lengths]


@RANGES
def test_hashes_and_folds_equal_their_twins(labels, lo, hi):
    hashes = random_hashes(ANNOTATORS, CATEGORIES)
    hashes[0][5:9] = hashes[0][0]  # annotators who are alike
    results = []
    for kernels in HELD_OUT:
        sums, items = np.zeros(ANNOTATORS), np.zeros(40)
        kernels.hash_annotators(labels.block(), lo, hi, *hashes, sums)
        kernels.hash_items(labels.block(), lo, hi, items, *hashes)
        fold = np.zeros(labels.n_labels)
        kernels.assign_folds(labels.block(), lo, hi, fold, items, *hashes, 0.2, 3, 0.7)
        results.append([sums, items, fold])
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(actual, expected)
    if hi - lo == 40:
        assert set(results[0][2]) == {NOT_SAMPLED, NEVER, 0.0, 1.0, 2.0}


def test_folds_hold_out_the_given_share(make_labels):
    labels = make_labels(np.random.default_rng(8), n_items=2000, n_annotators=50, n_categories=3)
    hashes = random_hashes(50, 3)
    fold, items = np.zeros(labels.n_labels), np.zeros(2000)
    held_out.hash_items(labels.block(), 0, 2000, items, *hashes)
    held_out.assign_folds(labels.block(), 0, 2000, fold, items, *hashes, 0.2, 2, 0.5)
    shares = [(fold == value).mean() for value in (NOT_SAMPLED, 0.0, 1.0)]
    np.testing.assert_allclose(shares, [0.5, 0.1, 0.1], atol=0.02)


@RANGES
@HELD
def test_agreement_and_start_equal_their_twins(labels, fold, lo, hi, held):
    subtypes = np.random.default_rng(1).dirichlet(np.ones(SUBTYPES), AGREEMENT_BINS)
    results = []
    for kernels in HELD_OUT:
        bins = np.zeros(AGREEMENT_BINS)
        kernels.agreement(labels.block(), lo, hi, fold, held, bins)
        counts, states = np.zeros((ANNOTATORS, CATEGORIES, STATES)), np.zeros(STATES)
        kernels.start(labels.block(), lo, hi, fold, held, subtypes, counts, states)
        results.append((bins, counts, states))
    assert_same(results)
    assert results[0][0].sum() == pytest.approx(results[0][2].sum())


@RANGES
@HELD
def test_step_equals_its_twin(labels, fold, lo, hi, held):
    prior, truth, *_ = make_tables(STATES)
    confusion = np.random.default_rng(2).uniform(0.01, 1.0, (ANNOTATORS, CATEGORIES, STATES))
    results = []
    for kernels in HELD_OUT:
        sums = np.zeros((ANNOTATORS, CATEGORIES, STATES)), np.zeros(STATES), np.zeros(1)
        kernels.step(labels.block(), lo, hi, fold, held, prior, truth, confusion, *sums)
        results.append(sums)
    assert_same(results)


@RANGES
@pytest.mark.parametrize("held", [0, 1])
def test_score_equals_its_twin(labels, fold, lo, hi, held):
    tables = make_tables(CATEGORIES + STATES)
    first = np.array([0, CATEGORIES, CATEGORIES + STATES])
    results = []
    for kernels in ITEM_STATES:
        total, products = np.zeros(7), np.zeros((6, 6))
        kernels.score(
            labels.block(),
            lo,
            hi,
            fold,
            held,
            *tables,
            first,
            np.array([0.0, 0.1, 1.0]),
            total,
            products,
        )
        results.append((total, products))
    assert_same(results)


@RANGES
@pytest.mark.parametrize("first_draw", [0, 7])
@pytest.mark.parametrize("reliability", [0.0, 0.5])
def test_agree_equals_its_twin(labels, fold, lo, hi, first_draw, reliability):
    rng = np.random.default_rng(10)
    hashes = rng.integers(2**63, size=40 + ANNOTATORS + CATEGORIES).astype(np.uint64)
    item_hash = (hashes[:40] >> np.uint64(12)).astype(np.float64)
    hashes[40] = hashes[41]  # two annotators who are alike
    group = np.append(np.arange(CATEGORIES - 1), 0)
    chance = rng.dirichlet(np.ones(CATEGORIES - 1), ANNOTATORS)
    shares = rng.uniform(0.1, 0.9, (ANNOTATORS, CATEGORIES - 1, 3))
    eps = rng.uniform(0.01, 0.99, (ANNOTATORS, 3))
    results = []
    for kernels in HELD_OUT:
        inputs = (
            *(labels.block(), lo, hi, fold, item_hash),
            *(hashes[40 : 40 + ANNOTATORS], hashes[40 + ANNOTATORS :]),
            *(first_draw, reliability, group, chance.mean(axis=0), chance),
        )
        counts = np.zeros((ANNOTATORS, CATEGORIES - 1, 3))
        kernels.count_drawn(*inputs, counts)
        sums = np.zeros((ANNOTATORS, 3)), np.zeros(3)
        kernels.agree(*inputs, shares, eps, *sums)
        results.append((counts, *sums))
    assert_same(results)
    assert results[0][0].std(axis=2).any()  # draws differ


def test_ratios_of_thousands_of_labels_on_an_item_do_not_overflow():
    n = 3000
    labels = Labels.from_codes(
        np.zeros(n, dtype=np.int64),
        np.arange(n),
        np.arange(n) % 2,
        items=["a"],
        annotators=list(range(n)),
        scale=Scale.nominal(["x", "y"]),
    )
    results = []
    for kernels in HELD_OUT:
        sums = np.zeros((n, 1)), np.zeros(1)
        kernels.agree(
            *(labels.block(), 0, 1, np.zeros(n), np.ones(1), np.arange(n).astype(np.uint64)),
            *(np.arange(2).astype(np.uint64), 0, 0.0, np.arange(2), np.array([0.7, 0.3])),
            *(np.full((n, 2), 0.5), np.full((n, 2, 1), 0.2), np.full((n, 1), 0.9), *sums),
        )
        results.append(sums)
    assert_same(results)
    # Half of the labels are those of either class.
    assert results[0][1][0] == pytest.approx(1500 * (np.log(0.1 + 0.9 / 0.2) + np.log(0.1)))


def test_a_known_truth_that_hundreds_of_labels_contradict_does_not_overflow():
    n = 400
    labels = Labels.from_codes(
        np.zeros(n, dtype=np.int64),
        np.arange(n),
        np.zeros(n, dtype=np.int64),
        items=["a"],
        annotators=list(range(n)),
        scale=Scale.nominal(["x", "y"]),
    )
    labels.known[0] = 1
    counts = np.zeros((n, 3, 2))
    pseudo = np.tile(np.array([[0.99, 0.01], [0.01, 0.99], [1.0, 1.0]]), (n, 1, 1))
    results = []
    for kernels in ITEM_STATES:
        posterior = np.zeros((1, 2))
        kernels.posterior(
            labels.block(), 0, 1, posterior, np.full(2, 0.5), np.eye(2), counts, pseudo, 0.0
        )
        results.append(posterior)
    assert_same([one] for one in results)
    assert results[0].tolist() == [[0.0, 1.0]]


@RANGES
@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_summarize_and_posterior_equal_their_twins(labels, lo, hi, correlation):
    rng = np.random.default_rng(10)
    prior, truth, *counts = make_tables(STATES)
    # Beside known truths, other things may be known about items: here two.
    tables = (prior, np.vstack([truth, rng.uniform(0.1, 3.0, (2, STATES))]), *counts)
    labels = replace(labels, known=labels.known.copy())
    labels.known[3::6], labels.known[4::6] = CATEGORIES, CATEGORIES + 1
    rows = rng.dirichlet(np.ones(CATEGORIES), STATES), rng.dirichlet(np.ones(CATEGORIES), STATES)
    serious = rng.random((ANNOTATORS, CATEGORIES, STATES))
    results = []
    for kernels in ITEM_STATES:
        arrays = [np.zeros((40, CATEGORIES)), np.zeros((40, CATEGORIES)), np.zeros(labels.n_labels)]
        kernels.summarize(labels.block(), lo, hi, *arrays, *tables, correlation, *rows, serious)
        posterior = np.zeros((40, STATES))
        kernels.posterior(labels.block(), lo, hi, posterior, *tables, correlation)
        results.append((*arrays, posterior))
    assert_same(results)
    right, opinion, *_ = results[0]
    np.testing.assert_allclose(right[lo:hi].sum(axis=1), 1.0)
    np.testing.assert_allclose(opinion[lo:hi].sum(axis=1), 1.0)


def test_a_label_that_nobody_gave_is_never_the_most_probable(make_labels):
    labels = make_labels(
        np.random.default_rng(0), n_items=40, n_annotators=ANNOTATORS, n_categories=2, density=0.3
    )
    prior, truth = np.array([0.999, 0.001]), np.eye(2)
    counts = np.zeros((ANNOTATORS, 3, 2))
    pseudo = np.full((ANNOTATORS, 3, 2), [[1.0, 1.0]])
    pseudo[:, 2] = 2.0
    arrays = [np.zeros((40, 2)), np.zeros((40, 2)), np.zeros(labels.n_labels)]
    serious = np.ones((ANNOTATORS, 2, 2))
    item_states.summarize(
        labels.block(),
        0,
        40,
        *arrays,
        prior,
        truth,
        counts,
        pseudo,
        0.0,
        np.eye(2),
        np.eye(2),
        serious,
    )
    only_second = np.diff(labels.item_ptr) == 1
    only_second &= labels.cell_category[labels.item_ptr[:-1]] == 1
    assert only_second.any()
    assert (arrays[0][only_second].argmax(axis=1) == 1).all()
    np.testing.assert_allclose(arrays[0][only_second], 0.5, atol=1e-8)
