"""The aggregators that are models of annotruth, in crowd-kit's interface."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotruth.crowdkit.base import ProbabilityAggregator
from annotruth.crowdkit.votes import COLUMNS, label_series, select, winners
from annotruth.errors import ConvergenceWarning, InputError, shown
from annotruth.kernels.arrays import Floats
from annotruth.models import gpm, robust_gpm
from annotruth.models.base import EMEstimator, Estimator
from annotruth.models.confusion import glad, mace
from annotruth.models.confusion.mace import MACEEquations, MACEParameters
from annotruth.models.em import History, ProgressCallback, Steps
from annotruth.models.latent_classes import ExpectedCounts
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.columns.names import LABEL_ROLES

P = TypeVar("P")

_STRATEGY_PRIOR = 10.0  # pseudo-count of each label among a worker's spam, for "vb"
_SMOOTHING = 0.01  # pseudo-count of all labels together, for "em"
# Of a start that is given as probabilities: so many that their geometric mean is their mean.
_START_COUNTS = 1e12


class TaskLabels(NamedTuple):
    """The labels of a frame, and their ids as pandas has them, in the order of ``labels``."""

    frame: pd.DataFrame
    labels: Labels
    tasks: pd.Index[Any]
    workers: pd.Index[Any]
    classes: pd.Index[Any]

    def with_known(self, true_labels: pd.Series[Any] | None) -> TaskLabels:
        """Return the labels with known truths, of which those of other tasks are left out."""
        if true_labels is None:
            return self
        known = true_labels[true_labels.index.isin(self.tasks)]
        return self._replace(labels=self.labels.with_gold(known)) if len(known) else self

    def given(self) -> pd.MultiIndex:
        """Return the distinct pairs of a worker and a label that the worker gave."""
        return pd.MultiIndex.from_frame(self.frame[["worker", "label"]].drop_duplicates())


def read_labels(data: Any) -> TaskLabels:
    """Return the labels of a frame of task, worker, label; labels are classes, even numbers."""
    frame = select(data)
    columns = dict(zip(LABEL_ROLES, COLUMNS, strict=True))
    labels = Labels.of(frame, columns=columns, scale="nominal", duplicates="keep")
    tasks, workers = (pd.Index(frame[name].unique(), name=name) for name in ("task", "worker"))
    classes = pd.Index(labels.scale.categories.to_pylist(), name="label")
    return TaskLabels(frame, labels, tasks, workers, classes)


class ModelAggregator(ProbabilityAggregator):
    """Base of the aggregators that are models of annotruth.

    ``model_`` is the fitted estimator (``model_.result_`` has its tables, report and advice),
    ``probas_`` the probability of each label, one row per task, ``skills_`` the reliability of each
    worker, ``loss_history_`` the mean log-likelihood per label after every iteration.
    """

    estimator: ClassVar[type[EMEstimator]]
    n_iter: int
    tol: float
    model_: Estimator

    def fit(self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None) -> Self:
        """Fit to a frame of task, worker, label; ``true_labels`` is a Series by task."""
        task_labels = read_labels(data)
        self.model_ = self._fit_model(task_labels.with_known(true_labels))
        self._set_results(task_labels)
        return self

    def _fit_model(self, data: TaskLabels) -> Estimator:
        return self.estimator(max_iter=self.n_iter, tol=self.tol).fit(data.labels)

    def _set_results(self, data: TaskLabels) -> None:
        fit = self.model_.result_
        assert fit.distribution is not None
        self._set_probas(fit.distribution.dense(len(data.classes)), data)
        self.skills_ = pd.Series(fit.reliability, index=data.workers, name="skill")
        self.loss_history_ = (fit.history.log_likelihood[1:] / data.labels.n_labels).tolist()

    def _set_probas(self, probas: Floats, data: TaskLabels) -> None:
        self.probas_ = pd.DataFrame(probas, index=data.tasks, columns=data.classes)
        self.labels_ = label_series(winners(probas), data.tasks, data.classes)


class AllowsNoIterations(EMEstimator):
    """Part of estimators that return their start for ``max_iter=0``."""

    def _run_em(
        self, steps: Steps[P], start: P, progress: ProgressCallback | None = None
    ) -> tuple[P, History]:
        if self.max_iter != 0:
            return super()._run_em(steps, start, progress)
        log_likelihood = np.array([steps.finalize(start)])
        return start, History(log_likelihood, np.empty(0), False, "no iterations")


@dataclass(eq=False)
class GPM(ModelAggregator):
    """`annotruth.GPM`, for many labels per task; ``random_state`` has no effect."""

    n_iter: int = 1000
    tol: float = 1e-4
    random_state: int | None = None

    estimator: ClassVar[type[EMEstimator]] = gpm.GPM


@dataclass(eq=False)
class RobustGPM(GPM):
    """`annotruth.RobustGPM`, the default model of annotruth; ``random_state`` has no effect."""

    estimator = robust_gpm.RobustGPM


@dataclass(kw_only=True)
class _GLADModel(AllowsNoIterations, glad.GLAD):
    """GLAD, which returns its start without iterations."""


@dataclass(eq=False)
class GLAD(ModelAggregator):
    """`annotruth.GLAD`: abilities of workers (``alphas_``), log-easiness of tasks (``betas_``).

    The model is crowd-kit's, with the priors N(1, 1) and equally likely labels. Its M-steps are
    Newton steps, so that ``silent``, ``m_step_max_iter`` and ``m_step_tol`` have no effect, and
    ``tol`` is the change of the log-posterior. Other priors are refused.
    """

    n_iter: int = 100
    tol: float = 1e-5
    silent: bool = True
    labels_priors: pd.Series[Any] | None = None
    alphas_priors_mean: pd.Series[Any] | None = None
    betas_priors_mean: pd.Series[Any] | None = None
    m_step_max_iter: int = 25
    m_step_tol: float = 1e-2

    estimator = _GLADModel

    def __post_init__(self) -> None:
        for option, because in (
            ("labels_priors", "all labels are equally likely"),
            ("alphas_priors_mean", "the prior mean of abilities is 1"),
            ("betas_priors_mean", "the prior mean of betas is 1"),
        ):
            if getattr(self, option) is not None:
                raise InputError(f"{option} is not supported: {because}; leave it out")

    def _set_results(self, data: TaskLabels) -> None:
        super()._set_results(data)
        fit = self.model_.result_
        ability, difficulty = fit.annotator_columns["ability"], fit.item_columns["difficulty"]
        self.alphas_ = pd.Series(ability, index=data.workers, name="alpha")
        self.betas_ = pd.Series(-np.log(difficulty), index=data.tasks, name="beta")
        # crowd-kit's names and order.
        self.probas_ = self.probas_.sort_index().rename_axis(columns="variable")
        self.labels_ = self.labels_.sort_index()


class _Equations(MACEEquations):
    """MACE's equations with crowd-kit's random start; for "em", with means for geometric means."""

    def __init__(
        self, labels: LabelSummary, method: str, start: MACEParameters | None, **priors: float
    ) -> None:
        super().__init__(labels, **priors)
        self.method = method
        self.first = start

    def start(self, votes: ExpectedCounts, rng: np.random.Generator) -> MACEParameters:
        assert self.first is not None  # it is not stored with a fit, and not needed after it
        return self.first

    def log_prior(self, parameters: MACEParameters) -> float:
        return super().log_prior(parameters) if self.method == "vb" else 0.0

    def _geometric_means(self, parameters: MACEParameters) -> tuple[Floats, Floats, Floats]:
        if self.method == "vb":
            return super()._geometric_means(parameters)
        competence, spam = (counts / counts.sum(axis=1, keepdims=True) for counts in parameters)
        return competence[:, :1], competence[:, 1:], spam


@dataclass(kw_only=True)
class _Model(AllowsNoIterations, mace.MACE):
    """MACE with crowd-kit's equations, in the order of the frame."""

    parameter_axes = None
    acceleration: bool = False
    tol: float = 0.0
    n_init: int = 1

    def __post_init__(self) -> None:
        # No fields: they are no options of the model that the fit is one of.
        self.method = "vb"
        self.start: MACEParameters | None = None

    def _equations(self, labels: LabelSummary) -> _Equations:
        priors = {"alpha": self.alpha, "beta": self.beta, "spam_prior": self.spam_prior}
        return _Equations(labels, self.method, self.start, **priors)

    def strategies(self) -> tuple[Floats, Floats]:
        """Return the probabilities of spamming and of knowing, and of each label among spam."""
        equations = self._equations(self.result_.data)
        knows, spams, spam = equations._geometric_means(equations.parameters_of(self.result_))
        return np.hstack([spams, knows]), spam


