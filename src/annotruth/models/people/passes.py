"""Passes over the labels that compare each annotator with the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.shared import AGREEMENT_MOMENTS, CAVITY_MOMENTS, LEAST_LABEL_PROBABILITY
from annotruth.observations import LabelSummary

_STATE_INPUTS = (
    *(Input("prior"), Input("known_truth")),
    *(Input("counts", annotator_axis=0), Input("pseudo_counts", annotator_axis=0)),
    *(
        Input("log_share", annotator_axis=0),
        Input("correlation"),
        Input("weight", annotator_axis=0),
    ),
)


class ItemStates(NamedTuple):
    """What a fitted model says about items: all that people are assessed by. All arrays are in memory."""

    # the share of items in each latent state, and the likelihood of a known truth, categories x
    # states
    prior: Floats
    known_truth: Floats
    # annotators' labels in each state and what is added to them, annotators x (categories + 1) x
    # states, with totals after the last category
    counts: Floats
    pseudo_counts: Floats
    correlation: float  # of the labels of an item within its state
    serious: Floats  # the crowd's distribution of serious labels, categories x states
    right_labels: Floats  # the distribution of the label that counts as right, states x categories
    class_of: Codes | None  # the class of each state; None where opinions differ

    @property
    def one_truth(self) -> bool:
        """Whether every item has one right label."""
        return self.class_of is not None


class Agreement(NamedTuple):
    """How far annotators' labels agree with others', against their own labels shuffled over their items."""

    n_labels: Floats  # how many labels are compared
    # the agreement less its expectation over all permutations of the annotator's labels, in
    # standard deviations; 0 for annotators who gave one label only
    z: Floats
    # numerator and squared denominator of z, and the mean agreement of shuffled labels
    excess: Floats
    variance: Floats
    chance: Floats
    # 1 for labels that the others predict exactly, 0 for shuffled ones: on classes the agreement
    # corrected for chance, on scales the correlation
    corrected: Floats


class Cavities(NamedTuple):
    """Sums over annotators' labels, given what the others say about the items."""

    states: Floats  # the sum of the items' posteriors without the own labels, annotators x states
    agreement: Agreement  # how far the labels agree with these posteriors
    # the mean probability that a label is right given all labels of its item, and the variance of
    # the share of right labels
    accuracy: Floats
    variance: Floats
    # the mean probability that a label is right given the labels of others
    accuracy_by_others: Floats


