r"""What is known of an annotator from other questions, as a prior: how much, and whether it helps.

The fit of question :math:`q'` alone gives annotator s a reliability r with a 95% interval of standard
deviation d. A Beta posterior after n serious or irregular labels and a uniform prior has

.. math:: r (1 - r) / d^2 = n + 3,

so the labels of :math:`q'` say as much as n labels, at most the number of labels, of which the share
:math:`p_{s,q'} = (r (n + 2) - 1) / n` was serious. Some questions are answered less seriously than
others, or look so because they are harder, so a share is moved by what the crowds differ on average,

.. math::
    \operatorname{logit} p_{s,q' \to q} = \operatorname{logit} p_{s,q'}
        + \operatorname{logit} \bar r_q - \operatorname{logit} \bar r_{q'},

and the prior of s in question q is

.. math:: \lambda \sum_{q' \neq q} n_{s,q'} (p_{s,q' \to q}, 1 - p_{s,q' \to q})

serious and irregular labels, together at most 100. It comes from fits of the other questions alone, so
no label counts twice.

Nothing is shared unless annotators' reliabilities in different questions correlate: with the reliabilities
:math:`z_{s,q}` of the fits of questions alone, standardised within questions and 0 where s gave no answer,
the sum :math:`\sum_{q < q'} \sum_s z_{s,q} z_{s,q'}` must be larger than if annotators are permuted within
questions, with p at most 0.1.

The strength :math:`\lambda` is one for all questions. Strengths are tried in rising order as long as the
held-out log-likelihood of the labels of all questions rises; the best one is taken if it is higher than
without sharing by more than a standard error, else 0. A prior also pulls reliabilities towards their mean,
which may help even if questions have nothing in common. So the score must also be higher than with priors
of the same weight that say the same of everybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import Estimator
from annotruth.models.em import ProgressCallback
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.columns.questions import every_annotator
from annotruth.observations.encode import match_ids
from annotruth.observations.truth import MAX_PSEUDO_COUNT
from annotruth.selection.choose import first_folds
from annotruth.selection.heldout import HeldOut, assign_folds, format_with_error, score_folds

STRENGTHS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""The strengths that are compared, in this order; 0 is no sharing."""

MAX_P_VALUE = 0.1
"""The largest p-value of the correlation of reliabilities with which anything is shared."""

_N_FOLDS = 5
_N_PERMUTATIONS = 199
# What serious shares are clipped to, as their logits are moved. The upper limit is the reliability of
# annotators who are always serious: a lower one would be evidence against them.
_SHARES = (0.005, 0.995)
_WIDTH = 2.0 * 1.96  # of a 95% interval, in standard deviations


@dataclass(frozen=True)
class Sharing:
    """How much of what is known of annotators is shared between questions, and why.

    Attributes
    ----------
    strength
        The strength of the prior from other questions; 0 if nothing is shared.
    why
        The reason, one sentence.
    gain, error
        By how much the mean log-probability per held-out label is higher than without sharing, and
        its standard error, of the best strength above 0; None if none was compared.
    scores
        The mean log-probability per held-out label of each strength that was compared.
    """

    strength: float
    why: str
    gain: float | None = None
    error: float | None = None
    scores: Mapping[float, float] = field(default_factory=lambda: MappingProxyType({}))

    def to_dict(self) -> dict[str, Any]:
        """Return the entries as JSON types."""
        return {
            "strength": self.strength,
            "why": self.why,
            "gain": self.gain,
            "error": self.error,
            "scores": {f"{strength:g}": score for strength, score in self.scores.items()},
        }


