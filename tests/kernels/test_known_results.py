"""Kernels on labels for which the result is known, or at the limits of floating point numbers."""

import numpy as np
import pytest
from tests.kernels.twins import Kernels, Twins, assert_same, one_item

from annotruth.kernels.shared import NOT_SAMPLED, propose_variances
from annotruth.observations import Labels, Scale

bwa, held_out, item_states, ordinal_binary, robust_gpm = map(
    Kernels, ("bwa", "held_out", "item_states", "ordinal_binary", "robust_gpm")
)


def test_equal_weights_without_a_prior_give_the_observed_shares(make_labels):
    rng = np.random.default_rng(0)
    labels = make_labels(rng, n_items=40, n_annotators=9, n_categories=4)
    theta = np.zeros((40, 4))
    bwa.distribution(labels.block(), 0, 40, theta, np.ones((9, 4)), np.zeros(4), 0.0, np.zeros(9))
    for e in range(40):
        given = labels.category_of_label()[labels.item_of_label() == e]
        np.testing.assert_allclose(theta[e], np.bincount(given, minlength=4) / len(given))


def test_expected_agreements_are_those_of_independent_labels():
    labels = Labels.of([("a", "ann", 0), ("a", "bob", 1)])
    confusion = np.array([[[0.9, 0.2], [0.1, 0.8]], [[0.6, 0.3], [0.4, 0.7]]])
    prior, truth = np.array([0.5, 0.5]), np.ones((2, 2))
    sums = [np.zeros((2, 2)) for _ in range(3)]
    robust_gpm.count_agreements(labels.block(), 0, 1, prior, truth, confusion, np.arange(2), *sums)
    same, expected, common = (one[0, 1] for one in sums)
    weights = np.array([0.9 * 0.4, 0.2 * 0.7])  # P(0 by ann, 1 by bob | class)
    p_equal = np.array([0.9 * 0.6 + 0.1 * 0.4, 0.2 * 0.3 + 0.8 * 0.7])
    assert (same, common) == (0.0, 1.0)
    assert expected == pytest.approx(weights @ p_equal / weights.sum())


