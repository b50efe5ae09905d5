"""What RobustGPM learns from held-out labels: subtypes, concentration, correlation of labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, softmax

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats
from annotruth.kernels.shared import NEVER
from annotruth.models.em import EMLoop, run_em
from annotruth.models.evidence.chance import Folds
from annotruth.models.robust_gpm.class_steps import AnnotatorCounts, ClassSteps
from annotruth.models.robust_gpm.states import TrueClasses
from annotruth.observations import LabelSummary

N_SUBTYPES = 3
"""The number of subtypes per class that is compared with none."""

CONCENTRATIONS = (1024.0, 16.0, 4.0)
"""The concentrations of annotators' confusion matrices that are compared, falling."""

CORRELATIONS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8])
"""The correlations of an item's labels that are compared, rising."""

_N_CORRELATIONS = len(CORRELATIONS)
# Before the labels: none with probability one half, and all others alike.
_CORRELATION_PRIOR = np.where(CORRELATIONS == 0.0, 0.5, 0.5 / (_N_CORRELATIONS - 1))

_MIN_HELD_LABELS = 50  # with fewer, nothing is concluded
# Standard errors of a difference: a simpler candidate is preferred within one; those that are behind by
# more than four after some of the folds are not fitted to the others.
_PREFERRED_WITHIN, _DROPPED_BEYOND = 1.0, 4.0
_LOOP = EMLoop(tol=1e-3, max_iter=100)


class Candidate(NamedTuple):
    """A model of items with one right label that is compared with others by held-out labels."""

    n_subtypes: int  # the number of subtypes per class
    # how many labels per state count as much as what an annotator's strategies expect
    concentration: float
    # whether the crowd's confusion matrix is learned; otherwise serious labels are right
    learn_crowd: bool

    def items(self, labels: LabelSummary, known_truth: Floats | None = None) -> TrueClasses:
        """Return the latent states of items, with another table of known truths if given."""
        items = TrueClasses(labels, self.n_subtypes, learn_crowd=self.learn_crowd)
        if known_truth is not None:
            items.known_truth = known_truth
        return items

    def steps(self, labels: LabelSummary, session: Session, held: int = NEVER) -> ClassSteps:
        """Return the steps of EM."""
        return ClassSteps(self.items(labels), session, self.concentration, held)


class HeldOutChoice(NamedTuple):
    """What held-out labels say."""

    candidate: Candidate  # the model
    correlation: float  # the correlation of an item's labels, given its state

    def to_array(self) -> Floats:
        """Return all of it as numbers, to be saved."""
        return np.array([*self.candidate, self.correlation], dtype=np.float64)

    @classmethod
    def from_array(cls, numbers: Floats) -> HeldOutChoice:
        """Return the choice that `to_array` returned as numbers."""
        n_subtypes, concentration, learn_crowd, correlation = numbers.tolist()
        return cls(Candidate(int(n_subtypes), concentration, bool(learn_crowd)), correlation)


class Alternative(NamedTuple):
    """The best candidate of the other sort: with a crowd that is learned, or whose serious labels are right."""

    candidate: Candidate  # the model
    weight: float  # the probability that it predicts labels better than the chosen one does


class HeldOutScores(NamedTuple):
    """Sums over held-out labels, by which predictors are compared.

    Predictor m C + i is candidate m with the i-th of C correlations.
    """

    candidates: list[Candidate]
    total: Floats  # the number of labels, and the sum of their log-probabilities by each predictor
    products: Floats  # sums of products of the log-probabilities by two predictors

    @classmethod
    def none(cls, candidates: list[Candidate]) -> HeldOutScores:
        """Return the sums over no labels."""
        n = len(candidates) * _N_CORRELATIONS
        return cls(candidates, np.zeros(n + 1), np.zeros((n, n)))

    @property
    def n_labels(self) -> float:
        """The number of labels."""
        return float(self.total[0])

    def plus(self, total: Floats, products: Floats) -> HeldOutScores:
        """Return the sums with those over more labels added."""
        return HeldOutScores(self.candidates, self.total + total, self.products + products)

    def choice(self) -> tuple[HeldOutChoice, Alternative | None]:
        """Return the simplest candidate within one standard error of the best, and its alternative."""
        chosen = self._close_to_best(_PREFERRED_WITHIN)[0]
        candidate = self.candidates[chosen]
        posterior = softmax(np.log(_CORRELATION_PRIOR) + self._log_likelihood()[chosen])
        choice = HeldOutChoice(candidate, float(posterior @ CORRELATIONS))
        learned = np.array([one.learn_crowd for one in self.candidates])
        others = np.flatnonzero(learned != candidate.learn_crowd)
        if not len(others):
            return choice, None
        other = int(others[self._log_likelihood().max(axis=1)[others].argmax()])
        gap, error = self._difference(chosen, other)
        weight = float(ndtr(-gap / error)) if error > 0.0 else 0.0
        return choice, Alternative(self.candidates[other], weight)

    def without_clearly_worse(self) -> HeldOutScores:
        """Return the scores of candidates that further labels may still prove to be the best."""
        if self.n_labels < _MIN_HELD_LABELS:
            return self
        kept = self._close_to_best(_DROPPED_BEYOND)
        places = np.arange(len(self.total) - 1).reshape(-1, _N_CORRELATIONS)[kept].ravel()
        return HeldOutScores(
            [self.candidates[m] for m in kept],
            self.total[np.append(0, places + 1)],
            self.products[np.ix_(places, places)],
        )

    def _log_likelihood(self) -> Floats:
        """Return the log-likelihood of the labels, candidates x correlations."""
        return self.total[1:].reshape(-1, _N_CORRELATIONS)

    def _close_to_best(self, n_errors: float) -> list[int]:
        """Return the candidates that are within some standard errors of the best one."""
        best = int(self._log_likelihood().max(axis=1).argmax())
        differences = [self._difference(best, m) for m in range(len(self.candidates))]
        return [m for m, (gap, error) in enumerate(differences) if gap <= n_errors * error]

    def _difference(self, first: int, second: int) -> tuple[float, float]:
        """Return how far one candidate is ahead of another per label, and the standard error of that.

        Each has its best correlation.
        """
        a, b = (m * _N_CORRELATIONS + self._log_likelihood()[m].argmax() for m in (first, second))
        n, products = self.total[0], self.products
        gap = (self.total[a + 1] - self.total[b + 1]) / n
        squared = products[a, a] - 2.0 * products[a, b] + products[b, b]
        return float(gap), float(np.sqrt(max(squared / n - gap**2, 0.0) / n))


