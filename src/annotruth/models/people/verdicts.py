r"""Assess the people behind labels: who is flagged, who is only noticed, and where nobody can be.

A *flag* is an accusation. Annotators are flagged as careless or consistently wrong if all of these hold:

- There are ten labels or more that can be compared. They are at least ten times likelier if they are not serious,
  and the probability of that is 0.9 or more.
- The items explain nothing: the own shares of labels predict the labels better than a serious annotator with the
  same shares would (by :math:`10^{1/2}`), or there is one label only, or, on classes without an order, the
  evidence is a hundred to one, from many labels. Strict and biased people are not careless.
- Plain counts do not contradict: the agreement with the others' labels is not clearly above that of the own labels
  shuffled over the own items.
- Among all who are flagged, at most 5% are expected to be fine (the mean probability of that). Where opinions differ,
  disagreement has one more cause: at most 1%, or the evidence is a hundred to one.

Those who disagree with the crowd may agree with one another: a *camp*. Everybody is also compared with the others
outside of it, and its members with these only. Where members agree clearly with one another they are flagged only if
they contradict the others more than chance does, or exchange labels consistently; otherwise theirs is another opinion.
If the camp is more than 40% of those who follow either side, it is open which side is right, and there are no verdicts
on people at all.

Thresholds are conventions. A *notice* is not a flag: the accuracy is clearly below two thirds of the way from
chance to that of the crowd ("low accuracy"), or the labels are serious in part only ("partly careless").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

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
from annotruth.models.people.passes import Agreement, Cavities, ItemStates, PeoplePasses
from annotruth.models.people.posterior import CLEARLY, PeoplePosterior, people_posterior
from annotruth.models.people.strategies import BEHAVIORS, WRONG
from annotruth.observations import LabelSummary

Mask = NDArray[np.bool_]

_STRONG_EVIDENCE = 2.0
_ITEM_EVIDENCE, _NO_ITEM_EVIDENCE = 0.5, -0.1
_ONE_LABEL = 0.95
_FALSE_DISCOVERIES, _FEW_FALSE_DISCOVERIES = 0.05, 0.01
_CLEARLY_WHERE_OPINIONS_DIFFER = 1.64
_CAMP_ROUNDS, _CAMP_SUSPECT, _CAMP_MEMBER, _CAMP_CLEAR, _CAMP_AGREES = 3, -1.5, 1.0, 3.0, 4.0
_CAMP_GAIN, _MAX_CAMP_SHARE = 0.1, 0.4
_LEAST_MEMBERS = 3  # two may agree by chance
_LOW_SHARE = 2.0 / 3.0
_OPEN = 0.1
_LEAST_LABELS, _LEAST_LABELS_OF_FLAGGED = 5, 10
_LITTLE_EVIDENCE = 0.5
_Z_95 = 1.96
_VARIANCE_INFLATION, _ROUNDING_VARIANCE = 1.5, 0.25

SURE, CLEAR_EVIDENCE = 0.9, 1.0
"""The probability and the evidence (ten to one) from which what labels say about somebody is clear."""

MANY_LABELS = 30
"""With as many labels, an open question is not one of too few labels."""

SHARED_ERROR = 0.3
"""Standard deviation, on the logit scale, of the error of accuracies that all people of a crowd share.

