"""BWA: the Bayesian weighted average."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import IterativeEstimator
from annotruth.models.em import Monitor
from annotruth.models.options import check_positive
from annotruth.models.registry import Capabilities
from annotruth.models.squarem import Squarem, numbers_above, probabilities
from annotruth.observations import Labels, LabelSummary

_LEAST_VARIANCE = 1e-6  # of labels around their item's score, where all annotators agree

_INPUTS = (Input("weight", annotator_axis=0), Input("mean"), Input("strength"))


class BWAParameters(NamedTuple):
    """The annotators' weights v[s, k] and the mean scores mu[k]."""

    weight: Floats
    mean: Floats


class BWASteps:
    """The steps of `BWA` over a session."""

    objective_name = "the log-posterior per label"

    def __init__(
        self, labels: LabelSummary, session: Session, *, pseudo_labels: float, strength: float
    ) -> None:
        n_annotators, n = labels.n_annotators, labels.n_categories
        self._session = session
        self._n_items, self._n_labels, self._n_classes = labels.n_items, labels.n_labels, n
        self._labels_per_annotator = labels.labels_per_annotator
        self._pseudo_labels, self._strength = pseudo_labels, strength
        self._step = Pass(
            "bwa.step",
            inputs=_INPUTS,
            sums=(Sum("squares", (n_annotators, n), annotator_axis=0), Sum("scores", (2, n))),
        )
        self._distribution = Pass(
            "bwa.distribution",
            ("theta",),
            _INPUTS,
            (Sum("right", (n_annotators,), annotator_axis=0),),
        )
        self.share_right = np.empty(0)
        # Equal weights without a prior: the scores are the observed shares.
        equal = BWAParameters(np.ones((n_annotators, n)), np.zeros(n))
        self._votes = session.run_pass(self._step, **equal._asdict(), strength=0.0)
        variance = self._votes["squares"].sum(axis=0) / labels.n_labels
        corrected = 4.0 * (1.0 - 1.0 / n) * variance
        self._pseudo_squares = pseudo_labels * np.maximum(corrected, _LEAST_VARIANCE)

    def start(self) -> BWAParameters:
        """Return the parameters that follow from the observed shares."""
        return self._update(self._votes)

    def step(self, old: BWAParameters) -> tuple[BWAParameters, Monitor]:
        """Pass over the labels once, then update weights and means."""
        sums = self._run(old)
        return self._update(sums), self._monitor(old, sums)

    def finalize(self, parameters: BWAParameters) -> float:
        """Compute the distribution of every item; return the log-likelihood."""
        self._session.allocate("theta", per="items", shape=(self._n_classes,))
        inputs = {**parameters._asdict(), "strength": self._strength}
        right = self._session.run_pass(self._distribution, **inputs)["right"]
        self.share_right = np.minimum(right / self._labels_per_annotator, 1.0)  # rounding
        return self._monitor(parameters, self._run(parameters)).log_likelihood

    def acceleration(self) -> Squarem[BWAParameters]:
        """Extrapolate weights and means."""
        return Squarem(BWAParameters, numbers_above(0.0), probabilities)

    def _run(self, parameters: BWAParameters) -> dict[str, Floats]:
        return self._session.run_pass(self._step, **parameters._asdict(), strength=self._strength)

    def _update(self, sums: Mapping[str, Floats]) -> BWAParameters:
        count = self._pseudo_labels + self._labels_per_annotator[:, np.newaxis]
        weight = count / (self._pseudo_squares + sums["squares"])
        return BWAParameters(weight, sums["scores"][0] / self._n_items)

    def _monitor(self, parameters: BWAParameters, sums: Mapping[str, Floats]) -> Monitor:
        weight, mean = parameters
        count = self._labels_per_annotator[:, np.newaxis]
        log_weight = np.log(weight)
        log_likelihood = 0.5 * float(
            (count * (log_weight - math.log(2.0 * math.pi)) - weight * sums["squares"]).sum()
        )
        of_weights = self._pseudo_labels * log_weight - weight * self._pseudo_squares
        score, square = sums["scores"]
        of_scores = square - 2.0 * mean * score + self._n_items * mean**2
        log_prior = 0.5 * float(of_weights.sum() - self._strength * of_scores.sum())
        return Monitor(log_likelihood, (log_likelihood + log_prior) / self._n_labels)


