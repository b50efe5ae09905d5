"""Assess the people behind labels, given what a model says about the items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import (
    LOW_ACCURACY,
    NO_VERDICT,
    OTHER_OPINION,
    PARTLY_CARELESS,
    SPAMMER_BELOW,
    TOO_FEW,
    UNCLEAR,
)
from annotruth.models.people.passes import ItemStates, PeoplePasses
from annotruth.models.people.posterior import PeoplePosterior, people_posterior
from annotruth.models.people.strategies import BEHAVIORS, WRONG
from annotruth.models.people.verdicts import Accuracy, Verdicts, accuracy_of, judge
from annotruth.observations import LabelSummary

SURE, CLEAR_EVIDENCE = 0.9, 1.0
"""The probability and the evidence (ten to one) from which what labels say about somebody is clear."""


class People(NamedTuple):
    """What labels say about the people who gave them.

    Attributes
    ----------
    accuracy
        The probability that a label is right, with its interval.
    posterior
        The posterior of response strategies.
    verdicts
        Who is flagged or noticed.
    one_truth
        Whether every item has one right label.
    """

    accuracy: Accuracy
    posterior: PeoplePosterior
    verdicts: Verdicts
    one_truth: bool

    def reliability(self, mean: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """Return reliabilities and their intervals, given those of a model without own tendencies.

        Where the two disagree about whether most labels are serious, the one that allows for skills and
        tendencies of the annotator's own is right: it contains the other.
        """
        own, (own_low, own_high) = self.posterior.reliability, self.posterior.interval()
        differ = self.differ(mean)
        own_low, own_high = np.minimum(own_low, own), np.maximum(own_high, own)
        return tuple(  # type: ignore[return-value]
            np.where(differ, new, old)
            for new, old in ((own, mean), (own_low, low), (own_high, high))
        )

    def differ(self, reliability: Floats) -> NDArray[np.bool_]:
        """Return for whom reliabilities of a model without own tendencies say the opposite of clear evidence.

        Where opinions differ, only those who are flagged: that model has shifts of the annotator's own.
        """
        p_careless, evidence = self.posterior.p_careless, self.posterior.evidence
        differ: NDArray[np.bool_] = np.where(
            reliability < SPAMMER_BELOW,
            (p_careless < 1.0 - SURE) & (evidence < -CLEAR_EVIDENCE),
            (p_careless > SURE) & (evidence > CLEAR_EVIDENCE),
        )
        return (differ & self.one_truth) | (self.verdicts.flagged & (reliability >= SPAMMER_BELOW))

    def behaviors(
        self, labels: LabelSummary, lean: NDArray[np.object_], irregular: NDArray[np.object_]
    ) -> list[str]:
        """Return a short description of how each annotator labels.

        ``lean`` is that of serious annotators, ``irregular`` that of careless ones, empty where it is open.
        """
        verdicts, posterior = self.verdicts, self.posterior
        if verdicts.undecided:
            return [NO_VERDICT] * len(lean)
        names = np.array(labels.scale.names, dtype=object)
        likeliest = posterior.behaviors.argmax(axis=1)
        careless = np.array(BEHAVIORS, dtype=object)[likeliest]
        repeats = likeliest == BEHAVIORS.index("repeated")
        careless = np.where(repeats, "repeated " + names[posterior.careless.repeated], careless)
        careless = np.where(irregular != "", irregular, careless)
        wrong = "consistently wrong" if self.one_truth else "inverted"
        careless = np.where(posterior.groups[:, WRONG] > 0.5, wrong, careless)
        found = np.where(verdicts.too_few, TOO_FEW, lean)
        for mask, name in (
            (verdicts.unclear, UNCLEAR),
            (verdicts.partly_careless, PARTLY_CARELESS),
            (verdicts.low_accuracy, LOW_ACCURACY),
            (verdicts.other_opinion, OTHER_OPINION),
        ):
            found = np.where(mask, name, found)
        listed: list[str] = np.where(verdicts.flagged, careless, found).tolist()
        return listed


def assess_people(
    session: Session, labels: LabelSummary, states: ItemStates, reliability: Floats
) -> People:
    """Return what labels say about the people who gave them.

    ``reliability`` is a first estimate, by which the crowd's serious labels are weighted.
    """
    passes = PeoplePasses(session, labels, states)
    cavities = passes.cavities()
    posterior = people_posterior(passes, cavities, reliability)
    accuracy = accuracy_of(cavities, labels.labels_per_annotator.astype(np.float64))
    verdicts = judge(passes, cavities, posterior, accuracy)
    return People(accuracy, posterior, verdicts, states.one_truth)