class ReliabilityEvidence(NamedTuple):
    """What the labels of one question say about its annotators, among those of all questions."""

    n_labels: Floats  # as how many labels of known seriousness each annotator's labels count
    serious_share: Floats  # the share of them that was serious
    crowd: float  # the mean reliability of the question's annotators

    @classmethod
    def of(cls, fit: Fit) -> ReliabilityEvidence:
        """Return what a fit says; labels that agree no better than chance say nothing."""
        nothing = np.zeros(fit.data.n_annotators)
        if fit.reliability is None or fit.low is None or fit.high is None:
            return cls(nothing, nothing + 0.5, 0.5)
        crowd = float(np.clip(fit.reliability.mean(), *_SHARES))
        if fit.verdict == "chance":
            return cls(nothing, nothing + 0.5, crowd)
        deviation = np.maximum((fit.high - fit.low) / _WIDTH, 1e-3)
        inner = np.clip(fit.reliability, *_SHARES)  # as the variance r (1 - r) vanishes at 0 and 1
        n = np.clip(inner * (1.0 - inner) / deviation**2 - 3.0, 0.0, fit.data.labels_per_annotator)
        share = (fit.reliability * (n + 2.0) - 1.0) / np.maximum(n, 1e-12)
        return cls(n, np.clip(share, *_SHARES), crowd)

    def among(self, codes: Codes, n_annotators: int) -> ReliabilityEvidence:
        """Return the evidence for more annotators; ``codes`` are the places of these."""
        n_labels, share = np.zeros(n_annotators), np.full(n_annotators, 0.5)
        n_labels[codes], share[codes] = self.n_labels, self.serious_share
        return ReliabilityEvidence(n_labels, share, self.crowd)

    def counts_at(self, crowd: float) -> Floats:
        """Return serious and irregular labels, annotators x 2, in a question with another mean."""
        odds = self.serious_share / (1.0 - self.serious_share)
        odds = odds * (crowd / (1.0 - crowd)) / (self.crowd / (1.0 - self.crowd))
        share = odds / (1.0 + odds)
        counts: Floats = self.n_labels[:, np.newaxis] * np.stack([share, 1.0 - share], axis=1)
        return counts


class SharedEvidence:
    """What the fits of all questions say about their annotators."""

    def __init__(self, fits: Mapping[str, Fit]) -> None:
        self._annotators = every_annotator(fit.data.annotators for fit in fits.values())
        self._of_question = {
            name: ReliabilityEvidence.of(fit).among(self.codes(fit.data), len(self._annotators))
            for name, fit in fits.items()
        }
        self._standardised = [(self.codes(fit.data), _standardised(fit)) for fit in fits.values()]

    def correlation_p_value(self) -> float:
        """Return how surprising the correlation of reliabilities in different questions is.

        It is the share of permutations of annotators within questions with a correlation as large,
        the order as it is among them.
        """
        rng = np.random.default_rng(0)
        # The squares of the sums are twice the products of pairs and what permutations do not change.
        observed = self._square_of_sums(None)
        n_as_large = sum(
            self._square_of_sums(rng) >= observed * (1.0 - 1e-9) for _ in range(_N_PERMUTATIONS)
        )
        return (1 + n_as_large) / (1 + _N_PERMUTATIONS)

    def _square_of_sums(self, rng: np.random.Generator | None) -> float:
        """Return the sum over annotators of the squared sum of their standardised reliabilities."""
        sums = np.zeros(len(self._annotators))
        for codes, values in self._standardised:
            sums[codes] += values if rng is None else rng.permutation(values)
        return float(sums @ sums)

    def codes(self, labels: Labels) -> Codes:
        """Return the code of each annotator of a question among those of all questions."""
        return match_ids(labels.annotators, self._annotators)

    def with_prior(
        self, question: str, labels: Labels, strength: float, *, same_for_all: bool = False
    ) -> Labels:
        """Return the labels of a question with the prior from the others, beside a given one.

        With ``same_for_all``, the prior has the crowd's share of serious labels for everybody.
        """
        if strength == 0.0:
            return labels
        crowd = self._of_question[question].crowd
        prior = np.zeros((len(self._annotators), 2))
        for name, evidence in self._of_question.items():
            if name != question:
                prior += strength * evidence.counts_at(crowd)
        prior = prior[self.codes(labels)]
        if same_for_all:
            share = prior.sum(axis=0) / max(float(prior.sum()), 1e-12)
            prior = prior.sum(axis=1, keepdims=True) * share
        if labels.annotator_prior is not None:
            prior += labels.annotator_prior
        total = prior.sum(axis=1, keepdims=True)
        prior *= np.minimum(1.0, MAX_PSEUDO_COUNT / np.maximum(total, 1e-12))
        return replace(labels, annotator_prior=prior)


