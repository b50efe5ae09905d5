r"""The model of an annotator's reliability over time.

Label t of an annotator has the probability :math:`\epsilon_k S_t + (1 - \epsilon_k) I_t` at level k of
the reliability. An annotator is *constant*, with one level for all labels, or, with probability c,
*changing*: a hidden Markov chain that keeps its level from one label to the next with probability 1 - h
and otherwise draws it anew, all levels alike. The first level has the shares of levels in the crowd.
c and h are learned over the crowd, so that where labels do not say otherwise, annotators are constant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from annotruth.analyses.over_time.sequences import Sequences
from annotruth.analyses.over_time.windows import Windows
from annotruth.engines import Session
from annotruth.kernels.arrays import Floats
from annotruth.models.latent_classes import LabelEvidence

EXPECTED_CHANGES = (1.0, 2.0, 4.0)
"""The expected numbers of changes of a changing annotator that are compared."""

# Pseudo-annotators: behind the share of those who change, of whom half a one does, and behind the
# shares of levels.
_PSEUDO_ANNOTATORS, _PSEUDO_CHANGING, _PSEUDO_LEVELS = 5.0, 0.5, 1.0
_TOL, _MAX_ITER = 1e-6, 500
_MAX_LABELS = 200_000  # that the model is learned from, about


class ChangeModel(NamedTuple):
    """Parameters of the model."""

    levels: Floats  # the levels of reliability
    # the probability of each level at the first label, and after a jump
    start: Floats
    jump: Floats
    hazard: float  # h, the probability of a jump from one label to the next
    share: float  # c, the share of annotators who change

    def log_bayes_factors(self, session: Session, sequences: Sequences) -> Floats:
        """Return the log of how much more probable each sequence is if it changes."""
        return self.compare(session, sequences).log_bayes_factor

    def compare(self, session: Session, sequences: Sequences) -> ComparedSequences:
        """Compare each sequence as a changing one with a constant one."""
        logs, constant = np.zeros((sequences.n, 2)), np.empty((sequences.n, len(self.levels)))
        self._run(session, "likelihood", sequences, logs, constant)
        return ComparedSequences(logs[:, 1] - logs[:, 0], constant)

    def p_changing(self, log_bayes_factor: Floats) -> Floats:
        """Return the probability that a sequence changes."""
        p: Floats = expit(logit(self.share) + log_bayes_factor)
        return p

    def smooth(
        self, session: Session, sequences: Sequences, p_changing: Floats, windows: Windows
    ) -> Smoothed:
        """Return the posterior of the levels; ``windows`` are those of the same sequences."""
        n_labels = len(sequences.serious)
        smoothed = Smoothed(
            np.zeros((len(windows.place), len(self.levels))),
            np.zeros(n_labels),
            np.zeros((n_labels, 2)),
        )
        self._run(session, "smooth", sequences, p_changing, windows.begin, windows.end, *smoothed)
        return smoothed

    def _run(self, session: Session, kernel: str, sequences: Sequences, *arguments: Any) -> None:
        session.run_over_annotators(
            f"over_time.{kernel}",
            sequences.n,
            sequences.begin,
            sequences.end,
            sequences.serious,
            sequences.irregular,
            *self[:4],
            *arguments,
        )


class ComparedSequences(NamedTuple):
    """Sequences as changing ones and as constant ones."""

    log_bayes_factor: Floats  # the log of how much more probable each sequence is if it changes
    constant: Floats  # the posterior of each sequence's level if it is constant, sequences x levels


class Smoothed(NamedTuple):
    """The posterior of the levels of reliability at labels of some sequences, summed or averaged."""

    # the sum of the posteriors of the labels of each window if the annotator changes, windows x
    # levels
    by_window: Floats
    # the probability that a changing annotator's level at a label is another than before
    p_change: Floats
    # the mean reliability at each label without its own evidence, labels x 2: of a constant
    # annotator, and by the model. 0 at labels of other sequences.
    without: Floats


def learn_change_model(
    session: Session, sequences: Sequences, evidence: LabelEvidence
) -> ChangeModel:
    """Return the model that makes the labels of the crowd most probable; of many labels, of some.

    ``evidence.weights`` are the constant posteriors of those whose labels the sequences are.
    """
    n_levels, n = len(evidence.levels), len(evidence.weights)
    crowd = evidence.weights.sum(axis=0) + _PSEUDO_LEVELS / n_levels
    start, jump = crowd / (n + _PSEUDO_LEVELS), np.full(n_levels, 1.0 / n_levels)
    candidates = []
    step = -(-int(sequences.lengths.sum()) // _MAX_LABELS)
    sequences = sequences.take(np.arange(0, sequences.n, step))
    for n_changes in EXPECTED_CHANGES:
        hazard = n_changes / float(sequences.lengths.mean())
        model = ChangeModel(evidence.levels, start, jump, min(hazard, 0.5), share=0.5)
        factors = model.log_bayes_factors(session, sequences)
        share = _learn_share(factors)
        total = np.logaddexp(np.log(1.0 - share), np.log(share) + factors).sum()
        candidates.append((float(total), model._replace(share=share)))
    return max(candidates, key=lambda one: one[0])[1]


def _learn_share(log_bayes_factors: Floats) -> float:
    """Return the share of annotators who change, by EM."""
    share = _PSEUDO_CHANGING / _PSEUDO_ANNOTATORS
    for _ in range(_MAX_ITER):
        before = share
        changing = expit(logit(share) + log_bayes_factors).sum()
        share = float((changing + _PSEUDO_CHANGING) / (len(log_bayes_factors) + _PSEUDO_ANNOTATORS))
        if abs(share - before) < _TOL:
            break
    return share
