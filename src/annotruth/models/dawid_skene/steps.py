"""Dawid and Skene's steps over a session."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Pass, Session
from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary
from annotruth.models.em import Monitor
from annotruth.models.squarem import Squarem, shares

_SHARED_BY = (None, 1)  # the rates are by annotator, in the middle


class Parameters(NamedTuple):
    """What the items share: the class prior p[k], and the annotators' confusion pi[s, k, l]."""

    prior: Floats
    rates: Floats  # pi as labels x annotators x classes, the order in which the kernels read it


class Counts(NamedTuple):
    """What the parameters are shares of: sums of the items' posteriors."""

    rates: Floats  # over each annotator's labels: labels x annotators x classes
    classes: Floats


class Steps:
    """The equations over a session; posteriors leave it only at the end."""

    def __init__(self, labels: LabelSummary, session: Session) -> None:
        classes = labels.n_categories
        self._session = session
        self._n_labels = labels.n_labels
        self._n_classes = classes
        counts = (classes, labels.n_annotators, classes)
        self._start = Pass("dawid_skene.start", ("rows",), (counts, (classes,)), sums_by=(1, None))
        self._step = Pass(
            "dawid_skene.step",
            ("rows",),
            (counts, (classes,), (1,)),
            shared_by=_SHARED_BY,
            sums_by=(1, None, None),
        )
        self._posterior = Pass(
            "dawid_skene.posterior", ("rows", "posterior"), ((1,),), shared_by=_SHARED_BY
        )

    def ready(self) -> Counts:
        """Note where each label's rates lie; counts with the observed shares as posteriors."""
        self._session.allocate("rows", per="labels")
        return Counts(*self._session.run_pass(self._start))

    def start(self) -> Parameters:
        """Begin with the observed shares as posteriors."""
        counts, classes = self.ready()
        return _normalised(counts, classes, np.full((1, 1, 1), 1.0 / self._n_classes))

    def step(self, old: Parameters) -> tuple[Parameters, Monitor]:
        """Pass the labels once, then normalise the counts."""
        counts, classes, (log_likelihood,) = self._session.run_pass(self._step, *old)
        new = _normalised(counts, classes, old.rates)
        return new, Monitor(float(log_likelihood), float(log_likelihood) / self._n_labels)

    def counted(self, at: Parameters) -> Counts:
        """Count posteriors, without a step."""
        counts, classes, _ = self._session.run_pass(self._step, *at)
        return Counts(counts, classes)

    def read_out(self, parameters: Parameters) -> float:
        """Compute the posterior of the final parameters, and the log-likelihood."""
        self._session.allocate("posterior", per="items", shape=(self._n_classes,))
        ((log_likelihood,),) = self._session.run_pass(self._posterior, *parameters)
        return float(log_likelihood)


def acceleration() -> Squarem[Parameters]:
    """Leap with prior and rates."""
    return Squarem(Parameters, shares(axis=0), shares(axis=0))


def _normalised(counts: Floats, classes: Floats, old_rates: Floats) -> Parameters:
    """Turn counts into rates, in place; a class of which s saw nothing keeps its old ones."""
    seen = counts.sum(axis=0)
    np.divide(counts, seen, out=counts, where=seen > 0)
    np.copyto(counts, old_rates, where=seen == 0)
    return Parameters(classes / classes.sum(), counts)


def right(counts: Counts) -> Floats:
    """Count the labels of each annotator that name the item's class."""
    named: Floats = np.einsum("ksk->s", counts.rates)
    return named