@pytest.mark.parametrize("step", [robust_gpm.step, Twins("robust_gpm").step])
def test_thousands_of_labels_on_an_item_do_not_underflow(step):
    n = 2000
    labels = one_item(range(n), np.repeat([0, 1], n // 2), 2)
    confusion = np.empty((n, 2, 2))
    confusion[:, 0], confusion[:, 1] = [0.55, 0.05], [0.05, 0.55]
    sums = np.zeros((n, 2, 2)), np.zeros(2), np.zeros(1)
    step(labels.block(), 0, 1, np.array([0.8, 0.2]), np.eye(2), confusion, *sums)
    np.testing.assert_allclose(sums[1], [0.8, 0.2], rtol=1e-9)
    assert sums[2][0] == pytest.approx(1000 * np.log(0.55 * 0.05), rel=1e-12)


def test_the_only_label_of_an_item_is_evaluated_by_the_prior():
    labels = one_item([0], [1], 2)
    prior, confusion = np.array([0.3, 0.7]), np.array([[[0.5, 0.5], [0.01, 0.9]]])
    table = np.array([[[0.2, 0.4], [0.6, 0.8]], [[0.1, 0.3], [0.5, 0.7]]])
    log_likelihood = np.zeros((1, 2))
    inputs = (prior, np.eye(2), confusion, table, table, np.array([0]))
    robust_gpm.leave_one_out(labels.block(), 0, 1, *inputs, log_likelihood)
    np.testing.assert_allclose(log_likelihood[0], np.log(prior @ table[1]), rtol=1e-13)


def test_folds_hold_out_the_given_share(make_labels):
    labels = make_labels(np.random.default_rng(8), n_items=2000, n_annotators=50, n_categories=3)
    rng = np.random.default_rng(6)
    hashes = [rng.integers(2**63, size=n).astype(np.uint64) for n in (50, 3)]
    fold, items = np.zeros(labels.n_labels), np.zeros(2000)
    held_out.hash_items(labels.block(), 0, 2000, items, *hashes)
    held_out.assign_folds(labels.block(), 0, 2000, fold, items, *hashes, 0.2, 2, 0.5)
    shares = [(fold == value).mean() for value in (NOT_SAMPLED, 0.0, 1.0)]
    np.testing.assert_allclose(shares, [0.5, 0.1, 0.1], atol=0.02)


def test_ratios_of_thousands_of_labels_on_an_item_do_not_overflow():
    n = 3000
    labels = one_item(range(n), np.arange(n) % 2, 2)
    results = []
    for kernels in (held_out, Twins("held_out")):
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
    labels = one_item(range(n), np.zeros(n, dtype=int), 2)
    labels.known[0] = 1
    counts = np.zeros((n, 3, 2))
    pseudo = np.tile(np.array([[0.99, 0.01], [0.01, 0.99], [1.0, 1.0]]), (n, 1, 1))
    results = []
    for kernels in (item_states, Twins("item_states")):
        posterior = np.zeros((1, 2))
        kernels.posterior(
            labels.block(), 0, 1, posterior, np.full(2, 0.5), np.eye(2), counts, pseudo, 0.0
        )
        results.append(posterior)
    assert_same([one] for one in results)
    assert results[0].tolist() == [[0.0, 1.0]]


def test_a_label_that_nobody_gave_is_never_the_most_probable(make_labels):
    labels = make_labels(
        np.random.default_rng(0), n_items=40, n_annotators=11, n_categories=2, density=0.3
    )
    prior, truth = np.array([0.999, 0.001]), np.eye(2)
    counts = np.zeros((11, 3, 2))
    pseudo = np.full((11, 3, 2), [[1.0, 1.0]])
    pseudo[:, 2] = 2.0
    arrays = [np.zeros((40, 2)), np.zeros((40, 2)), np.zeros(labels.n_labels)]
    serious = np.ones((11, 2, 2))
    tables = prior, truth, counts, pseudo, 0.0
    item_states.summarize(labels.block(), 0, 40, *arrays, *tables, np.eye(2), np.eye(2), serious)
    only_second = np.diff(labels.item_ptr) == 1
    only_second &= labels.cell_category[labels.item_ptr[:-1]] == 1
    assert only_second.any()
    assert (arrays[0][only_second].argmax(axis=1) == 1).all()
    np.testing.assert_allclose(arrays[0][only_second], 0.5, atol=1e-8)


@pytest.mark.parametrize("kernels", [ordinal_binary, Twins("ordinal_binary")])
def test_impossible_labels_give_no_nan(kernels):
    labels = Labels.from_codes(
        np.array([0, 0, 1]),
        np.array([0, 1, 0]),
        np.array([1, 1, 0]),
        items=["a", "b"],
        annotators=["x", "y"],
        scale=Scale.ordinal([1, 2]),
    )
    # Labels above a threshold are impossible if the truth is below it, and the reverse.
    certain, never = np.zeros((2, 1)), np.full((2, 1), -np.inf)
    half = np.log([0.5])
    theta, log_likelihood = np.zeros((2, 2)), np.zeros(1)
    kernels.distribution(
        *(labels.block(), 0, 2, theta),
        *(certain, never, never, certain, half, half),
        log_likelihood,
    )
    np.testing.assert_array_equal(theta, [[0, 1], [1, 0]])
    np.testing.assert_allclose(log_likelihood, 2 * half)


@pytest.mark.parametrize("kernels", [ordinal_binary, Twins("ordinal_binary")])
@pytest.mark.parametrize(
    ("above", "theta"),
    [
        ([0.9, 0.6, 0.1], [0.1, 0.3, 0.5, 0.1]),
        ([0.4, 0.8, 0.1], [0.4, 0.0, 0.5, 0.1]),  # the mean of 0.4 and 0.8 is 0.6
        ([0.3, 0.2, 0.7], [0.6, 0.0, 0.0, 0.4]),  # the mean of all three is 0.4
        ([0.8, 0.2, 0.6], [0.2, 0.4, 0.0, 0.4]),
    ],
)
def test_increasing_thresholds_are_replaced_by_their_mean(kernels, above, theta):
    labels = one_item([0], [0], 4)
    # Labels without information leave mu at the prevalence.
    probabilities = np.full((4, 1, 3), np.log(0.5))
    prevalence = np.array(above)
    result = np.zeros((1, 4))
    kernels.distribution(
        *(labels.block(), 0, 1, result),
        *(*probabilities, np.log(prevalence), np.log1p(-prevalence)),
        np.zeros(3),
    )
    np.testing.assert_allclose(result[0], theta, atol=1e-15)


def test_the_safe_variance_never_decreases_the_likelihood():
    rng = np.random.default_rng(4)
    gains = []
    for _ in range(3000):
        n = int(rng.integers(1, 12))
        x, floor = 10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-5, 0)
        x = max(x, floor)
        other = 10 ** rng.uniform(-5, 2, n) * (rng.random(n) < 0.7)
        r = rng.normal(size=n) * 10 ** rng.uniform(-3, 2)
        w = 1 / (x + other)
        safe, scoring = propose_variances(x, n, w.sum(), (w**2).sum(), ((w * r) ** 2).sum(), floor)

        def value(x, other=other, r=r):
            return -0.5 * (np.log(x + other) + r**2 / (x + other)).sum()

        assert min(safe, scoring) >= floor
        assert value(safe) >= value(x) - 1e-12 * (1 + abs(value(x)))
        gains.append(value(scoring) - value(safe))
    # Neither is always better: both are needed.
    assert np.mean(np.array(gains) > 0.1) > 0.1
    assert np.mean(np.array(gains) < -0.1) > 0.01


def test_scoring_is_exact_if_the_rest_of_the_variance_is_zero():
    r = np.array([0.3, -1.2, 0.8, 2.0])
    x = 0.7
    _, scoring = propose_variances(x, 4, 4 / x, 4 / x**2, (r**2).sum() / x**2, 0.0)
    assert scoring == pytest.approx((r**2).mean(), rel=1e-14)
