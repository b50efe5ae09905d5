"""Predictions per row of a table of labels, with the interface of scikit-learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.options import OptionsBase
from annotruth.models.registry import Capabilities
from annotruth.models.result import Fit
from annotruth.observations import DuplicatePolicy, Labels
from annotruth.observations.encode import match_ids

if TYPE_CHECKING:
    from sklearn.utils import Tags

FLOOR = 0.01
"""Weight of the uniform distribution in the prediction of a label, which bounds the loss of one label."""

_TWO_LISTS = "predict_proba expects as many item codes as annotator codes, in two lists"


@dataclass(kw_only=True)
class RowPredictor(OptionsBase, ABC):
    """What a fitted model predicts, with the interface of scikit-learn; base of `Estimator`.

    A sample is one label: a row of item, annotator and label. The prediction of a row is that of its
    item, so that rows of one item have the same. Items of the fit have the label of the fit. Other items
    are fitted together with the labels of the fit, as `Estimator.partial_fit` does, on a copy. Models of
    scores, such as `MeanScore`, predict scores, and are regressors.
    """

    capabilities: ClassVar[Capabilities] = Capabilities()
    """What the model can do beyond fitting labels in memory."""

    @abstractmethod
    def partial_fit(self, data: Any, *, duplicates: DuplicatePolicy = "refuse") -> Self:
        """Add labels to those of the last fit, and fit all of them."""

    def predict_proba(self, data: Any, annotator: ArrayLike | None = None) -> Floats:
        """Return the probability of each category for items, or for labels by annotators.

        Parameters
        ----------
        data
            A table with one row per label, as for `predict`: each row of the result is the distribution
            of the row's item, in the order of ``classes_``. With ``annotator``, codes of items.
        annotator
            Codes of annotators, one per item: each row of the result then has the probability of each
            category, in the order of the scale, if the annotator labelled the item. Codes are indices
            into ``result_.data.items`` and ``result_.data.annotators``.

        Returns
        -------
        ndarray
            One row per row or pair, one column per category; rows sum to 1. To measure how well a model
            predicts, use labels that it was not fitted to, as `annotruth.held_out` does.
        """
        if annotator is None:
            return self._predict_items(data)
        labels = self._local_result().data
        items = _checked_codes(data, labels.n_items, "item")
        annotators = _checked_codes(annotator, labels.n_annotators, "annotator")
        if items.shape != annotators.shape:
            raise InputError(_TWO_LISTS)
        if not len(items):
            return np.empty((0, labels.n_categories))
        return self._predict_proba(items, annotators)

    @abstractmethod
    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        """Return the probability of each category, from checked codes."""

    @abstractmethod
    def _local_result(self) -> Fit:
        """Return the fit; raise if there is none, or if it is on other machines."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The categories, sorted, in the order of the columns of `predict_proba`."""
        values: NDArray[Any] = np.sort(_categories(self._local_result()))
        return values

    @property
    def n_features_in_(self) -> int:
        """The number of columns of a table of labels: item, annotator and label."""
        _ = self._local_result()
        return 3

    def predict(self, data: Any) -> NDArray[Any]:
        """Return the label of the item of each row; of models of scores, the score.

        Parameters
        ----------
        data
            A table with one row per label, as for ``fit``: a frame or a list of (item, annotator, label).
        """
        fit, item = self._items_of(data)
        if fit.distribution is None:
            scores: Floats = np.asarray(fit.expectation, dtype=np.float64)[item]
            return scores
        labels: NDArray[Any] = _categories(fit)[fit.distribution.mode()[item]]
        return labels

    def _predict_items(self, data: Any) -> Floats:
        """Return the distribution of the item of each row, in the order of `classes_`."""
        fit, item = self._items_of(data)
        order = np.argsort(_categories(fit), kind="stable")
        rows: Floats = fit.distribution_of().rows(item, fit.data.n_categories)[:, order]
        return rows

    def score(self, data: Any, y: ArrayLike | None = None, sample_weight: Any = None) -> float:
        """Return how well the model does on rows of labels; higher is better.

        With the truth ``y`` of the item of each row: the accuracy of `predict`, or the R² of scores.
        Without it: the mean log-probability of the labels, as in `annotruth.held_out`, which needs no
        truth. Labels of items or annotators that are not in the fit then count as if by chance.

        Parameters
        ----------
        data
            A table with one row per label, as for ``fit``.
        y
            The truth of the item of each row.
        sample_weight
            The weight of each row.
        """
        if y is None:
            return float(np.average(self._log_probabilities(data), weights=sample_weight))
        truth, predicted = np.asarray(y), self.predict(data)
        if truth.shape != predicted.shape:
            raise InputError(f"y has {len(truth):,} values for {len(predicted):,} rows")
        if self.capabilities.gives_labels:
            return float(np.average(predicted == truth, weights=sample_weight))
        error = np.average((truth - predicted) ** 2, weights=sample_weight)
        mean = np.average(truth, weights=sample_weight)
        return float(1.0 - error / np.average((truth - mean) ** 2, weights=sample_weight))

    def _log_probabilities(self, data: Any) -> Floats:
        fitted, labels = self._local_result().data, _labels_of_rows(data)
        item = match_ids(labels.items, fitted.items)[labels.item_of_label()]
        annotator = match_ids(labels.annotators, fitted.annotators)[labels.annotator]
        category = fitted.scale.codes_of(labels.scale.categories)[labels.category_of_label()]
        known = (item >= 0) & (annotator >= 0)
        if not known.any():
            raise InputError(
                "no row has an item and an annotator that are in the fit: shuffle the folds, such as "
                "cv=KFold(shuffle=True), or pass y, the truth of each row's item"
            )
        p = np.full(labels.n_labels, 1.0 / fitted.n_categories)
        rows = self.predict_proba(item[known], annotator[known])
        p[known] = np.where(category[known] >= 0, rows[np.arange(len(rows)), category[known]], 0.0)
        log_p: Floats = floored_log(p, fitted.n_categories)
        return labels.in_row_order(log_p)

    def _items_of(self, data: Any) -> tuple[Fit, Codes]:
        """Return a fit that has the items of all rows, and the code of the item of each row."""
        fit, labels = self._local_result(), _labels_of_rows(data)
        code = match_ids(labels.items, fit.data.items)
        if (code < 0).any():
            new = labels.subset(code[labels.item_of_label()] < 0)
            fit = copy(self).partial_fit(new, duplicates="keep")._local_result()
            code = match_ids(labels.items, fit.data.items)
        return fit, labels.in_row_order(code[labels.item_of_label()])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_result")

    def __sklearn_tags__(self) -> Tags:
        return table_tags("classifier" if self.capabilities.gives_labels else "regressor")