class PeoplePasses:
    """Runs the passes for people in a session, and returns their sums in memory."""

    def __init__(self, session: Session, labels: LabelSummary, states: ItemStates) -> None:
        self.session, self.labels, self.states = session, labels, states
        self._shape = (labels.n_annotators, labels.n_categories)
        n_annotators = labels.n_annotators
        mass = states.counts + states.pseudo_counts
        share = np.maximum(mass[:, :-1] / mass[:, -1:], LEAST_LABEL_PROBABILITY)
        self._log_share = np.log(share, out=share)
        weight = labels.annotator_weight
        self._weight = np.ones(n_annotators) if weight is None else np.asarray(weight)
        self.compared = self._sums(
            Pass("people.count_compared", sums=(Sum("counts", self._shape, annotator_axis=0),))
        )["counts"]
        self._shares = self.compared / np.maximum(self.compared.sum(axis=1, keepdims=True), 1.0)

    def cavities(self) -> Cavities:
        """Compare annotators with the model's posteriors of items."""
        n_annotators, states = self.labels.n_annotators, self.states
        agreement = states.right_labels
        if not states.one_truth:
            # On scales, the correlation of the label's value with the expected one.
            values = self.labels.scale.values
            agreement = np.outer(states.right_labels @ values, values)
        one = Pass(
            "people.moments",
            inputs=(
                *_STATE_INPUTS,
                *(Input("agreement"), Input("right_labels"), Input("shares", annotator_axis=0)),
            ),
            sums=(
                Sum("states", (n_annotators, len(states.prior)), annotator_axis=0),
                Sum("moments", (n_annotators, CAVITY_MOMENTS), annotator_axis=0),
            ),
        )
        sums = self._over_cavities(
            one,
            agreement=np.ascontiguousarray(agreement),
            right_labels=states.right_labels,
            shares=self._shares,
        )
        moments, n_labels = sums["moments"], np.maximum(self.labels.labels_per_annotator, 1)
        return Cavities(
            sums["states"],
            self._agreement(moments, sums["states"] @ agreement),
            moments[:, 4] / n_labels,
            moments[:, 5] / n_labels**2,
            moments[:, 6] / np.maximum(moments[:, 0], 1.0),
        )

    def agreement(self, members: NDArray[np.bool_] | None = None) -> Agreement:
        """Compare annotators with the labels of the others, or of those among the members."""
        n_categories = self.labels.n_categories
        table = np.eye(n_categories)
        if not self.states.one_truth:
            table = np.outer(self.labels.scale.values, self.labels.scale.values)
        member = np.ones(self.labels.n_annotators) if members is None else members.astype(float)
        one = Pass(
            "people.agreement",
            inputs=(
                Input("member", annotator_axis=0),
                Input("table"),
                Input("shares", annotator_axis=0),
            ),
            sums=(
                Sum("sums", self._shape, annotator_axis=0),
                Sum("moments", (self._shape[0], AGREEMENT_MOMENTS), annotator_axis=0),
            ),
        )
        sums = self._sums(one, member=member, table=table, shares=self._shares)
        return self._agreement(sums["moments"], sums["sums"])

    def log_likelihood(self, **inputs: Floats | Codes) -> Floats:
        """Return each annotator's log-likelihood in every strategy, given the cavities."""
        shape = (self.labels.n_annotators, len(inputs["reliability"]))
        by_annotator = ("factor", "normaliser", "confused", "careless")
        one = Pass(
            "people.log_likelihood",
            inputs=(
                *_STATE_INPUTS,
                *(Input(name, 0 if name in by_annotator else None) for name in inputs),
            ),
            sums=(Sum("log_likelihood", shape, annotator_axis=0),),
            scratch=shape[0] * shape[1],
        )
        return self._over_cavities(one, **inputs)["log_likelihood"]

    def _agreement(self, moments: Floats, sums: Floats) -> Agreement:
        r"""Return the agreement, given sums over labels.

        With the own labels permuted over the n own items, the agreement :math:`\sum_i c_i(r_i)` has the mean
        :math:`n \sum_n p_n \bar c_n` and the variance :math:`(n \sum_n p_n C_{nn} - n \sum_{mn} p_m p_n
        C_{mn}) / (n - 1)`, where C are the sums of squares and products of c about their means.
        """
        n, total, square, product = moments.T[:4]
        mean = sums / np.maximum(n, 1.0)[:, np.newaxis]
        expected = (self._shares * mean).sum(axis=1)
        spread = square - n * (self._shares * mean**2).sum(axis=1) - (product - n * expected**2)
        variance = n * spread / np.maximum(n - 1.0, 1.0)
        scale = np.maximum(square, 1e-300)
        variance = np.where(variance > 1e-9 * scale, variance, 0.0)
        excess = np.where(variance > 0.0, total - n * expected, 0.0)
        z = excess / np.sqrt(np.where(variance > 0.0, variance, 1.0))
        if self.states.one_truth:
            corrected = excess / np.maximum(n * (1.0 - expected), 1e-9)
        else:
            corrected = z / np.sqrt(np.maximum(n - 1.0, 1.0))
        return Agreement(n, z, excess, variance, expected, corrected)

    def _over_cavities(self, one: Pass, **inputs: Floats | Codes) -> dict[str, Floats]:
        """Run a pass over cavities. Annotators whose labels count less depend on one another.

        They are left out together.
        """
        states = self.states
        run: Callable[[Floats], dict[str, Floats]] = lambda weight: self._sums(
            one,
            prior=states.prior,
            known_truth=states.known_truth,
            counts=states.counts,
            pseudo_counts=states.pseudo_counts,
            log_share=self._log_share,
            correlation=states.correlation,
            weight=weight,
            **inputs,
        )
        sums = run(self._weight)
        dependent = self._weight < 1.0
        if dependent.any():
            without = run(np.where(dependent, 0.0, self._weight))
            for name, total in sums.items():
                total[dependent] = without[name][dependent]
        return sums

    def _sums(self, one: Pass, **inputs: object) -> dict[str, Floats]:
        sums = self.session.run_pass(one, **inputs)
        return {name: np.array(self.session.to_host(total)) for name, total in sums.items()}