@dataclass(eq=False)
class MACE(ModelAggregator):
    """MACE: a worker knows the right label, or spams with a distribution of their own.

    The model is that of `annotruth.MACE`, with crowd-kit's options: of ``n_restarts`` random starts of
    ``n_iter`` iterations, the one of highest likelihood is kept (in crowd-kit 1.4 all of them are
    equal). The ``method`` is "vb", variational inference with pseudo-counts ``alpha`` of spamming and
    ``beta`` of knowing the right label, or "em", maximum likelihood with smoothed counts: 0.01 divided
    by the number of labels is added. Parameters start with random numbers between 1 and 2 plus
    ``default_noise``, normalised, of the seed ``random_state`` and the following ones. ``smoothing`` (as
    in crowd-kit 1.4) and ``verbose`` have no effect.

    ``spamming_`` has the probabilities of spamming and of knowing, one row per worker in the order of
    the frame; for "vb" these are geometric means, which sum to less than 1. ``thetas_`` has the
    probability of each label when spamming, with columns in the order of ``probas_``.
    """

    n_restarts: int = 10
    n_iter: int = 50
    method: str = "vb"
    smoothing: float = 0.1
    default_noise: float = 0.5
    alpha: float = 0.5
    beta: float = 0.5
    random_state: int = 0
    verbose: int = 0

    def __post_init__(self) -> None:
        if self.method not in ("vb", "em"):
            raise InputError(f"method is {shown(self.method)}: choose 'vb' or 'em'")
        if self.n_restarts < 1:
            raise InputError(f"n_restarts must be 1 or more, not {self.n_restarts}")

    def _fit_model(self, data: TaskLabels) -> _Model:
        # crowd-kit's alpha is of spamming, that of annotruth's MACE of knowing.
        knows, spams, strategy = self.beta, self.alpha, _STRATEGY_PRIOR
        if self.method == "em":
            knows = spams = strategy = _SMOOTHING / len(data.classes)
        fits = []
        for number in range(self.n_restarts):
            model = _Model(max_iter=self.n_iter, alpha=knows, beta=spams, spam_prior=strategy)
            model.method = self.method
            model.start = self._start(self.random_state + number, data)
            with warnings.catch_warnings():
                # The number of iterations is given: they are not expected to converge.
                warnings.simplefilter("ignore", ConvergenceWarning)
                fits.append(model.fit(data.labels))
        return max(fits, key=lambda model: model.result_.log_likelihood or 0.0)

    def _start(self, seed: int, data: TaskLabels) -> MACEParameters:
        """Return crowd-kit's draws; their columns are in the order of the frame."""
        n_workers, order = len(data.workers), _frame_order(data)
        spamming = self._draw(seed, n_workers, 2)
        thetas = np.empty((n_workers, len(order)))
        thetas[:, order] = self._draw(seed, n_workers, len(order))
        return MACEParameters(_START_COUNTS * spamming[:, ::-1], _START_COUNTS * thetas)

    def _draw(self, seed: int, *shape: int) -> Floats:
        draws = 1.0 + (1.0 + self.default_noise) * np.random.RandomState(seed).uniform(size=shape)
        shares: Floats = draws / draws.sum(axis=1, keepdims=True)
        return shares

    def _set_results(self, data: TaskLabels) -> None:
        super()._set_results(data)
        assert isinstance(self.model_, _Model)
        order = _frame_order(data)
        self.spamming_, thetas = self.model_.strategies()
        self.thetas_ = thetas[:, order]
        # As in crowd-kit, the columns are in the order of the frame, and have no name.
        self.probas_ = self.probas_.iloc[:, order].rename_axis(columns=None)
        self.labels_ = self.probas_.idxmax(axis="columns").rename("agg_label")


def _frame_order(data: TaskLabels) -> NDArray[np.intp]:
    """Return the codes of the labels in the order in which they first occur in the frame."""
    return data.classes.get_indexer(pd.Index(data.frame["label"].unique()))
