"""Compiled passes over time agree with their NumPy twins, and with sums over all sequences."""

import itertools

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins

over_time, reference = Kernels("over_time"), Twins("over_time")

LEVELS = np.array([0.05, 0.5, 0.95])
START, JUMP = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.4, 0.2])
BEGIN, END = np.array([0, 7, 7]), np.array([7, 7, 12])  # one sequence is empty


@pytest.fixture
def labels():
    rng = np.random.default_rng(3)
    return rng.uniform(0.01, 0.9, 12), rng.uniform(0.01, 0.9, 12)


def smooth(kernels, labels, p_changing):
    windows = np.array([0, 2, 2]), np.array([2, 2, 3])
    results = np.ones((3, 3)), np.zeros(12), np.zeros((12, 2))
    kernels.smooth(
        0, 3, BEGIN, END, *labels, LEVELS, START, JUMP, 0.1, p_changing, *windows, *results
    )
    return results


@pytest.mark.parametrize("p_changing", [0.0, 0.3, 1.0])
def test_smoothing_agrees_with_the_twin(labels, p_changing):
    share = np.full(3, p_changing)
    for one, other in zip(
        smooth(over_time, labels, share), smooth(reference, labels, share), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_likelihoods_agree_with_the_twin(labels):
    results = []
    for kernels in (over_time, reference):
        logs, constant = np.zeros((3, 2)), np.zeros((3, 3))
        kernels.likelihood(0, 3, BEGIN, END, *labels, LEVELS, START, JUMP, 0.1, logs, constant)
        results.append(np.hstack([logs, constant]))
    np.testing.assert_allclose(*results, rtol=1e-12, atol=1e-15)


def test_long_sequences_do_not_underflow():
    serious, irregular = np.full(4000, 1e-9), np.full(4000, 1e-7)
    logs, constant = np.zeros((1, 2)), np.zeros((1, 3))
    ends = np.array([0]), np.array([4000])
    model = LEVELS, START, JUMP, 1e-9
    over_time.likelihood(0, 1, *ends, serious, irregular, *model, logs, constant)
    of_level = np.log(START) + 4000 * np.log(irregular[0] + LEVELS * (serious - irregular)[0])
    np.testing.assert_allclose(logs[0], of_level[0], rtol=1e-6)  # by far the most probable
    np.testing.assert_allclose(constant[0], [1.0, 0.0, 0.0], atol=1e-12)


def test_labels_are_sorted_within_annotators_as_by_the_twin():
    rng = np.random.default_rng(1)
    key, begin, end = (
        rng.integers(0, 9, 50).astype(float),
        np.array([0, 20, 20]),
        np.array([20, 20, 50]),
    )
    start, results = rng.permutation(50), []
    for kernels in (over_time, reference):
        order = start.copy()
        kernels.sort_within(0, 2, begin, end, key, order)
        kernels.sort_within(2, 3, begin, end, key, order)
        results.append(order)
    np.testing.assert_array_equal(*results)
    assert (np.diff(key[results[0][:20]]) >= 0).all()


def all_paths(labels, hazard):
    """The joint probability of five labels and every sequence of levels."""
    serious, irregular = (values[:5] for values in labels)
    paths = np.array(list(itertools.product(range(3), repeat=5)))
    emissions = LEVELS[paths] * serious + (1 - LEVELS[paths]) * irregular
    stays = paths[:, 1:] == paths[:, :-1]
    moves = (1 - hazard) * stays + hazard * JUMP[paths[:, 1:]]
    return paths, START[paths[:, 0]] * emissions.prod(axis=1) * moves.prod(axis=1)


def test_the_twin_is_a_sum_over_all_sequences_of_levels(labels):
    paths, joint = all_paths(labels, 0.1)
    logs, posterior = np.zeros((1, 2)), np.zeros((1, 3))
    begin, end = np.array([0]), np.array([5])
    reference.likelihood(0, 1, begin, end, *labels, LEVELS, START, JUMP, 0.1, logs, posterior)
    np.testing.assert_allclose(logs[0, 1], np.log(joint.sum()))
    constant = [np.prod(level * labels[0][:5] + (1 - level) * labels[1][:5]) for level in LEVELS]
    np.testing.assert_allclose(logs[0, 0], np.log(START @ constant))
    np.testing.assert_allclose(posterior[0], START * constant / (START @ constant))
    by_window, p_change, without = np.zeros((1, 3)), np.zeros(5), np.zeros((5, 2))
    reference.smooth(
        0, 1, begin, end, *labels, LEVELS, START, JUMP, 0.1, np.ones(1), begin, begin + 1,
        by_window, p_change, without,
    )  # fmt: skip
    posterior = joint / joint.sum()
    changed = np.concatenate([np.zeros((len(paths), 1)), paths[:, 1:] != paths[:, :-1]], axis=1)
    np.testing.assert_allclose(p_change, posterior @ changed)
    expected = [(posterior * (paths == level).sum(axis=1)).sum() for level in range(3)]
    np.testing.assert_allclose(by_window[0], expected)


def test_a_label_is_left_out_of_its_own_reliability(labels):
    serious, irregular = (values.copy() for values in labels)
    before = smooth(over_time, (serious, irregular), np.full(3, 0.3))[2]
    serious[2], irregular[2] = 0.5, 0.5  # says nothing
    after = smooth(over_time, (serious, irregular), np.full(3, 0.3))[2]
    np.testing.assert_allclose(before[2, 0], after[2, 0])
    assert abs(before[3, 0] - after[3, 0]) > 1e-3
