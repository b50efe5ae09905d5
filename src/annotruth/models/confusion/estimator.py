"""Models with one latent class per item: equations, EM, results and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import DistributedLabels, Pass, Session, Sum, get_engine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import IterativeEstimator
from annotruth.models.distribution import Distribution, mixed_confusion
from annotruth.models.em import Monitor
from annotruth.models.fits.make_fit import BuildItemResults, ItemResults
from annotruth.models.latent_classes import (
    POSTERIOR_INPUTS,
    ExpectedCounts,
    LatentClasses,
    confusion_log_odds,
    variance_inflation,
)
from annotruth.models.registry import Capabilities
from annotruth.models.result import Fit
from annotruth.models.squarem import Squarem
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.layout import hash_counts

P = TypeVar("P", bound=tuple[Floats, ...])

MIN_PROBABILITY = 1e-12
"""The least likelihood of a label, so that products of many of them do not underflow."""

MIN_SHARE = 1e-30
"""The least prior probability of a class."""


class EStepTables(NamedTuple):
    """What the posterior of an item is computed from.

    Variational models have geometric means, which sum to less than 1.
    """

    prior: Floats  # of each class
    confusion: Floats  # P(label | class): annotators x categories x classes


class ClassEquations(ABC, Generic[P]):
    """A model's equations; the latent classes are ``n_subtypes`` per category, in their order."""

    objective_name = "the log-likelihood per label"
    make: Callable[..., P]
    """Makes parameters of their fields, which are arrays."""
    axes: ClassVar[Mapping[str, str]]
    """The axes of each field, in their order, as in `Estimator.parameter_axes`."""

    def __init__(self, labels: LabelSummary, *, n_subtypes: int = 1) -> None:
        self.labels = labels
        self.labels_per_annotator = labels.labels_per_annotator  # a file, on some engines
        self.n_categories = labels.n_categories
        self.n_subtypes = n_subtypes

    @property
    def n_classes(self) -> int:
        """The number of latent classes."""
        return self.n_categories * self.n_subtypes

    @property
    def known_truth(self) -> Floats:
        """The likelihood of a known truth, categories x classes."""
        return np.repeat(np.eye(self.n_categories), self.n_subtypes, axis=1)

    def start(self, votes: ExpectedCounts, rng: np.random.Generator) -> P:
        """Return the first parameters, given the counts with observed shares as posteriors.

        Models with random starts use ``rng``; `draws_of_annotators` assigns its draws to annotators.
        """
        return self.m_step(votes, None)

    @abstractmethod
    def m_step(self, expected: ExpectedCounts, old: P | None) -> P:
        """Return the parameters that maximise the objective, given the posteriors' sums.

        ``old`` are the parameters of the posteriors; None if these are the observed shares.
        """

    @abstractmethod
    def tables(self, parameters: P) -> EStepTables:
        """Return the prior of the classes and the likelihood of labels for the E-step."""

    def log_prior(self, parameters: P) -> float:
        """Return what the objective adds to the log-likelihood."""
        return 0.0

    @abstractmethod
    def acceleration(self) -> Squarem[P]:
        """Return how to extrapolate the steps."""

    def parameters_of(self, fit: Fit) -> P:
        """Return the parameters of a fit; raise if it has others than expected."""
        size = {
            "annotator": fit.data.n_annotators,
            "category": self.n_categories,
            "state": self.n_classes,
            "subtype": self.n_subtypes,
            "outcome": 2,
        }
        return self.make(
            *(
                fit.parameter(name, *(size[axis] for axis in axes.split()))
                for name, axes in self.axes.items()
            )
        )

    @abstractmethod
    def confusion(self, parameters: P) -> Floats:
        """Return the expected confusion matrices, annotators x categories x classes."""

    @abstractmethod
    def class_prior(self, parameters: P) -> Floats:
        """Return the expected share of each class; they sum to 1."""

    def reliability(self, parameters: P, expected: ExpectedCounts) -> Floats:
        """Return the expected share of each annotator's labels that are the item's class."""
        correct: Floats = np.einsum("snk,nk->s", expected.counts, self.known_truth)
        return np.minimum(correct / self.labels_per_annotator, 1.0)  # rounding


