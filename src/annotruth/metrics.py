"""Measures of how close an estimate is to the truth, as reported in the paper.

Every function takes arrays and returns floats. For all but `rmse`, `hellinger` and
`calibration_error`, higher is better. None of them warns: a measure without a value, such as the correlation with a constant,
is nan.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotruth.errors import InputError
from annotruth.models.distribution import Z_95

__all__ = [
    "accuracy",
    "accuracy_interval",
    "calibration_error",
    "concordance",
    "f1_binary",
    "f1_macro",
    "f1_micro",
    "f1_weighted",
    "hellinger",
    "kendall_tau",
    "log_likelihood",
    "plcc",
    "rmse",
    "srocc",
]

# A spread below this, relative to the largest value, is rounding. SciPy warns when the deviations
# from the mean are below 1.8e-12, and these are never less than the spread over the root of two.
_RELATIVE_SPREAD = 3e-12

# Generous enough for single precision, strict enough to catch counts and percentages.
_SUM_TOLERANCE = 1e-4


def accuracy(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the share of items whose class is right: ``sum_e [predicted_e = truth_e] / E``.

    Parameters
    ----------
    truth, predicted
        One class per item, as numbers or as text; both in the same order of items.
    """
    true_codes, predicted_codes = _class_codes(truth, predicted)
    return float(np.mean(true_codes == predicted_codes))


def accuracy_interval(n_right: ArrayLike, n: ArrayLike) -> tuple[Any, Any]:
    """Return the ends of Wilson's 95% interval of a share, such as of right labels.

    Parameters
    ----------
    n_right, n
        How many are right, and of how many; numbers, or arrays of them.
    """
    total = np.asarray(n, dtype=np.float64)
    share, z2 = np.asarray(n_right) / total, Z_95**2
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = Z_95 * np.sqrt(share * (1 - share) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def calibration_error(probability: ArrayLike, right: ArrayLike, n_bins: int = 10) -> float:
    """Return the expected calibration error: ``sum_b n_b |mean p_b - share right_b| / n``.

    Parameters
    ----------
    probability, right
        The probability of each predicted class, and whether the class is right.
    n_bins
        How many bins of equal width the probabilities are put into.
    """
    p, is_right = _numbers(probability, right, names=("probability", "right"))
    place = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)
    return float(np.abs(np.bincount(place, p - is_right)).sum() / p.size)


def f1_binary(truth: ArrayLike, predicted: ArrayLike, positive: str | float | bool) -> float:
    """Return the F1 score of one class: ``2 precision recall / (precision + recall)``.

    Parameters
    ----------
    truth, predicted
        One class per item (or per annotator, when spammers are to be detected).
    positive
        The class to be detected; every other class is negative. Where it is neither in `truth`
        nor in `predicted`, the score is 0.
    """
    true_values, predicted_values = _pair(truth, predicted)
    _check_one_dimensional(true_values)
    is_true, is_predicted = true_values == positive, predicted_values == positive
    return float(
        _f1(
            np.count_nonzero(is_true & is_predicted),
            np.count_nonzero(is_true),
            np.count_nonzero(is_predicted),
        )
    )


