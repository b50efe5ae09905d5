"""`PairEstimator`: the base of the models of pair comparisons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from annotruth.engines import Engine
from annotruth.errors import InputError, NotFittedError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import ProgressCallback, check_loop_options, one_blas_thread
from annotruth.models.options import OptionsBase
from annotruth.models.pairs.passes import runs_twins
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import Comparisons


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