def draws_of_annotators(draws: Floats, labels: LabelSummary) -> Floats:
    """Return random draws, one row per annotator, that depend on no name and on no order.

    Annotators who gave each label equally often have the same draws.
    """
    _, place = np.unique(hash_counts(labels.labels_per_category)[0], return_inverse=True)
    return draws[place]


STEPS_PER_START = 20
"""Steps from each of several random starts, before the best of them is continued."""

_POSTERIOR = Pass("robust_gpm.posterior", ("posterior",), POSTERIOR_INPUTS)


class LatentClassSteps(Generic[P]):
    """EM of a model with latent classes over a session; posteriors leave it only at the end.

    Of ``n_init`` random starts, the one with the highest objective after `STEPS_PER_START` steps is
    continued.
    """

    def __init__(
        self, equations: ClassEquations[P], session: Session, *, n_init: int = 1, seed: int = 0
    ) -> None:
        labels = equations.labels
        self.equations = equations
        self.objective_name = equations.objective_name
        self.final_counts: ExpectedCounts | None = None
        self._session = session
        self._n_init, self._seed = n_init, seed
        self._n_labels = labels.n_labels
        self._step = Pass(
            "robust_gpm.step",
            inputs=POSTERIOR_INPUTS,
            sums=(*_counts(labels, equations.n_classes), Sum("log_likelihood", (1,))),
        )

    def start(self) -> P:
        """Return the first parameters; with several random starts, the best after a few steps."""
        if self._n_init == 1:
            return self._start(0)
        # One at a time: the parameters of all starts may not fit into memory.
        best, highest = None, -np.inf
        for number in range(self._n_init):
            parameters = self._start(number)
            # The objective of the last step is the only one that is needed.
            for _ in range(STEPS_PER_START - 1):
                counts, _ = self.e_step(parameters)
                parameters = self.equations.m_step(counts, parameters)
            parameters, monitor = self.step(parameters)
            if best is None or monitor.objective > highest:
                best, highest = parameters, monitor.objective
        assert best is not None
        return best

    def _start(self, number: int) -> P:
        """Return the parameters of one start."""
        return self.equations.start(self._votes, np.random.default_rng([self._seed, number]))

    @cached_property
    def _votes(self) -> ExpectedCounts:
        return count_votes(self.equations.labels, self._session)

    def step(self, old: P) -> tuple[P, Monitor]:
        """Pass over the labels once, then update the parameters."""
        log_prior = self.equations.log_prior(old)
        counts, log_likelihood = self.e_step(old)
        objective = log_likelihood + log_prior
        new = self.equations.m_step(counts, old)
        return new, Monitor(log_likelihood, objective / self._n_labels)

    def e_step(self, parameters: P) -> tuple[ExpectedCounts, float]:
        """Pass over the labels once; return the posteriors' sums and the log-likelihood."""
        tables = self.equations.tables(parameters)
        sums = self._session.run_pass(self._step, **_inputs(self.equations, tables))
        return ExpectedCounts(sums["counts"], sums["classes"]), float(sums["log_likelihood"][0])

    def finalize(self, parameters: P) -> float:
        """Compute the posterior of every item; return the log-likelihood."""
        self.final_counts, log_likelihood = self.e_step(parameters)
        write_posteriors(self.equations, self.equations.tables(parameters), self._session)
        return log_likelihood

    def acceleration(self) -> Squarem[P]:
        """Return how to extrapolate the steps."""
        return self.equations.acceleration()


def count_votes(labels: LabelSummary, session: Session) -> ExpectedCounts:
    """Return the counts with observed shares as posteriors; the classes are the categories."""
    sums = session.run_pass(Pass("robust_gpm.start", sums=_counts(labels, labels.n_categories)))
    return ExpectedCounts(**sums)