Items may be harder, or their probabilities less calibrated, than the labels show: nothing in the labels says by
how much. Odds may be wrong by a factor of 1.8 either way.
"""


class Camp(NamedTuple):
    """People who disagree with the crowd and agree with one another."""

    members: Mask
    among: Agreement  # how far everybody agrees with members
    outside: Agreement  # and with everybody else
    share: float  # of those who follow either side, in people or labels


class Verdicts(NamedTuple):
    """Verdicts on people."""

    flagged: Mask  # careless or consistently wrong, by all rules above
    other_opinion: Mask  # members of a camp with an opinion of its own
    # notices
    low_accuracy: Mask
    partly_careless: Mask
    # fewer than five labels that can be compared, or fewer than `MANY_LABELS` and it is open
    # whether they are careless: a probability of 0.1 or more, or evidence of less than
    # the square root of ten to one against it
    too_few: Mask
    unclear: Mask  # the same with more labels: they follow the items too weakly to tell
    undecided: bool  # whether nobody can be assessed, since it is open which of two sides is right
    # agreement with the others' labels: 1 if they predict the own labels exactly, 0 for shuffled
    # ones
    agreement: Floats


class Accuracy(NamedTuple):
    """The probability that a label is right, with its 95% interval, and its standard error without `SHARED_ERROR`."""

    mean: Floats
    low: Floats
    high: Floats
    error: Floats


def accuracy_of(cavities: Cavities, n_labels: Floats) -> Accuracy:
    """Return annotators' accuracies.

    The mean is that of the items' probabilities of the own labels. Its variance, on the logit scale, is that of the
    items' posteriors, of how far the own labels confirm themselves, and of `SHARED_ERROR`.
    """
    n = np.maximum(n_labels, 1.0)
    mean = np.clip(cavities.accuracy, 1e-6, 1.0 - 1e-6)
    has_cavity = cavities.agreement.n_labels > 0
    confirmed = np.where(has_cavity, cavities.accuracy - cavities.accuracy_by_others, 0.5)
    sampling = _VARIANCE_INFLATION * cavities.variance + _ROUNDING_VARIANCE / n**2
    slope = np.maximum(mean * (1.0 - mean), 0.25 / n)
    width = _Z_95 * np.sqrt((sampling + confirmed**2) / slope**2 + SHARED_ERROR**2)
    low, high = (expit(logit(mean) + sign * width) for sign in (-1.0, 1.0))
    return Accuracy(mean, low, high, np.sqrt(sampling))


def judge(
    passes: PeoplePasses,
    cavities: Cavities,
    posterior: PeoplePosterior,
    accuracy: Accuracy,
) -> Verdicts:
    """Return the verdicts on people."""
    one_truth = passes.states.one_truth
    suspect = (posterior.p_careless >= SURE) & (posterior.evidence >= CLEAR_EVIDENCE)
    with_others = passes.agreement()
    z = with_others.z
    other_opinion = np.zeros(len(z), dtype=np.bool_)
    is_wrong = posterior.groups[:, WRONG] > 0.5
    camp = find_camp(passes, cavities, with_others, suspect)
    undecided = False
    if camp is not None:
        z = np.where(camp.members, camp.outside.z, np.maximum(z, camp.outside.z))
        agree = camp.members & (camp.among.z > _CAMP_CLEAR)
        agree &= camp.among.corrected > camp.outside.corrected
        other_opinion = agree & (camp.outside.z > -CLEARLY) & ~is_wrong
        undecided = camp.share > _MAX_CAMP_SHARE
    decided = not undecided
    clearly = CLEARLY if one_truth else _CLEARLY_WHERE_OPINIONS_DIFFER
    flagged = suspect & (with_others.n_labels >= _LEAST_LABELS_OF_FLAGGED) & decided
    flagged &= ~other_opinion & (z <= clearly) & (_ignores_items(passes, posterior) | is_wrong)
    flagged[flagged] = _control_discoveries(posterior.p_careless[flagged], _FALSE_DISCOVERIES)
    if not one_truth:
        few = _control_discoveries(posterior.p_careless[flagged], _FEW_FALSE_DISCOVERIES)
        flagged[flagged] = few | (posterior.evidence[flagged] >= _STRONG_EVIDENCE)
    low = _has_low_accuracy(passes, cavities, accuracy, flagged) & ~flagged & decided
    partly = (posterior.p_partly > SURE) & ~flagged & ~low & decided
    says_little = (posterior.p_careless >= _OPEN) | (posterior.evidence > -_LITTLE_EVIDENCE)
    is_open = says_little & ~(flagged | other_opinion | low | partly)
    too_few = with_others.n_labels < np.where(is_open, MANY_LABELS, _LEAST_LABELS)
    return Verdicts(
        flagged=flagged,
        other_opinion=other_opinion & suspect & decided,
        low_accuracy=low,
        partly_careless=partly,
        too_few=too_few & ~(flagged | low | partly),
        unclear=is_open & ~too_few & decided,
        undecided=undecided,
        agreement=with_others.corrected,
    )


def _ignores_items(passes: PeoplePasses, posterior: PeoplePosterior) -> Mask:
    """Return whose labels the items do not explain, or who gave one label only."""
    counts, evidence = passes.compared, posterior.item_evidence
    n_labels = counts.sum(axis=1)
    one_label = counts.max(axis=1) >= _ONE_LABEL * n_labels
    ignores: Mask = (evidence >= _ITEM_EVIDENCE) | (one_label & (evidence > _NO_ITEM_EVIDENCE))
    if not passes.labels.scale.is_ordinal:
        ignores |= (posterior.evidence >= _STRONG_EVIDENCE) & (n_labels >= MANY_LABELS)
    return ignores


def _control_discoveries(p_careless: Floats, rate: float) -> Mask:
    """Return who of the candidates is flagged: as many as are fine with a mean probability of at most the rate."""
    order = np.argsort(-p_careless, kind="stable")
    mean = np.cumsum(1.0 - p_careless[order]) / np.arange(1, len(order) + 1)
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order[mean <= rate]] = True
    return chosen


def find_camp(
    passes: PeoplePasses, cavities: Cavities, with_others: Agreement, suspect: Mask
) -> Camp | None:
    """Return those who disagree with the crowd and agree with one another; None if there is no such group."""
    z = cavities.agreement.z
    members = (suspect | (z < _CAMP_SUSPECT)) & (with_others.n_labels >= 3)
    among = None
    for _ in range(_CAMP_ROUNDS):
        if members.sum() < _LEAST_MEMBERS:
            return None
        among = passes.agreement(members)
        kept = members & (among.z > _CAMP_MEMBER)
        if (kept == members).all():
            break
        members, among = kept, None
    if members.sum() < _LEAST_MEMBERS:
        return None
    among = among or passes.agreement(members)
    n_labels = among.n_labels[members]
    pooled = among.excess[members].sum() / np.sqrt(max(among.variance[members].sum(), 1e-12))
    gain = among.corrected[members] @ n_labels / max(n_labels.sum(), 1.0)
    if pooled < _CAMP_AGREES or gain < _CAMP_GAIN:
        return None
    sides = members | (z > _CAMP_MEMBER)
    n_all = passes.labels.labels_per_annotator
    share = max(members.sum() / sides.sum(), n_all[members].sum() / n_all[sides].sum())
    return Camp(members, among, passes.agreement(~members), float(share))


def _has_low_accuracy(
    passes: PeoplePasses, cavities: Cavities, accuracy: Accuracy, flagged: Mask
) -> Mask:
    """Return whose accuracy is clearly below two thirds of the way from chance to that of the crowd."""
    known = ~flagged & (cavities.agreement.n_labels >= _LEAST_LABELS)
    if not known.any():
        return np.zeros(len(flagged), dtype=np.bool_)
    chance = 1.0 / passes.labels.n_categories
    if passes.states.one_truth:
        chance = float(np.median(cavities.agreement.chance[~flagged]))
    typical = float(np.median(accuracy.mean[known]))
    limit = chance + _LOW_SHARE * (typical - chance)
    is_low: Mask = accuracy.mean + _Z_95 * accuracy.error < limit
    return is_low & (cavities.agreement.n_labels >= _LEAST_LABELS)


class People(NamedTuple):
    """What labels say about the people who gave them."""

    accuracy: Accuracy  # the probability that a label is right, with its interval
    posterior: PeoplePosterior  # the posterior of response strategies
    verdicts: Verdicts  # who is flagged or noticed
    one_truth: bool  # whether every item has one right label

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
