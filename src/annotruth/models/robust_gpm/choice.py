"""What RobustGPM learns from held-out labels: subtypes, concentration, correlation of labels."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.errors import ConvergenceWarning
from annotruth.kernels.arrays import Floats
from annotruth.kernels.shared import NEVER
from annotruth.labels import LabelSummary
from annotruth.models.base_fit import ExpectedCounts
from annotruth.models.em import run_em
from annotruth.models.robust_gpm.classes import (
    AnnotatorCounts,
    ClassParameters,
    ClassSteps,
    TrueClasses,
)
from annotruth.models.robust_gpm.resampling import Folds

N_SUBTYPES = 3
"""The number of subtypes per class that is compared with none."""

CONCENTRATIONS = (1024.0, 16.0, 4.0)
"""The concentrations of annotators' confusion matrices that are compared, falling."""

CORRELATIONS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8])
"""The correlations of an item's labels that are compared, rising."""

_MIN_HELD_LABELS = 50  # with fewer, nothing is concluded
_TOL, _MAX_ITER = 1e-3, 100


class Candidate(NamedTuple):
    """A model of items with one right label that is compared with others by held-out labels.

    Attributes
    ----------
    n_subtypes
        The number of subtypes per class.
    concentration
        How many labels per state count as much as what an annotator's strategies expect.
    learn_crowd
        Whether the crowd's confusion matrix is learned; otherwise serious labels are right.

    Examples
    --------
    >>> from annotruth.models.robust_gpm.choice import Candidate
    >>> Candidate(n_subtypes=3, concentration=16.0, learn_crowd=True).n_subtypes
    3
    """

    n_subtypes: int
    concentration: float
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
    """What held-out labels say.

    Attributes
    ----------
    candidate
        The model.
    correlation
        The correlation of an item's labels, given its state.

    Examples
    --------
    >>> from annotruth.models.robust_gpm.choice import Candidate, HeldOutChoice
    >>> choice = HeldOutChoice(Candidate(1, 1024.0, False), correlation=0.1)
    >>> HeldOutChoice.from_array(choice.to_array()) == choice
    True
    """

    candidate: Candidate
    correlation: float

    def to_array(self) -> Floats:
        """Return all of it as numbers, to be saved."""
        return np.array([*self.candidate, self.correlation], dtype=np.float64)

    @classmethod
    def from_array(cls, numbers: Floats) -> HeldOutChoice:
        """Return the choice that `to_array` returned as numbers."""
        n_subtypes, concentration, learn_crowd, correlation = numbers.tolist()
        return cls(Candidate(int(n_subtypes), concentration, bool(learn_crowd)), correlation)


def choose(labels: LabelSummary, session: Session, folds: Folds, max_states: int) -> HeldOutChoice:
    r"""Return what held-out labels say; `assign_folds` has assigned them.

    The candidates are a crowd whose serious labels are right, and then, with a crowd that is learned,
    no subtypes or `N_SUBTYPES`, if there are at most ``max_states`` states, and all `CONCENTRATIONS`;
    each with all `CORRELATIONS`. Each is fitted to the labels that are not held out and predicts
    those that are. A simpler one is preferred if it is within one standard error of the best: first a
    lower correlation, then an earlier candidate.
    """
    with_subtypes = N_SUBTYPES * labels.n_categories <= max_states
    candidates = [
        Candidate(1, max(CONCENTRATIONS), learn_crowd=False),
        *(
            Candidate(m, c, learn_crowd=True)
            for m in ((1, N_SUBTYPES) if with_subtypes else (1,))
            for c in CONCENTRATIONS
        ),
    ]
    n_predictors = len(candidates) * len(CORRELATIONS)
    total, products = np.zeros(n_predictors + 1), np.zeros((n_predictors, n_predictors))
    for held in range(folds.n_folds):
        sums = _score_fold(labels, session, held, candidates)
        total += sums["total"]
        products += sums["products"]
    if total[0] < _MIN_HELD_LABELS:
        return HeldOutChoice(candidates[0], 0.0)
    return _compare(total, products, candidates)


def _compare(total: Floats, products: Floats, candidates: list[Candidate]) -> HeldOutChoice:
    """Return the choice, given sums and products of log-probabilities of held-out labels."""
    n, mean = total[0], total[1:] / total[0]

    def difference(a: int, b: int) -> tuple[float, float]:
        """Return the mean difference of two predictors, and its standard error."""
        squared = (products[a, a] - 2.0 * products[a, b] + products[b, b]) / n
        gap = mean[a] - mean[b]
        return float(gap), float(np.sqrt(max(squared - gap**2, 0.0) / n))

    def simplest(predictors: list[int]) -> int:
        """Return the first predictor that is within one standard error of the best."""
        best = max(predictors, key=lambda a: mean[a])
        return next(a for a in predictors if np.less_equal(*difference(best, a)))

    width = len(CORRELATIONS)
    by_candidate = [
        simplest(list(range(m * width, (m + 1) * width))) for m in range(len(candidates))
    ]
    chosen = simplest(by_candidate)
    return HeldOutChoice(candidates[chosen // width], float(CORRELATIONS[chosen % width]))


def _score_fold(
    labels: LabelSummary, session: Session, held: int, candidates: list[Candidate]
) -> dict[str, Floats]:
    """Return sums of the log-probabilities of one fold's labels, and of their products."""
    all_steps = [candidate.steps(labels, session, held) for candidate in candidates]
    by_subtypes = {steps.items.n_subtypes: steps for steps in all_steps}
    observed = {n: steps.observed_counts() for n, steps in by_subtypes.items()}
    fitted = [_fit_without(steps, observed[steps.items.n_subtypes]) for steps in all_steps]
    parameters, tables = zip(*fitted, strict=True)
    counts = AnnotatorCounts(*(np.concatenate(one, axis=2) for one in zip(*tables, strict=True)))
    n_states = [len(one.state_prior) for one in parameters]
    n_predictors = len(candidates) * len(CORRELATIONS)
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
        prior=np.concatenate([one.state_prior for one in parameters]),
        known_truth=np.concatenate([one.items(labels).known_truth for one in candidates], axis=1),
        **counts._asdict(),
        first_state=np.cumsum([0, *n_states]),
        correlations=CORRELATIONS,
    )


def _fit_without(
    steps: ClassSteps, observed: ExpectedCounts
) -> tuple[ClassParameters, AnnotatorCounts]:
    """Fit the labels that are not held out, starting from their observed counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        parameters, _ = run_em(steps, steps.start(observed), tol=_TOL, max_iter=_MAX_ITER)
    return parameters, steps.annotator_counts(parameters)
