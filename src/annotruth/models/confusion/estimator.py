"""The base of the estimators of this package: results and predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Session, get_engine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.models.base_fit import BaseFit
from annotruth.models.capabilities import Capabilities
from annotruth.models.confusion.equations import MIN_PROBABILITY, ClassEquations
from annotruth.models.confusion.steps import LatentClassSteps, write_posteriors
from annotruth.models.distribution import Distribution, mixed_confusion
from annotruth.models.em import History
from annotruth.models.em_estimator import IterativeEstimator
from annotruth.models.fits.item_results import ItemResults
from annotruth.models.fits.make_fit import make_fit
from annotruth.models.latent_classes import (
    ExpectedCounts,
    LatentClasses,
    confusion_log_odds,
    variance_inflation,
)

# Of one copy of the parameters and posteriors; a step holds about three, an extrapolation six.
_MAX_BYTES = 2e9


@dataclass(kw_only=True)
class LatentClassEstimator(IterativeEstimator[LatentClassSteps[Any]]):
    """Base of models whose items have a latent class: a subclass supplies its equations.

    Its options are those of `annotruth.models.em_estimator.EMEstimator`.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.confusion.estimator import LatentClassEstimator
    >>> issubclass(at.OneCoin, LatentClassEstimator)
    True
    """

    capabilities: ClassVar[Capabilities] = Capabilities(out_of_core=True, distributed=True)

    tol: float = 1e-7

    @abstractmethod
    def _equations(self, labels: LabelSummary) -> ClassEquations[Any]:
        """Return the model's equations."""

    def _check(self, labels: LabelSummary) -> None:
        n_classes = self._equations(labels).n_classes
        n_items = labels.n_items if isinstance(labels, Labels) else 0  # others are on the workers
        n_bytes = 8 * n_classes * (labels.n_annotators * labels.n_categories + n_items)
        if n_bytes > _MAX_BYTES:
            raise InputError(
                f"{self.name} needs {n_bytes / 1e9:,.1f} GB for {labels.n_annotators:,} confusion "
                f"matrices of {n_classes:,} x {labels.n_categories:,} and {n_items:,} x "
                f"{n_classes:,} probabilities (at most {_MAX_BYTES / 1e9:g} GB): merge rare "
                "categories, or use gpm, which needs neither"
            )

    def _steps(self, labels: Labels, session: Session) -> LatentClassSteps[Any]:
        return LatentClassSteps(self._equations(labels), session)

    def _make_fit(
        self,
        labels: Labels,
        session: Session,
        steps: LatentClassSteps[Any],
        parameters: Any,
        history: History,
    ) -> BaseFit:
        equations, counts = steps.equations, steps.final_counts
        assert counts is not None
        return make_fit(
            labels,
            session,
            ("posterior",),
            partial(_item_results, equations.n_subtypes),
            model=self.name,
            settings=self.settings(),
            history=history,
            reliability=equations.reliability(parameters, counts),
            annotator_columns=self._annotator_columns(parameters, counts),
            parameters=parameters._asdict(),
        )

    def _annotator_columns(self, parameters: Any, counts: ExpectedCounts) -> dict[str, Floats]:
        """Return further estimates per annotator."""
        return {}

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        equations, parameters = self._fitted()
        tables = equations.tables(parameters)
        labels, place, annotators = self.result_.data.subset_items(item)
        tables = tables._replace(likelihood=tables.likelihood[annotators])
        with closing(get_engine(self.engine).open(labels)) as session:
            write_posteriors(equations, tables, session)
            posterior = session.collect("posterior")
        confusion = equations.confusion(parameters)
        return mixed_confusion(posterior[place], confusion.transpose(2, 0, 1), annotator)

    @property
    def confusion_(self) -> Floats:
        """The expected confusion matrices, annotators x true categories x labels."""
        equations, parameters = self._fitted()
        n, m = equations.n_categories, equations.n_subtypes
        share = equations.class_prior(parameters).reshape(n, m)
        share = share / share.sum(axis=1, keepdims=True)
        confusion = equations.confusion(parameters)
        by_category = confusion.reshape(*confusion.shape[:2], n, m)
        average: Floats = np.einsum("slkm,km->skl", by_category, share)
        return average

    @property
    def prevalence_(self) -> Floats:
        """The expected share of each category."""
        equations, parameters = self._fitted()
        by_subtype = equations.class_prior(parameters).reshape(equations.n_categories, -1)
        share: Floats = by_subtype.sum(axis=1)
        return share

    def latent_classes(self) -> LatentClasses:
        """Return the categories as latent classes, with the annotators' confusion matrices."""
        labels = self._local_result().data
        confusion = np.maximum(self.confusion_.transpose(0, 2, 1), MIN_PROBABILITY)
        categories = np.eye(labels.n_categories)
        return LatentClasses(
            prior=np.maximum(self.prevalence_, MIN_PROBABILITY),
            known_truth=categories,
            confusion=np.ascontiguousarray(confusion),
            opinions=categories,
            one_truth=True,
            label_weight=1.0 / variance_inflation(labels),
        )

    def label_log_odds(self, first: Codes, second: Codes) -> Floats:
        """Return what each label adds to the log-odds of one category of its item over another.

        With subtypes these are the odds by the mean confusion matrices, and their sum is not
        exactly what the posterior gained.
        """
        equations, parameters = self._fitted()
        if equations.n_subtypes == 1:
            likelihood = equations.tables(parameters).likelihood
        else:
            likelihood = self.confusion_.transpose(0, 2, 1)
        return confusion_log_odds(self._local_result().data, likelihood, first, second)

    def _fitted(self) -> tuple[ClassEquations[Any], Any]:
        """Return the equations and the parameters of the fit."""
        fit = self._local_result()
        equations = self._equations(fit.data)
        return equations, equations.parameters_of(fit)


@dataclass(kw_only=True)
class RestartedEstimator(LatentClassEstimator):
    """Base of models with random starts.

    Parameters
    ----------
    n_init, seed
        The number of random starts, of which the best is continued, and their seed.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.confusion.estimator import RestartedEstimator
    >>> issubclass(at.MACE, RestartedEstimator)
    True
    """

    n_init: int = 5
    seed: int = 0

    def _check(self, labels: LabelSummary) -> None:
        if self.n_init < 1:
            raise InputError(f"n_init must be 1 or more, not {self.n_init}")
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, not {self.seed}")
        super()._check(labels)

    def _steps(self, labels: Labels, session: Session) -> LatentClassSteps[Any]:
        equations = self._equations(labels)
        return LatentClassSteps(equations, session, n_init=self.n_init, seed=self.seed)


def _item_results(
    n_subtypes: int, labels: Labels, arrays: Mapping[str, NDArray[Any]]
) -> ItemResults:
    posterior = arrays["posterior"]
    if n_subtypes > 1:
        posterior = posterior.reshape(len(posterior), -1, n_subtypes).sum(axis=2)
    known = np.flatnonzero(labels.known >= 0)
    if len(known):  # exactly 1, which a normalised product may miss by rounding
        posterior[known] = np.eye(posterior.shape[1])[labels.known[known]]
    return ItemResults(Distribution.of_dense(posterior))