def f1_macro(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the unweighted mean of the F1 score over the classes in `truth` or `predicted`.

    A class that is never predicted, or never true, scores 0.
    """
    scores, _ = _f1_by_class(truth, predicted)
    return float(scores.mean())


def f1_weighted(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the mean of the F1 score over classes, weighted by how often each is true."""
    scores, n_true = _f1_by_class(truth, predicted)
    return float(np.average(scores, weights=n_true))


def f1_micro(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the F1 score over all classes together.

    With one class per item every error is one false positive and one false negative, so this
    equals `accuracy`.
    """
    return accuracy(truth, predicted)


def plcc(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the Pearson linear correlation coefficient; nan where either side is constant.

    ``PLCC = sum_e (v_e - mean v)(w_e - mean w) / ((E - 1) sqrt(Var(v) Var(w)))``
    with v the truth and w the prediction.
    """
    return _correlation("pearsonr", truth, predicted, _RELATIVE_SPREAD)


def srocc(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return Spearman's rank-order correlation coefficient; nan where either side is constant.

    `plcc` of the ranks, where equal values share the mean of their ranks.
    """
    return _correlation("spearmanr", truth, predicted)


def kendall_tau(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return Kendall's tau-b, the rank correlation of two scores; nan where either is constant.

    ``tau_b = (C - D) / sqrt((P - P_v)(P - P_w))`` with C and D the numbers of pairs of items in
    the same and in opposite order, of P pairs P_v with equal truth and P_w with equal prediction.
    """
    return _correlation("kendalltau", truth, predicted)


def _correlation(
    name: str, truth: ArrayLike, predicted: ArrayLike, relative_spread: float = 0.0
) -> float:
    """Return a correlation of `scipy.stats`; nan where either side is constant."""
    from scipy import stats

    true_values, predicted_values = _numbers(truth, predicted)
    _check_one_dimensional(true_values)
    if any(_is_constant(each, relative_spread) for each in (true_values, predicted_values)):
        return float("nan")
    return float(getattr(stats, name)(true_values, predicted_values).statistic)


def concordance(grade: ArrayLike, score: ArrayLike) -> float:
    """Return the share of pairs of items of different grades whose scores are in the same order.

    Pairs of equal grades are left out; equal scores count as half. Nan where all grades are equal.
    """
    grades, scores = _numbers(grade, score, ("grade", "score"))
    _check_one_dimensional(grades)
    if _is_constant(grades):
        return float("nan")
    if _is_constant(scores):
        return 0.5
    # Tau-b has C - D, which is whole; C + D + the equal scores are the pairs of different grades.
    n_by_grade, n_by_score = _n_different(grades), _n_different(scores)
    balance = np.rint(kendall_tau(grades, scores) * np.sqrt(float(n_by_grade) * n_by_score))
    return float((n_by_grade + balance) / (2 * n_by_grade))


def log_likelihood(probability: ArrayLike, observed: ArrayLike) -> float:
    """Return the mean of the logarithms of the probabilities of what was observed.

    Parameters
    ----------
    probability
        One row per observation, one column per outcome, such as left, right and tie.
    observed
        The code of the outcome of each observation, from 0.
    """
    table, codes = np.asarray(probability, dtype=np.float64), np.asarray(observed)
    if table.ndim != 2 or codes.shape != table.shape[:1] or len(codes) == 0:
        raise InputError(
            f"probability has shape {table.shape} and observed {codes.shape}: give one row of "
            "probabilities and one code per observation"
        )
    if codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= table.shape[1]:
        raise InputError(f"observed must hold whole numbers from 0 to {table.shape[1] - 1}")
    with np.errstate(divide="ignore"):  # what was impossible has a log-likelihood of -inf
        return float(np.log(table[np.arange(len(codes)), codes]).mean())


def rmse(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the root mean square error, ``sqrt(sum_e (v_e - w_e)^2 / E)``; lower is better.

    For tables, such as items x categories, the mean runs over all their entries.
    """
    true_values, predicted_values = _numbers(truth, predicted)
    return float(np.sqrt(np.mean((true_values - predicted_values).ravel() ** 2)))


def hellinger(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Return the Hellinger distance between each row of `p` and of `q`; lower is better.

    ``H(p_e, q_e) = sqrt(sum_n (sqrt p_en - sqrt q_en)^2) / sqrt 2``

    0 where the two are equal, 1 where they share no category. The paper prints the formula
    without the square and lists it among the measures where higher is better; both are
    misprints.

    Parameters
    ----------
    p, q
        Distributions, items x categories, or a single one. Every row sums to 1.

    Returns
    -------
    numpy.ndarray
        One distance per row. The paper reports their mean, ``hellinger(p, q).mean()``.
    """
    left, right = _numbers(p, q, names=("p", "q"))
    if left.ndim > 2:
        raise InputError(f"p and q have {left.ndim} dimensions: give items x categories")
    left, right = np.atleast_2d(left), np.atleast_2d(right)
    for name, rows in (("p", left), ("q", right)):
        if rows.min() < 0:
            raise InputError(f"{name} has {rows.min():g}: a probability is never negative")
        sums = rows.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > _SUM_TOLERANCE:
            raise InputError(
                f"row {worst} of {name} sums to {sums[worst]:g}: divide each row by its sum"
            )
    distance: NDArray[np.float64] = np.linalg.norm(np.sqrt(left) - np.sqrt(right), axis=1)
    distance /= np.sqrt(2)
    return distance


def _f1_by_class(
    truth: ArrayLike, predicted: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the F1 score of every class in either array, and how often each is true."""
    true_codes, predicted_codes = _class_codes(truth, predicted)
    n_classes = int(max(true_codes.max(), predicted_codes.max())) + 1
    n_true = np.bincount(true_codes, minlength=n_classes)
    n_predicted = np.bincount(predicted_codes, minlength=n_classes)
    n_correct = np.bincount(true_codes[true_codes == predicted_codes], minlength=n_classes)
    return _f1(n_correct, n_true, n_predicted), n_true


def _f1(n_correct: ArrayLike, n_true: ArrayLike, n_predicted: ArrayLike) -> NDArray[np.float64]:
    """Return ``2 correct / (true + predicted)``, and 0 where a class is in neither."""
    either = np.add(n_true, n_predicted, dtype=np.float64)
    return np.divide(
        np.multiply(2.0, n_correct), either, out=np.zeros_like(either), where=either > 0
    )


def _pair(
    truth: ArrayLike, predicted: ArrayLike, names: Sequence[str] = ("truth", "predicted")
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both sides as arrays of one shape, not empty, without missing values."""
    first, second = np.asarray(truth), np.asarray(predicted)
    for name, values in zip(names, (first, second), strict=True):
        if values.size == 0:
            raise InputError(f"{name} is empty: give at least one value")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(f"{name} has nan or infinity: leave out entries without a value")
    if first.shape != second.shape:
        raise InputError(
            f"{names[0]} has shape {first.shape} but {names[1]} has shape {second.shape}: "
            "give one value of each for every item"
        )
    return first, second


def _check_one_dimensional(values: NDArray[Any]) -> None:
    if values.ndim != 1:
        raise InputError(
            f"truth and predicted have {values.ndim} dimensions: give one value per item"
        )


def _numbers(
    truth: ArrayLike, predicted: ArrayLike, names: Sequence[str] = ("truth", "predicted")
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = _pair(truth, predicted, names)
    for name, values in zip(names, (first, second), strict=True):
        if values.dtype.kind not in "biuf":
            raise InputError(f"{name} is of type {values.dtype}: this measure needs numbers")
    return first.astype(np.float64), second.astype(np.float64)


def _class_codes(
    truth: ArrayLike, predicted: ArrayLike
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return both sides as codes of one common list of classes."""
    first, second = _pair(truth, predicted)
    _check_one_dimensional(first)
    if (first.dtype.kind in "biuf") != (second.dtype.kind in "biuf"):
        # NumPy would turn the numbers into text and compare "1.0" with "1"; objects raise.
        first, second = first.astype(object), second.astype(object)
    try:
        _, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    except TypeError:
        raise InputError(
            "the classes in truth and predicted are a mix of types: give both as text or both "
            "as numbers"
        ) from None
    return codes[: first.size], codes[first.size :]


def _n_different(values: NDArray[np.float64]) -> int:
    _, counts = np.unique(values, return_counts=True)
    n = len(values)
    return int(n * (n - 1) // 2 - np.sum(counts * (counts - 1) // 2))


def _is_constant(values: NDArray[np.float64], relative_spread: float = 0.0) -> bool:
    return bool(np.ptp(values) <= relative_spread * np.abs(values).max())
