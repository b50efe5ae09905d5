"""The measures, against values computed by hand and against scikit-learn."""

import subprocess
import sys
from math import sqrt

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.metrics import (
    accuracy,
    concordance,
    f1_binary,
    f1_macro,
    f1_micro,
    f1_weighted,
    hellinger,
    kendall_tau,
    log_likelihood,
    plcc,
    rmse,
    srocc,
)

OF_CLASSES = [accuracy, f1_macro, f1_micro, f1_weighted]
OF_ORDER = [plcc, srocc, kendall_tau, concordance]
PAIRED = [*OF_CLASSES, *OF_ORDER, rmse, hellinger]


SPAM = ["spam", "spam", "spam", "good", "good"]


@pytest.mark.parametrize(
    ("measure", "truth", "predicted", "expected"),
    [
        (accuracy, ["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"], 0.75),
        (accuracy, [1.5, 2.0, 2.5], [1.5, 2.5, 2.5], 2 / 3),
        (accuracy, [1, 2, 3], [1.0, 2.0, 2.0], 2 / 3),
        (accuracy, range(100), range(100), 1.0),
        # a: 2*3/(4+3) = 6/7, b: 0, and c, which is only predicted: 0; a is true 4 times, b once.
        (f1_macro, "aaaab", "aaacc", (6 / 7 + 0 + 0) / 3),
        (f1_weighted, "aaaab", "aaacc", (4 * 6 / 7) / 5),
        (f1_micro, "aaaab", "aaacc", 0.6),
        # Deviations -1.5, -.5, .5, 1.5 and -24, -17, 2, 39: 104 / sqrt(5 * 2390).
        (plcc, [1, 2, 3, 4], [1, 8, 27, 64], 104 / sqrt(5 * 2390)),
        (srocc, [1, 2, 3, 4], [1, 8, 27, 64], 1.0),
        (srocc, [1, 2, 3, 4], [-1, -8, -27, -64], -1.0),
        # Ranks 1.5, 1.5, 3 against 1, 2, 3.
        (srocc, [5, 5, 9], [1, 2, 3], 1.5 / sqrt(1.5 * 2)),
    ],
)
def test_measures_by_hand(measure, truth, predicted, expected):
    assert measure(list(truth), list(predicted)) == pytest.approx(expected)


def test_f1_binary_scores_the_positive_class():
    # spam: precision 1/2, recall 1/3; good: precision 1/3, recall 1/2.
    assert f1_binary(SPAM, ["spam", "good", "good", "spam", "good"], "spam") == pytest.approx(0.4)
    assert f1_binary(SPAM, ["spam"] * 5, "spam") == pytest.approx(0.75)
    assert f1_binary(SPAM, ["spam"] * 5, "good") == 0.0
    assert f1_binary([False, False], [False, False], True) == 0.0


@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_measures_equal_those_of_scikit_learn(n_classes):
    theirs = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(n_classes)
    for n in [1, 2, 7, 50, 1000, *rng.integers(1, 200, size=50)]:
        truth, predicted = rng.integers(n_classes, size=(2, n))
        assert accuracy(truth, predicted) == theirs.accuracy_score(truth, predicted)
        for average, measure in (
            ("macro", f1_macro),
            ("micro", f1_micro),
            ("weighted", f1_weighted),
        ):
            expected = theirs.f1_score(truth, predicted, average=average, zero_division=0)
            assert measure(truth, predicted) == pytest.approx(expected, rel=1e-14)
        for positive in range(n_classes):
            expected = theirs.f1_score(truth == positive, predicted == positive, zero_division=0)
            assert f1_binary(truth, predicted, positive) == pytest.approx(expected, rel=1e-14)
        values = rng.normal(size=(2, n))
        expected = theirs.root_mean_squared_error(*values)
        assert rmse(*values) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("correlation", [plcc, srocc])
def test_correlation_with_a_constant_is_nan(correlation):
    assert np.isnan(correlation([3, 3, 3], [1, 2, 3]))
    assert np.isnan(correlation([1, 2, 3], [0, 0, 0]))
    assert np.isnan(correlation([1], [2]))


def test_plcc_treats_rounding_noise_as_a_constant():
    assert np.isnan(plcc([0.1 + 0.2, 0.3, 0.3], [1, 2, 3]))
    for noise in np.geomspace(1e-16, 1e-6):  # SciPy would warn for some, and warnings are errors
        assert np.isnan(plcc([1, 2], [1.5, 1.5 + noise])) or noise > 3e-12


def test_rmse_of_vectors_and_of_tables():
    assert rmse([1, 2, 3], [1, 4, 2]) == pytest.approx(sqrt(5 / 3))
    # Over all four numbers, not the mean of the columns' errors.
    assert rmse([[0, 0], [0, 0]], [[1, 0], [1, 2]]) == pytest.approx(sqrt(6 / 4))


