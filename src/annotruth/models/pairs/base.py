"""`PairEstimator`: the base of the models of pair comparisons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from annotruth.engines import Engine
from annotruth.errors import InputError, NotFittedError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import ProgressCallback, check_loop_options, one_blas_thread
from annotruth.models.options import OptionsBase
from annotruth.models.pairs.passes import runs_twins
from annotruth.models.prediction import floored_log, table_tags
from annotruth.models.result import RankFit
from annotruth.observations.encode import match_ids
from annotruth.observations.pairs.table import Comparisons

if TYPE_CHECKING:
    from sklearn.utils import Tags


@dataclass(kw_only=True)
class PairEstimator(OptionsBase, ABC):
    """Base of the models of pair comparisons, with the interface of scikit-learn.

    Parameters
    ----------
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    engine
        "memory", or "reference" for the NumPy twins of the kernels: this machine's processor only.
    """

    fits: ClassVar[str] = "comparisons"

    tol: float = 1e-6
    max_iter: int = 1000
    engine: str | Engine = "memory"

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Fit the model to comparisons, or what `Comparisons.of` takes; ``y`` is not used."""
        self._check_option_types()
        check_loop_options(tol=self.tol, max_iter=self.max_iter)
        runs_twins(self.engine)
        data = Comparisons.of(data)
        if data.n_comparisons == 0:
            raise InputError("there are no comparisons: nothing to rank")
        with one_blas_thread():
            self._result = self._fit(data, progress)
        return self

    @property
    def result_(self) -> RankFit:
        """The fit."""
        if not hasattr(self, "_result"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._result

    def load_fit(self, fit: RankFit) -> Self:
        """Use an earlier fit, such as a saved one, as this estimator's result."""
        self._result = fit
        return self

    @abstractmethod
    def _fit(self, data: Comparisons, progress: ProgressCallback | None) -> RankFit:
        """Fit checked comparisons."""

    @abstractmethod
    def predict_proba(
        self,
        left: Codes,
        right: Codes,
        annotator: Codes,
        covariates: dict[str, Any] | None = None,
        context: Codes | None = None,
    ) -> Floats:
        """Return the probabilities of left, right and tie of further comparisons, one row each.

        ``left`` and ``right`` are codes of items and ``annotator`` codes of annotators of
        ``result_.data``; code -1 is an annotator who is not among them. ``context`` has codes of contexts,
        -1 for new ones, for models whose scores depend on them.
        """

    def score(self, data: Any, y: object = None) -> float:
        """Return the mean log-probability of comparisons, as in `annotruth.held_out`; higher is better.

        scikit-learn's cross-validation and searches call it. Comparisons of items that are not in the fit
        count as if by chance; ``y`` is not used.
        """
        made, fitted = Comparisons.of(data), self.result_.data
        item = match_ids(made.items, fitted.items)
        left, right = item[made.left], item[made.right]
        known = (left >= 0) & (right >= 0)
        if not known.any():
            raise InputError("no comparison is of two items that are in the fit: shuffle the folds")
        annotator = match_ids(made.annotators, fitted.annotators)[made.annotator_of_comparison()]
        covariates = {name: values[known] for name, values in made.covariates.items()}
        context = []
        if fitted.contexts is not None:
            codes = np.full(made.n_comparisons, -1)
            if made.contexts is not None and made.context is not None:
                codes = match_ids(made.contexts, fitted.contexts)[made.context]
            context = [codes[known]]
        rows = self.predict_proba(left[known], right[known], annotator[known], covariates, *context)
        n_outcomes = 3 if fitted.has_ties else 2
        p = np.full(made.n_comparisons, 1.0 / n_outcomes)
        p[known] = rows[np.arange(len(rows)), made.outcome[known]]
        return float(floored_log(p, n_outcomes).mean())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_result")

    def __sklearn_tags__(self) -> Tags:
        return table_tags(None)
