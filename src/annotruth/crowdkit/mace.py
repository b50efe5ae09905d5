"""MACE in crowd-kit's interface."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotruth.crowdkit.models import AllowsNoIterations, ModelAggregator, TaskLabels
from annotruth.errors import ConvergenceWarning, InputError, shown
from annotruth.kernels.arrays import Floats
from annotruth.models.confusion import mace
from annotruth.models.confusion.mace import MACEEquations, MACEParameters
from annotruth.models.latent_classes import ExpectedCounts
from annotruth.observations import LabelSummary

_STRATEGY_PRIOR = 10.0  # pseudo-count of each label among a worker's spam, for "vb"
_SMOOTHING = 0.01  # pseudo-count of all labels together, for "em"
# Of a start that is given as probabilities: so many that their geometric mean is their mean.
_START_COUNTS = 1e12


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

    def strategies(self, parameters: MACEParameters) -> tuple[Floats, Floats]:
        """Return the probabilities of spamming and of knowing, and of each label among spam."""
        knows, spams, spam = self._geometric_means(parameters)
        return np.hstack([spams, knows]), spam


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
        return equations.strategies(equations.parameters_of(self.result_))


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
        fits = (
            self._fit_from(self.random_state + number, data) for number in range(self.n_restarts)
        )
        return max(fits, key=lambda model: model.result_.log_likelihood or 0.0)

    def _fit_from(self, seed: int, data: TaskLabels) -> _Model:
        """Return the model fitted from one random start."""
        # crowd-kit's alpha is of spamming, that of annotruth's MACE of knowing.
        knows, spams, strategy = self.beta, self.alpha, _STRATEGY_PRIOR
        if self.method == "em":
            knows = spams = strategy = _SMOOTHING / len(data.classes)
        model = _Model(max_iter=self.n_iter, alpha=knows, beta=spams, spam_prior=strategy)
        model.method = self.method
        model.start = self._start(seed, data)
        with warnings.catch_warnings():
            # The number of iterations is given: they are not expected to converge.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(data.labels)

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
