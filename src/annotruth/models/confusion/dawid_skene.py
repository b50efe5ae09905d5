"""Dawid and Skene's model of annotators with confusion matrices, and that with one accuracy each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import IterativeEstimator
from annotruth.models.confusion.estimator import (
    MIN_PROBABILITY,
    MIN_SHARE,
    ClassEquations,
    EStepTables,
    LatentClassEstimator,
    check_memory,
)
from annotruth.models.distribution import mixed_confusion
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import (
    ExpectedCounts,
    confusion_log_odds,
    one_coin_confusion,
)
from annotruth.models.registry import Capabilities
from annotruth.models.result import Fit
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.observations import Labels, LabelSummary

_OFF_BOUND = 1e-10  # the distance of an accuracy from 0 and 1, so that no label is impossible
_INPUTS = (Input("prior"), Input("known_truth"), Input("confusion", annotator_axis=1))


class DawidSkeneParameters(NamedTuple):
    """The class prior p[k], and the annotators' confusion matrices pi[s, k, l]."""

    prior: Floats
    confusion: Floats  # pi as labels x annotators x classes, the order in which the kernels read it


class DawidSkeneSteps:
    """Dawid and Skene's EM over a session; posteriors leave it only at the end."""

    objective_name = "the log-likelihood per label"

    def __init__(self, labels: LabelSummary, session: Session) -> None:
        n_classes = labels.n_categories
        self._known_truth = np.eye(n_classes)
        self.session = session
        self._labels_per_annotator = labels.labels_per_annotator
        self._n_labels = labels.n_labels
        self._n_classes = n_classes
        counts = (
            Sum("counts", (n_classes, labels.n_annotators, n_classes), annotator_axis=1),
            Sum("classes", (n_classes,)),
        )
        log_likelihood = Sum("log_likelihood", (1,))
        self._start = Pass("dawid_skene.start", ("rows",), sums=counts)
        self._step = Pass("dawid_skene.step", ("rows",), _INPUTS, (*counts, log_likelihood))
        self._posterior = Pass(
            "dawid_skene.posterior", ("rows", "posterior"), _INPUTS, (log_likelihood,)
        )

    def start(self) -> DawidSkeneParameters:
        """Return the parameters for which the posteriors are the observed shares."""
        self.session.allocate("rows", per="labels")
        sums = self.session.run_pass(self._start)
        uniform = np.full((1, 1, 1), 1.0 / self._n_classes)
        counts = sums["counts"]
        return _normalised(counts, sums["classes"], np.asarray(uniform, like=counts))

    def step(self, old: DawidSkeneParameters) -> tuple[DawidSkeneParameters, Monitor]:
        """Pass over the labels once, then normalise the counts."""
        sums = self.session.run_pass(self._step, **self._inputs(old))
        log_likelihood = float(sums["log_likelihood"][0])
        new = _normalised(sums["counts"], sums["classes"], old.confusion)
        return new, Monitor(log_likelihood, log_likelihood / self._n_labels)

    def finalize(self, parameters: DawidSkeneParameters) -> float:
        """Compute the posterior of every item; return the log-likelihood."""
        self.session.allocate("posterior", per="items", shape=(self._n_classes,))
        sums = self.session.run_pass(self._posterior, **self._inputs(parameters))
        return float(sums["log_likelihood"][0])

    def acceleration(self) -> Squarem[DawidSkeneParameters]:
        """Extrapolate the prior and the confusion matrices."""
        return Squarem(DawidSkeneParameters, shares(axis=0), shares(axis=0))

    def reliability(self, parameters: DawidSkeneParameters) -> Floats:
        """Return the expected share of each annotator's labels that are the item's class."""
        counts = self.session.run_pass(self._step, **self._inputs(parameters))["counts"]
        correct = self.session.to_host(np.einsum("ksk->s", counts))
        return np.minimum(correct / self._labels_per_annotator, 1.0)  # rounding

    def _inputs(self, parameters: DawidSkeneParameters) -> dict[str, Floats]:
        return {**parameters._asdict(), "known_truth": self._known_truth}


def dawid_skene_parameters(fit: Fit) -> DawidSkeneParameters:
    """Return the parameters of a fit."""
    n_annotators, n = fit.data.n_annotators, fit.data.n_categories
    # Stored as "rates", the name that saved fits have.
    return DawidSkeneParameters(
        fit.parameter("prior", n), fit.parameter("rates", n, n_annotators, n)
    )