def choose_sharing(
    fits: Mapping[str, Fit],
    estimators: Mapping[str, Estimator],
    evidence: SharedEvidence,
    progress: ProgressCallback | None = None,
) -> Sharing:
    """Return how much to share, chosen by held-out labels of all questions."""
    p_value = evidence.correlation_p_value()
    if p_value > MAX_P_VALUE:
        return Sharing(
            0.0,
            "annotators' reliability is not shared between questions: their reliabilities in "
            f"different questions do not correlate (permutation test, p = {p_value:.2f})",
        )
    folds = {}
    for name, fit in fits.items():
        try:
            folds[name] = first_folds(assign_folds(fit.data, _N_FOLDS, seed=0))
        except InputError:  # no label of this question can be predicted from the others
            continue
    if not folds:
        return Sharing(0.0, "no label can be predicted from others, so nothing is shared")
    codes = [evidence.codes(fits[name].data) for name in folds]

    def score(strength: float, number: int, *, same_for_all: bool = False) -> HeldOut:
        parts = [
            score_folds(
                estimators[name],
                evidence.with_prior(name, fits[name].data, strength, same_for_all=same_for_all),
                fold,
                progress,
                number=number,
                n_models=len(STRENGTHS) + 1,
            )
            for name, fold in folds.items()
        ]
        return _pooled(parts, codes)

    scores: dict[float, HeldOut] = {}
    for number, strength in enumerate(STRENGTHS, start=1):
        scores[strength] = score(strength, number)
        if strength > 0.0 and scores[strength].score < scores[STRENGTHS[number - 2]].score:
            break
    best = max((strength for strength in scores if strength > 0.0), key=lambda s: scores[s].score)
    gain, error = scores[best].ahead_of(scores[0.0])
    is_shared = gain > error
    if is_shared:
        is_shared = scores[best].score > score(best, len(STRENGTHS) + 1, same_for_all=True).score
    return _decide(scores, best, is_shared=is_shared)


def _standardised(fit: Fit) -> Floats:
    """Return reliabilities with mean 0 and variance 1; all 0 if they are alike."""
    if fit.reliability is None or not np.ptp(fit.reliability) > 0.0:
        return np.zeros(fit.data.n_annotators)
    values: Floats = (fit.reliability - fit.reliability.mean()) / fit.reliability.std()
    return values


def _pooled(parts: list[HeldOut], annotators: list[Codes]) -> HeldOut:
    """Return the scores of all questions as one: annotators are the same people, items are not."""
    item_starts = np.cumsum([0, *(int(part.item.max()) + 1 for part in parts)])
    return HeldOut(
        model=parts[0].model,
        log_p=np.concatenate([part.log_p for part in parts]),
        item=np.concatenate(
            [part.item + start for part, start in zip(parts, item_starts, strict=False)]
        ),
        annotator=np.concatenate(
            [codes[part.annotator] for part, codes in zip(parts, annotators, strict=True)]
        ),
        n_unscored=sum(part.n_unscored for part in parts),
        converged=all(part.converged for part in parts),
    )


def _decide(scores: Mapping[float, HeldOut], best: float, *, is_shared: bool) -> Sharing:
    """Return the best strength, or 0 if nothing is to be shared, with the reason."""
    alone = scores[0.0]
    gain, error = scores[best].ahead_of(alone)
    means = {strength: result.score for strength, result in scores.items()}
    found = f"{format_with_error(gain, error)} per held-out label, {alone.n_scored:,} scored"
    finite = error if math.isfinite(error) else None
    if is_shared:
        why = (
            f"annotators' reliability is shared between questions with strength {best:g} ({found})"
        )
        return Sharing(best, why, gain, finite, MappingProxyType(means))
    reason = "it does not predict better"
    if gain > error:
        reason = "it predicts no better than the crowd's mean reliability for everybody"
    why = f"annotators' reliability is not shared between questions: {reason} ({found})"
    return Sharing(0.0, why, gain, finite, MappingProxyType(means))