@dataclass(kw_only=True)
class BWA(IterativeEstimator[BWASteps]):
    r"""BWA, the Bayesian weighted average: vote shares with a weight per annotator and class.

    Li, Rubinstein and Cohn, "Truth Inference at Scale: A Bayesian Model for Adjudicating Highly
    Redundant Crowd Annotations", WWW 2019. For each class k by itself, the label of annotator s for
    item e is the number :math:`y = [r_{e,s} = k]`, which is normal around the item's score:

    .. math::
        y_{e,s,k} \sim \mathcal{N}(z_{e,k}, 1 / v_{s,k}), \qquad
        z_{e,k} \sim \mathcal{N}(\mu_k, 1 / \lambda), \qquad
        p(v_{s,k}) \propto v_{s,k}^{a / 2} \exp(-b_k v_{s,k} / 2).

    The posterior is maximised over scores, means and weights in turn. Over E items:

    .. math::
        z_{e,k} = \frac{\lambda \mu_k + \sum_{s \in l_e} v_{s,k} y_{e,s,k}}
        {\lambda + \sum_{s \in l_e} v_{s,k}}, \qquad
        \mu_k = \frac{1}{E} \sum_e z_{e,k}, \qquad
        v_{s,k} = \frac{a + |l_s|}{b_k + \sum_{e \in l_s} (y_{e,s,k} - z_{e,k})^2}.

    The start is the observed shares for z. The log-posterior increases with every step, and ``tol``
    is compared with its change per label. The log-likelihood of the history is that of the normal
    distribution, a density. As in the authors' program a = 15, :math:`\lambda = 1`, and
    :math:`b_k = 4 (1 - 1/N) a \sigma_k^2`, where :math:`\sigma_k^2` is the mean squared difference of
    y from the observed share of its item. Where all annotators agree, :math:`\sigma_k^2` would be 0;
    here :math:`b_k` is at least :math:`10^{-6} a`.

    An item's distribution is its scores divided by their sum, a weighted share of votes rather than
    the probability of a class. An annotator's reliability is the mean share of the classes they chose. Their ``weight`` is the mean of :math:`v_{s,k}` over
    classes, weighted by :math:`\mu_k`. `predict_proba` returns the item's distribution for every
    annotator: the expectation of y is z, and weights are about its variance.

    The model averages votes: it does not recover a class that most annotators miss.

    Parameters
    ----------
    pseudo_labels
        a, the number of labels per annotator that the prior of the weights counts for.
    strength
        :math:`\lambda`, the weight of the class's mean in each score.
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat" if item % 2 else "dog") for item in range(6) for name in "abc"]
    >>> labels += [(item, "eve", "cat") for item in range(6)]
    >>> at.BWA().fit(labels).result_.annotator_columns["weight"].round(1).tolist()
    [7.2, 7.2, 7.2, 4.4]
    """

    name: ClassVar[str] = "bwa"
    capabilities: ClassVar[Capabilities] = Capabilities(out_of_core=True, distributed=True)
    parameter_axes: ClassVar[Mapping[str, str] | None] = {
        "weight": "annotator category",
        "mean": "category",
    }
    item_arrays: ClassVar[tuple[str, ...]] = ("theta",)

    tol: float = 1e-7
    pseudo_labels: float = 15.0
    strength: float = 1.0

    def _check(self, labels: LabelSummary) -> None:
        check_positive(pseudo_labels=self.pseudo_labels, strength=self.strength)

    def _steps(self, labels: Labels, session: Session) -> BWASteps:
        return BWASteps(labels, session, pseudo_labels=self.pseudo_labels, strength=self.strength)

    def _estimates(self, steps: BWASteps, parameters: BWAParameters) -> dict[str, Any]:
        weight = parameters.weight @ parameters.mean / parameters.mean.sum()
        return {
            "reliability": steps.share_right,
            "annotator_columns": {"weight": weight},
            "parameters": parameters._asdict(),
        }

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit = self.result_
        assert fit.distribution is not None
        return fit.distribution.rows(item, fit.data.n_categories)