def test_hellinger_has_the_square_and_one_distance_per_row():
    p = [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]
    q = [[0.25, 0.75], [0.0, 1.0], [1.0, 0.0]]
    # For the last row, H^2 = 1 - sum sqrt(p q) = 1 - sqrt(1/2).
    expected = [0.0, 1.0, sqrt(1 - sqrt(0.5))]
    assert hellinger(p, q) == pytest.approx(expected)
    assert hellinger(q, p).mean() == pytest.approx(np.mean(expected))
    assert hellinger([0.5, 0.5], [1.0, 0.0]) == pytest.approx(expected[2:])


def test_concordance_counts_pairs_of_different_grades():
    # Of the pairs 1-2, 1-3 (twice), 2-3 (twice): four in order, the last with equal scores.
    assert concordance([1, 2, 3, 3], [0.1, 0.4, 0.4, 0.9]) == pytest.approx(4.5 / 5)
    assert concordance([1, 2], [2.0, 1.0]) == 0.0
    assert concordance([1, 2], [1.0, 1.0]) == 0.5
    assert np.isnan(concordance([2, 2], [1.0, 2.0]))


def test_concordance_and_tau_agree_with_counting():
    rng = np.random.default_rng(0)
    grade, score = rng.integers(0, 4, 60), np.round(rng.normal(size=60), 1)
    first, second = np.triu_indices(60, 1)
    of_grade = np.sign(grade[first] - grade[second])
    of_score = np.sign(score[first] - score[second])
    differ = of_grade != 0
    assert concordance(grade, score) == pytest.approx(
        ((of_grade * of_score)[differ].mean() + 1) / 2, abs=1e-12
    )
    expected = (of_grade * of_score).sum() / sqrt(differ.sum() * (of_score != 0).sum())
    assert kendall_tau(grade, score) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(kendall_tau([1, 1], [1, 2]))


def test_log_likelihood_is_the_mean_log_probability_of_what_was_observed():
    table = [[0.5, 0.25, 0.25], [0.1, 0.9, 0.0]]
    assert log_likelihood(table, [0, 1]) == pytest.approx((np.log(0.5) + np.log(0.9)) / 2)
    assert log_likelihood(table, [0, 2]) == -np.inf


@pytest.mark.parametrize(
    ("observed", "message"),
    [([0], "one row of probabilities"), ([0, 3], "0 to 2"), ([0.0, 1.0], "whole numbers")],
)
def test_log_likelihood_refuses_what_does_not_fit(observed, message):
    with pytest.raises(InputError, match=message):
        log_likelihood([[0.5, 0.25, 0.25], [0.1, 0.9, 0.0]], observed)


def test_hellinger_needs_distributions():
    good = [[0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(InputError, match="row 1 of q sums to 100"):
        hellinger(good, [[0.5, 0.5], [40, 60]])
    with pytest.raises(InputError, match=r"p has -0\.5: a probability is never negative"):
        hellinger([[0.5, 0.5], [-0.5, 1.5]], good)
    with pytest.raises(InputError, match="3 dimensions: give items x categories"):
        hellinger([good], [good])


@pytest.mark.parametrize("metric", [*PAIRED, lambda t, p: f1_binary(t, p, 1)])
def test_every_measure_refuses_empty_input_and_unequal_lengths(metric):
    with pytest.raises(InputError, match=r"is empty: give at least one value"):
        metric([], [])
    with pytest.raises(InputError, match=r"has shape \(3,\) but \w+ has shape \(2,\)"):
        metric([1, 2, 3], [1, 2])
    with pytest.raises(InputError, match="has nan or infinity"):
        metric([1.0, np.nan], [1.0, 2.0])


@pytest.mark.parametrize("metric", [*OF_CLASSES, *OF_ORDER])
def test_measures_of_one_value_per_item_refuse_tables(metric):
    with pytest.raises(InputError, match="have 2 dimensions: give one value per item"):
        metric([[1, 2]], [[1, 2]])


def test_types_that_cannot_be_compared_are_refused():
    with pytest.raises(InputError, match="mix of types: give both as text or both as numbers"):
        accuracy(["1", "2"], [1, 2])
    with pytest.raises(InputError, match="this measure needs numbers"):
        rmse(["1", "2"], [1, 2])


def test_import_stays_light():
    heavy = "{'sklearn', 'pandas', 'scipy.stats'}"
    code = f"import sys, annotruth.metrics, annotruth.simulate; print({heavy} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert loaded.stdout.strip() == b"set()"