def _normalised(counts: Floats, classes: Floats, old: Floats) -> DawidSkeneParameters:
    """Return counts as shares, in place; a row without counts keeps the old shares."""
    totals = counts.sum(axis=0)
    if totals.min() > 0:
        counts /= totals
    else:
        is_empty = totals == 0
        totals[is_empty] = 1.0
        counts /= totals
        np.copyto(counts, old, where=is_empty)
    return DawidSkeneParameters(classes / classes.sum(), counts)


@dataclass(kw_only=True)
class DawidSkene(IterativeEstimator[DawidSkeneSteps]):
    r"""Dawid and Skene's model: one confusion matrix per annotator.

    Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm",
    Applied Statistics 28 (1979), 20-28. An item is of class k with probability :math:`p_k`, and
    annotator s then gives the label l with probability :math:`\pi_{s,k,l}`, independently of the
    others:

    .. math:: L = \prod_e \sum_k p_k \prod_{s \in l_e} \pi_{s,k,r_{e,s}}.

    Maximum likelihood by EM over E items:

    .. math::
        \text{E:}\quad T_{e,k} &\propto p_k \prod_{s \in l_e} \pi_{s,k,r_{e,s}} \\
        \text{M:}\quad p_k &= \frac{1}{E} \sum_e T_{e,k}, \quad
        \pi_{s,k,l} = \frac{\sum_{e \in l_{s,l}} T_{e,k}}{\sum_{e \in l_s} T_{e,k}}.

    The start, as in the paper, is the observed shares for T, which at the end are the items'
    distributions. The likelihood is that of labels and known truths. An annotator's reliability is the expected share of their labels that are the item's class,
    :math:`\sum_{e \in l_s} T_{e,r_{e,s}} / |l_s|`. It is high for annotators who always give the
    most frequent label; ``confusion_`` shows the difference.

    Left open by the paper: there is no smoothing, so a zero in :math:`p` or :math:`\pi` stays zero. If an
    annotator labelled no item of a class, the row of :math:`\pi` keeps its last value, at the start 1/N.
    The loop stops when the log-likelihood per label changes by less than ``tol``. On sparse tables it may
    rise slowly over thousands of steps; ``tol=0`` iterates to the maximum. `predict_proba` returns
    :math:`\sum_k T_{e,k} \pi_{s,k,l}` for label l.

    Parameters
    ----------
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat" if item % 2 else "dog") for item in range(6) for name in "abc"]
    >>> labels += [(item, "eve", "cat") for item in range(6)]
    >>> model = at.DawidSkene().fit(labels)
    >>> model.confusion_[3].round(2).tolist()  # eve: one row per class, one column per label
    [[1.0, 0.0], [1.0, 0.0]]
    >>> model.prevalence_.round(2).tolist()
    [0.5, 0.5]
    """

    name: ClassVar[str] = "dawid-skene"
    capabilities: ClassVar[Capabilities] = Capabilities(out_of_core=True, distributed=True)
    parameter_axes: ClassVar[Mapping[str, str] | None] = {
        "prior": "category",
        "rates": "category annotator category",
    }
    item_arrays: ClassVar[tuple[str, ...]] = ("posterior",)

    tol: float = 1e-7

    def _check(self, labels: LabelSummary) -> None:
        check_memory(self.name, labels, labels.n_categories)

    def _steps(self, labels: Labels, session: Session) -> DawidSkeneSteps:
        return DawidSkeneSteps(labels, session)

    def _estimates(
        self, steps: DawidSkeneSteps, parameters: DawidSkeneParameters
    ) -> dict[str, Any]:
        return {
            "reliability": steps.reliability(parameters),
            "parameters": {
                "prior": parameters.prior,
                "rates": steps.session.to_host(parameters.confusion, 1),
            },
        }

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit = self.result_
        assert fit.distribution is not None
        posterior = fit.distribution.rows(item, fit.data.n_categories)
        return mixed_confusion(posterior, self.confusion_.transpose(1, 0, 2), annotator)

    def label_log_odds(self, first: Codes, second: Codes) -> Floats:
        """Return what each label adds to the log-odds of one category of its item over another."""
        confusion = dawid_skene_parameters(self.result_).confusion.transpose(1, 0, 2)
        return confusion_log_odds(self._local_result().data, confusion, first, second)

    @property
    def confusion_(self) -> Floats:
        """The confusion matrices, annotators x true categories x labels."""
        confusion: Floats = dawid_skene_parameters(self.result_).confusion.transpose(1, 2, 0)
        return confusion

    @property
    def prevalence_(self) -> Floats:
        """The class prior, one number per category."""
        return dawid_skene_parameters(self.result_).prior


