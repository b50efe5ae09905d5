"""GLAD in crowd-kit's interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from annotruth.crowdkit.model import AllowsNoIterations, ModelAggregator, TaskLabels, refuse
from annotruth.models import glad


@dataclass(kw_only=True)
class _Model(AllowsNoIterations, glad.GLAD):
    """GLAD, which returns its start without iterations."""


class GLAD(ModelAggregator):
    """`annotruth.GLAD`: abilities of workers and difficulties of tasks.

    The model is crowd-kit's, with the priors N(1, 1) and equally likely labels. Its M-steps are
    Newton steps, so the options of crowd-kit's inner loop have no effect, and ``tol`` is the change
    of the log-posterior. Other priors are refused.

    Parameters
    ----------
    n_iter, tol
        The maximum number of iterations, and the stopping rule.
    silent, m_step_max_iter, m_step_tol
        Have no effect.
    labels_priors, alphas_priors_mean, betas_priors_mean
        Must be left out.

    Attributes
    ----------
    alphas_
        The ability of each worker.
    betas_
        The logarithm of each task's easiness.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import GLAD
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> GLAD().fit_predict(frame).tolist()
    ['a', 'b', 'a', 'b']
    """

    alphas_: pd.Series[Any]
    betas_: pd.Series[Any]

    def __init__(
        self,
        n_iter: int = 100,
        tol: float = 1e-5,
        silent: bool = True,
        labels_priors: pd.Series[Any] | None = None,
        alphas_priors_mean: pd.Series[Any] | None = None,
        betas_priors_mean: pd.Series[Any] | None = None,
        m_step_max_iter: int = 25,
        m_step_tol: float = 1e-2,
    ) -> None:
        refuse("labels_priors", labels_priors, "all labels are equally likely")
        refuse("alphas_priors_mean", alphas_priors_mean, "the prior mean of abilities is 1")
        refuse("betas_priors_mean", betas_priors_mean, "the prior mean of betas is 1")
        self.n_iter = n_iter
        self.tol = tol
        self.silent = silent
        self.labels_priors = labels_priors
        self.alphas_priors_mean = alphas_priors_mean
        self.betas_priors_mean = betas_priors_mean
        self.m_step_max_iter = m_step_max_iter
        self.m_step_tol = m_step_tol

    def _model(self) -> _Model:
        return _Model(max_iter=self.n_iter, tol=self.tol)

    def _set_results(self, data: TaskLabels) -> None:
        super()._set_results(data)
        fit = self.model_.result_
        ability, difficulty = fit.annotator_columns["ability"], fit.item_columns["difficulty"]
        self.alphas_ = pd.Series(ability, index=data.workers, name="alpha")
        self.betas_ = pd.Series(-np.log(difficulty), index=data.tasks, name="beta")
        # crowd-kit's names and order.
        self.probas_ = self.probas_.sort_index().rename_axis(columns="variable")
        self.labels_ = self.labels_.sort_index()
