"""Dawid and Skene's equations over a session."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary
from annotruth.models.base_fit import BaseFit
from annotruth.models.em import Monitor
from annotruth.models.squarem import Squarem, shares
from annotruth.models.warm_start import OFF_BOUND

_INPUTS = (Input("prior"), Input("known_truth"), Input("confusion", annotator_axis=1))


class DawidSkeneParameters(NamedTuple):
    """The class prior p[k], and the annotators' confusion matrices pi[s, k, l].

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.dawid_skene.steps import DawidSkeneParameters
    >>> DawidSkeneParameters(np.full(2, 0.5), np.full((2, 3, 2), 0.5)).prior
    array([0.5, 0.5])
    """

    prior: Floats
    confusion: Floats  # pi as labels x annotators x classes, the order in which the kernels read it


class DawidSkeneSteps:
    """Dawid and Skene's EM over a session; posteriors leave it only at the end.

    Parameters
    ----------
    labels, session
        The labels, or their summary, and the session they are open in.
    known_truth
        The likelihood of what is known about items beside their labels, by class; by default that of
        known truths.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.dawid_skene.steps import DawidSkeneSteps
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 1)])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     parameters = DawidSkeneSteps(labels, session).start()
    >>> parameters.prior.tolist()  # the observed shares, averaged over items
    [0.75, 0.25]
    """

    objective_name = "the log-likelihood per label"

    def __init__(
        self, labels: LabelSummary, session: Session, known_truth: Floats | None = None
    ) -> None:
        n_classes = labels.n_categories
        self._known_truth = np.eye(n_classes) if known_truth is None else known_truth
        self._session = session
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
        self._session.allocate("rows", per="labels")
        sums = self._session.run_pass(self._start)
        uniform = np.full((1, 1, 1), 1.0 / self._n_classes)
        counts = sums["counts"]
        return _normalised(counts, sums["classes"], np.asarray(uniform, like=counts))

    def resume(self, previous: BaseFit) -> DawidSkeneParameters:
        """Return the parameters of a previous fit; new annotators start as in a first fit."""
        start, old = self.start(), dawid_skene_parameters(previous)
        confusion = self._session.to_host(start.confusion, 1)
        # No entry is 0: EM would keep it whatever the new labels are.
        confusion[:, : old.confusion.shape[1]] = old.confusion
        confusion = (1.0 - OFF_BOUND) * confusion + OFF_BOUND / self._n_classes
        prior = (1.0 - OFF_BOUND) * old.prior + OFF_BOUND / self._n_classes
        return DawidSkeneParameters(prior, self._session.to_engine(confusion, 1))

    def step(self, old: DawidSkeneParameters) -> tuple[DawidSkeneParameters, Monitor]:
        """Pass over the labels once, then normalise the counts."""
        sums = self._session.run_pass(self._step, **self._inputs(old))
        log_likelihood = float(sums["log_likelihood"][0])
        new = _normalised(sums["counts"], sums["classes"], old.confusion)
        return new, Monitor(log_likelihood, log_likelihood / self._n_labels)

    def finalize(self, parameters: DawidSkeneParameters) -> float:
        """Compute the posterior of every item; return the log-likelihood."""
        self._session.allocate("posterior", per="items", shape=(self._n_classes,))
        sums = self._session.run_pass(self._posterior, **self._inputs(parameters))
        return float(sums["log_likelihood"][0])

    def acceleration(self) -> Squarem[DawidSkeneParameters]:
        """Extrapolate the prior and the confusion matrices."""
        return Squarem(DawidSkeneParameters, shares(axis=0), shares(axis=0))

    def share_correct(self, parameters: DawidSkeneParameters) -> Floats:
        """Return the expected share of each annotator's labels that are the item's class."""
        counts = self._session.run_pass(self._step, **self._inputs(parameters))["counts"]
        correct = self._session.to_host(np.einsum("ksk->s", counts))
        return np.minimum(correct / self._labels_per_annotator, 1.0)  # rounding

    def _inputs(self, parameters: DawidSkeneParameters) -> dict[str, Floats]:
        return {**parameters._asdict(), "known_truth": self._known_truth}


def dawid_skene_parameters(fit: BaseFit) -> DawidSkeneParameters:
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