class OneCoinParameters(NamedTuple):
    """The class prior p[k] and the annotators' accuracies a[s]."""

    prior: Floats
    accuracy: Floats


class OneCoinEquations(ClassEquations[OneCoinParameters]):
    """The equations of `OneCoin`."""

    make = OneCoinParameters
    axes: ClassVar[Mapping[str, str]] = {"prior": "category", "accuracy": "annotator"}

    def m_step(self, expected: ExpectedCounts, old: OneCoinParameters | None) -> OneCoinParameters:
        """Return the shares of the classes and of right labels."""
        right = np.einsum("snn->s", expected.counts) / self.labels_per_annotator
        return OneCoinParameters(
            np.maximum(expected.classes / expected.classes.sum(), MIN_SHARE),
            np.minimum(right, 1.0),  # rounding
        )

    def tables(self, parameters: OneCoinParameters) -> EStepTables:
        """Return the class prior and the confusion matrices."""
        confusion = self.confusion(parameters)
        return EStepTables(parameters.prior, np.maximum(confusion, MIN_PROBABILITY))

    def acceleration(self) -> Squarem[OneCoinParameters]:
        """Extrapolate the prior and the accuracies."""
        return Squarem(OneCoinParameters, shares(axis=0), probabilities)

    def confusion(self, parameters: OneCoinParameters) -> Floats:
        """Return the confusion matrices, annotators x labels x classes."""
        accuracy = np.clip(parameters.accuracy, _OFF_BOUND, 1.0 - _OFF_BOUND)
        return one_coin_confusion(accuracy, self.n_categories)

    def class_prior(self, parameters: OneCoinParameters) -> Floats:
        """Return the class prior."""
        return parameters.prior

    def reliability(self, parameters: OneCoinParameters, expected: ExpectedCounts) -> Floats:
        """Return the accuracies."""
        return parameters.accuracy


@dataclass(kw_only=True)
class OneCoin(LatentClassEstimator):
    r"""The one-coin model: one accuracy per annotator, errors uniform over the other categories.

    Dawid and Skene's model with a single parameter per annotator, also called homogeneous
    Dawid-Skene: Zhang, Chen, Zhou and Jordan, "Spectral Methods Meet EM: A Provably Optimal
    Algorithm for Crowdsourcing", Journal of Machine Learning Research 17 (2016), section 3. An item
    is of class k with probability :math:`p_k`. Annotator s gives the right label with probability
    :math:`a_s`, and each of the N - 1 others with probability :math:`(1 - a_s) / (N - 1)`.

    Maximum likelihood by EM over E items:

    .. math::
        \text{E:}\quad T_{e,k} &\propto p_k \prod_{s \in l_e}
        a_s^{[r_{e,s} = k]} \left(\frac{1 - a_s}{N - 1}\right)^{[r_{e,s} \neq k]} \\
        \text{M:}\quad p_k &= \frac{1}{E} \sum_e T_{e,k}, \quad
        a_s = \frac{1}{|l_s|} \sum_{e \in l_s} T_{e,r_{e,s}}.

    The start is the observed shares for T. The log-likelihood increases with every step, and
    ``tol`` is compared with its change per label. Accuracies stay 1e-10 away from 0 and 1, so that
    no label is impossible.

    An item's distribution is the final :math:`T_e`, an annotator's reliability :math:`a_s`.
    With one number per annotator the model needs few labels, but it does not know biases: where
    annotators confuse particular classes, or one class is labelled better than another, it is
    overconfident and may be worse than the majority vote.

    Parameters
    ----------
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat" if item % 2 else "dog") for item in range(6) for name in "abc"]
    >>> labels += [(item, "eve", "cat") for item in range(6)]
    >>> at.OneCoin().fit(labels).result_.reliability.round(2).tolist()
    [1.0, 1.0, 1.0, 0.5]
    """

    name: ClassVar[str] = "one-coin"
    parameter_axes: ClassVar[Mapping[str, str] | None] = OneCoinEquations.axes

    def _equations(self, labels: LabelSummary) -> OneCoinEquations:
        return OneCoinEquations(labels)