def table_tags(kind: str | None) -> Tags:
    """Return scikit-learn's tags of an estimator of tables; ``kind`` is "classifier", "regressor" or None."""
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(required=False),
        classifier_tags=ClassifierTags() if kind == "classifier" else None,
        regressor_tags=RegressorTags() if kind == "regressor" else None,
        input_tags=InputTags(two_d_array=False, categorical=True, string=True),
    )


def floored_log(p: Floats, n_outcomes: int) -> Floats:
    """Return the logarithm of probabilities of outcomes, with a share of the uniform distribution."""
    log_p: Floats = np.log((1.0 - FLOOR) * p + FLOOR / n_outcomes)
    return log_p


def _labels_of_rows(data: Any) -> Labels:
    """Return the labels of a table with one row per label; refuse other tables."""
    labels = data if isinstance(data, Labels) else Labels.of(data, duplicates="keep")
    if not isinstance(data, Labels) and labels.n_labels != len(data):
        raise InputError(
            f"{len(data):,} rows have {labels.n_labels:,} labels: predictions are per row, so give a "
            "table of item, annotator and label, with a label in every row"
        )
    return labels


def _categories(fit: Fit) -> NDArray[Any]:
    values: NDArray[Any] = fit.data.scale.categories.to_numpy(zero_copy_only=False)
    return values


def _checked_codes(codes: ArrayLike, n: int, role: str) -> Codes:
    """Return a list of codes as an array; raise if they are not whole numbers from 0 to n - 1."""
    given = np.asarray(codes)
    if given.ndim != 1:
        raise InputError(_TWO_LISTS)
    whole = np.full(len(given), -1)
    with suppress(TypeError, ValueError, OverflowError), np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if not ((whole == given) & (whole >= 0) & (whole < n)).all():
        raise InputError(
            f"predict_proba expects {role} codes from 0 to {n - 1:,}: places in "
            f"result_.data.{role}s, not ids"
        )
    return whole
