"""How close an estimate comes to the truth: the measures the paper reports.

Every function takes arrays and returns floats. For all but `rmse` and `hellinger`, higher is
better. None of them warns: what has no value, such as the correlation with a constant, is nan.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotruth.errors import InputError

__all__ = ["accuracy", "f1_binary", "f1_macro", "hellinger", "plcc", "rmse", "srocc"]

# Below this spread, relative to the largest value, a vector varies by rounding alone. SciPy
# warns below 1.8e-12, of deviations that are never less than the spread over the root of two.
_ROUNDING = 3e-12

# Generous enough for single precision, strict enough to catch counts and percentages.
_SUM_TOLERANCE = 1e-4


def accuracy(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Share of items whose class is right: ``C_o = sum_e [predicted_e = truth_e] / E``.

    Parameters
    ----------
    truth, predicted
        One class an item, as numbers or as text; both in the same order of items.
    """
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(*_class_codes(truth, predicted)))


def f1_binary(truth: ArrayLike, predicted: ArrayLike, positive: str | float | bool) -> float:
    """Harmonic mean of precision and recall: ``F1 = 2 precision recall / (precision + recall)``.

    Parameters
    ----------
    truth, predicted
        One class an item (or an annotator, when spammers are to be found).
    positive
        The class to be found; every other class counts as negative. Where it is neither in
        `truth` nor in `predicted`, the score is 0.
    """
    from sklearn.metrics import f1_score

    expected, found = _pair(truth, predicted)
    _one_dimensional(expected)
    return float(f1_score(expected == positive, found == positive, zero_division=0))


def f1_macro(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Plain mean of the F1 score of every class found in `truth` or in `predicted`.

    A class that is never predicted, or never true, scores 0.
    """
    from sklearn.metrics import f1_score

    return float(f1_score(*_class_codes(truth, predicted), average="macro", zero_division=0))


def plcc(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Pearson linear correlation coefficient; nan where either side is constant.

    ``PLCC = sum_e (v_e - mean v)(w_e - mean w) / ((E - 1) sqrt(Var(v) Var(w)))``
    with v the truth and w the prediction.
    """
    from scipy.stats import pearsonr

    expected, found = _numbers(truth, predicted)
    _one_dimensional(expected)
    if _is_constant(expected, _ROUNDING) or _is_constant(found, _ROUNDING):
        return float("nan")
    return float(pearsonr(expected, found).statistic)


def srocc(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Spearman rank-order correlation coefficient; nan where either side is constant.

    `plcc` of the ranks, where equal values share the mean of their ranks.
    """
    from scipy.stats import spearmanr

    expected, found = _numbers(truth, predicted)
    _one_dimensional(expected)
    if _is_constant(expected) or _is_constant(found):
        return float("nan")
    return float(spearmanr(expected, found).statistic)


def rmse(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Root mean square error: ``RMSE = sqrt(sum_e (v_e - w_e)^2 / E)``; lower is better.

    Tables, such as items x categories, are taken too: the mean then runs over all their numbers.
    """
    from sklearn.metrics import root_mean_squared_error

    expected, found = _numbers(truth, predicted)
    return float(root_mean_squared_error(expected.ravel(), found.ravel()))


def hellinger(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Hellinger distance between the rows of `p` and of `q`; lower is better.

    ``H(p_e, q_e) = sqrt(sum_n (sqrt p_en - sqrt q_en)^2) / sqrt 2``

    From 0, where the two are equal, to 1, where they share no category. The paper prints the
    formula without the square and lists it among the measures where higher is better; both are
    slips.

    Parameters
    ----------
    p, q
        Distributions, items x categories, or a single one. Every row sums to 1.

    Returns
    -------
    numpy.ndarray
        One distance a row. The figure the paper reports is their mean,
        ``hellinger(p, q).mean()``.
    """
    left, right = _numbers(p, q, names=("p", "q"))
    if left.ndim > 2:
        raise InputError(f"p and q have {left.ndim} dimensions: give items x categories")
    left, right = np.atleast_2d(left), np.atleast_2d(right)
    for name, rows in (("p", left), ("q", right)):
        if rows.min() < 0:
            raise InputError(f"{name} holds {rows.min():g}: a probability is never negative")
        sums = rows.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > _SUM_TOLERANCE:
            raise InputError(
                f"row {worst} of {name} sums to {sums[worst]:g}: divide each row by its sum"
            )
    distance: NDArray[np.float64] = np.linalg.norm(np.sqrt(left) - np.sqrt(right), axis=1)
    distance /= np.sqrt(2)
    return distance


def _pair(
    truth: ArrayLike, predicted: ArrayLike, names: Sequence[str] = ("truth", "predicted")
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both sides as arrays of one shape, not empty, with nothing missing."""
    first, second = np.asarray(truth), np.asarray(predicted)
    for name, values in zip(names, (first, second), strict=True):
        if values.size == 0:
            raise InputError(f"{name} is empty: give at least one value")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(f"{name} holds nan or infinity: leave out what has no value")
    if first.shape != second.shape:
        raise InputError(
            f"{names[0]} has shape {first.shape} but {names[1]} has shape {second.shape}: "
            "give one value of each for every item"
        )
    return first, second


def _one_dimensional(values: NDArray[Any]) -> None:
    if values.ndim != 1:
        raise InputError(f"truth and predicted have {values.ndim} dimensions: give one value a row")


def _numbers(
    truth: ArrayLike, predicted: ArrayLike, names: Sequence[str] = ("truth", "predicted")
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides as floats."""
    first, second = _pair(truth, predicted, names)
    for name, values in zip(names, (first, second), strict=True):
        if values.dtype.kind not in "biuf":
            raise InputError(f"{name} holds {values.dtype}: this measure needs numbers")
    return first.astype(np.float64), second.astype(np.float64)


def _class_codes(
    truth: ArrayLike, predicted: ArrayLike
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Both sides as codes of one common list of classes.

    scikit-learn refuses classes such as 2.5, which half-star scores have; codes it takes.
    """
    first, second = _pair(truth, predicted)
    _one_dimensional(first)
    if (first.dtype.kind in "biuf") != (second.dtype.kind in "biuf"):
        # NumPy would turn the numbers into text and compare "1.0" with "1"; objects refuse.
        first, second = first.astype(object), second.astype(object)
    try:
        _, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    except TypeError:
        raise InputError(
            "the classes in truth and predicted are a mix of types: give both as text or both "
            "as numbers"
        ) from None
    return codes[: first.size], codes[first.size :]


def _is_constant(values: NDArray[np.float64], spread: float = 0.0) -> bool:
    return bool(np.ptp(values) <= spread * np.abs(values).max())