def choose(
    labels: LabelSummary, session: Session, folds: Folds, max_states: int
) -> tuple[HeldOutChoice, Alternative | None]:
    r"""Return what held-out labels say, and the alternative to it; `assign_folds` has assigned them.

    The candidates are a crowd whose serious labels are right, and then, with a crowd that is learned,
    no subtypes or `N_SUBTYPES`, if there are at most ``max_states`` states, and all `CONCENTRATIONS`;
    each with all `CORRELATIONS`. Each is fitted to the labels that are not held out and predicts
    those that are; a candidate that is behind the best by four standard errors is not fitted to further
    folds. Of the candidates within one standard error of the best, each with its best correlation, the
    first is chosen. Its correlation is the posterior mean by the likelihood of held-out labels, with a prior
    probability of one half for none: with few labels per item these say little about it, and none would
    make items too certain. The alternative is the best candidate with a crowd that is learned, if the chosen one
    has none, or the reverse; None if it is clearly worse.
    """
    numbers = [m for m in (1, N_SUBTYPES) if m == 1 or m * labels.n_categories <= max_states]
    right = Candidate(1, max(CONCENTRATIONS), learn_crowd=False)
    learned = [Candidate(m, c, learn_crowd=True) for m in numbers for c in CONCENTRATIONS]
    scores = HeldOutScores.none([right, *learned])
    for held in range(folds.n_folds):
        scores = scores.plus(**_score_fold(labels, session, held, scores.candidates))
        scores = scores.without_clearly_worse()
    if scores.n_labels < _MIN_HELD_LABELS:
        return HeldOutChoice(right, 0.0), None
    return scores.choice()


def _score_fold(
    labels: LabelSummary, session: Session, held: int, candidates: list[Candidate]
) -> dict[str, Floats]:
    """Return sums of the log-probabilities of one fold's labels, and of their products."""
    fitted, observed = [], {}
    for candidate in candidates:
        steps = candidate.steps(labels, session, held)
        n_subtypes = steps.items.n_subtypes
        if n_subtypes not in observed:
            observed[n_subtypes] = steps.observed_counts()
        end, _ = run_em(steps, steps.start(observed[n_subtypes]), _LOOP, warn=False)
        fitted.append((end, steps.annotator_counts(end)))
    parameters, tables = zip(*fitted, strict=True)
    counts = AnnotatorCounts(*(np.concatenate(one, axis=2) for one in zip(*tables, strict=True)))
    n_states = [len(one.prior) for one in parameters]
    n_predictors = len(candidates) * _N_CORRELATIONS
    score = Pass(
        "item_states.score",
        ("fold",),
        (
            *(Input("held"), Input("prior"), Input("known_truth")),
            Input("counts", annotator_axis=0),
            Input("pseudo_counts", annotator_axis=0),
            *(Input("first_state"), Input("correlations")),
        ),
        (Sum("total", (n_predictors + 1,)), Sum("products", (n_predictors, n_predictors))),
    )
    return session.run_pass(
        score,
        held=held,
        prior=np.concatenate([one.prior for one in parameters]),
        known_truth=np.concatenate([one.items(labels).known_truth for one in candidates], axis=1),
        **counts._asdict(),
        first_state=np.cumsum([0, *n_states]),
        correlations=CORRELATIONS,
    )