def write_posteriors(equations: ClassEquations[Any], tables: EStepTables, session: Session) -> None:
    """Write the items' posteriors to the session's array "posterior", items x classes."""
    session.allocate("posterior", per="items", shape=(equations.n_classes,))
    session.run_pass(_POSTERIOR, **_inputs(equations, tables))


def _inputs(equations: ClassEquations[Any], tables: EStepTables) -> dict[str, Floats]:
    return {**tables._asdict(), "known_truth": equations.known_truth}


def _counts(labels: LabelSummary, n_classes: int) -> tuple[Sum, Sum]:
    shape = (labels.n_annotators, labels.n_categories, n_classes)
    return Sum("counts", shape, annotator_axis=0), Sum("classes", (n_classes,))


# Of one copy of the parameters and posteriors; a step holds about three, an extrapolation six.
_MAX_BYTES = 2e9


def check_memory(name: str, labels: LabelSummary, n_classes: int) -> None:
    """Refuse labels whose confusion matrices and posteriors would take too much memory."""
    n_items = (
        0 if isinstance(labels, DistributedLabels) else labels.n_items
    )  # others are on the workers
    n_bytes = 8 * n_classes * (labels.n_annotators * labels.n_categories + n_items)
    if n_bytes > _MAX_BYTES:
        raise InputError(
            f"{name} needs {n_bytes / 1e9:,.1f} GB for {labels.n_annotators:,} confusion matrices of "
            f"{n_classes:,} x {labels.n_categories:,} and {n_items:,} x {n_classes:,} probabilities "
            f"(at most {_MAX_BYTES / 1e9:g} GB): merge rare categories, or use gpm, which needs neither"
        )


@dataclass(kw_only=True)
class LatentClassEstimator(IterativeEstimator[LatentClassSteps[Any]]):
    """Base of models whose items have a latent class: a subclass supplies its equations.

    Its options are those of `annotruth.models.base.EMEstimator`.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(out_of_core=True, distributed=True)
    item_arrays: ClassVar[tuple[str, ...]] = ("posterior",)

    tol: float = 1e-7

    @abstractmethod
    def _equations(self, labels: LabelSummary) -> ClassEquations[Any]:
        """Return the model's equations."""

    def _check(self, labels: LabelSummary) -> None:
        check_memory(self.name, labels, self._equations(labels).n_classes)

    def _steps(self, labels: Labels, session: Session) -> LatentClassSteps[Any]:
        return LatentClassSteps(self._equations(labels), session)

    def _estimates(self, steps: LatentClassSteps[Any], parameters: Any) -> dict[str, Any]:
        assert steps.final_counts is not None
        return {
            "reliability": steps.equations.reliability(parameters, steps.final_counts),
            "parameters": parameters._asdict(),
        }

    def _item_results(self, steps: LatentClassSteps[Any]) -> BuildItemResults:
        return partial(_item_results, steps.equations.n_subtypes)

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        equations, parameters = self._fitted()
        tables = equations.tables(parameters)
        labels, place, annotators = self.result_.data.subset_items(item)
        tables = tables._replace(confusion=tables.confusion[annotators])
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
            confusion = equations.tables(parameters).confusion
        else:
            confusion = self.confusion_.transpose(0, 2, 1)
        return confusion_log_odds(self._local_result().data, confusion, first, second)

    def _fitted(self) -> tuple[ClassEquations[Any], Any]:
        """Return the equations and the parameters of the fit."""
        fit = self._local_result()
        equations = self._equations(fit.data)
        return equations, equations.parameters_of(fit)


@dataclass(kw_only=True)
class RestartedEstimator(LatentClassEstimator):
    """Base of models with ``n_init`` random starts, of which the best is continued."""

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
    return {"distribution": Distribution.of_dense(posterior)}
