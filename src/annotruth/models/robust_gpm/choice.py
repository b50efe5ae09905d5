"""What RobustGPM learns from held-out labels: subtypes, correlation of labels, and chance."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.errors import ConvergenceWarning
from annotruth.kernels.arrays import Floats, mix_bits
from annotruth.kernels.shared import NEVER
from annotruth.labels import LabelSummary
from annotruth.labels.layout import hash_counts
from annotruth.models.em import run_em
from annotruth.models.robust_gpm.classes import (
    AnnotatorCounts,
    ClassParameters,
    ClassSteps,
    TrueClasses,
)

N_SUBTYPES = 3
"""The number of subtypes per class that is compared with none."""

CONCENTRATIONS = (1024.0, 16.0, 4.0)
"""The concentrations of annotators' confusion matrices that are compared, falling."""

CORRELATIONS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8])
"""The correlations of an item's labels that are compared, rising."""

CROWD_PSEUDO_COUNTS = np.array([1.0, 10.0, 100.0, 1e9])
"""Labels with the crowd's shares that are added to an annotator's, in predictors without items."""

_HELD_LABELS = 10_000  # enough to compare predictors
_MAX_FOLDS = 5
_MAX_HELD_SHARE = 0.2
_SAMPLED_LABELS, _SAMPLED_LABELS_PER_ANNOTATOR = 60_000, 10
_MIN_HELD_LABELS = 50  # with fewer, nothing is concluded
_STANDARD_ERRORS_ABOVE_CHANCE = 3.0
_TOL, _MAX_ITER = 1e-3, 100

_HASH_INPUTS = (Input("annotator_hash", annotator_axis=0), Input("category_hash"))


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

    def items(self, labels: LabelSummary) -> TrueClasses:
        """Return the latent states of items."""
        return TrueClasses(labels, self.n_subtypes, learn_crowd=self.learn_crowd)

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
    chance
        Whether the labels of other annotators predict a label no better than chance; None if there
        are too few labels to tell.

    Examples
    --------
    >>> from annotruth.models.robust_gpm.choice import Candidate, HeldOutChoice
    >>> choice = HeldOutChoice(Candidate(1, 1024.0, False), correlation=0.1, chance=False)
    >>> HeldOutChoice.from_array(choice.to_array()) == choice
    True
    """

    candidate: Candidate
    correlation: float
    chance: bool | None

    def to_array(self) -> Floats:
        """Return all of it as numbers, to be saved."""
        chance = np.nan if self.chance is None else self.chance
        return np.array([*self.candidate, self.correlation, chance], dtype=np.float64)

    @classmethod
    def from_array(cls, numbers: Floats) -> HeldOutChoice:
        """Return the choice that `to_array` returned as numbers."""
        n_subtypes, concentration, learn_crowd, correlation, chance = numbers.tolist()
        candidate = Candidate(int(n_subtypes), concentration, bool(learn_crowd))
        return cls(candidate, correlation, None if np.isnan(chance) else bool(chance))


class Folds(NamedTuple):
    """How labels are held out: some of the items, some of their labels, once per fold.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.robust_gpm.choice import Folds
    >>> Folds.of(at.simulate.crowd(n_items=100, n_annotators=10, seed=0).labels)
    Folds(held_share=0.2, n_folds=5, sampled_share=1.0)
    """

    held_share: float
    n_folds: int
    sampled_share: float

    @classmethod
    def of(cls, labels: LabelSummary) -> Folds:
        """Return the folds for these labels."""
        wanted = max(_SAMPLED_LABELS, _SAMPLED_LABELS_PER_ANNOTATOR * labels.n_annotators)
        sampled_share = min(1.0, wanted / labels.n_labels)
        n_sampled = sampled_share * labels.n_labels
        held_share = min(_MAX_HELD_SHARE, _HELD_LABELS / n_sampled)
        n_folds = int(np.clip(np.ceil(_HELD_LABELS / (held_share * n_sampled)), 1, _MAX_FOLDS))
        return cls(held_share, n_folds, sampled_share)


def choose(labels: LabelSummary, session: Session, max_states: int) -> HeldOutChoice:
    r"""Return what held-out labels say.

    The candidates are a crowd whose serious labels are right, and then, with a crowd that is learned,
    no subtypes or `N_SUBTYPES`, if there are at most ``max_states`` states, and all `CONCENTRATIONS`;
    each with all `CORRELATIONS`. Each is fitted to the labels that are not held out and predicts
    those that are. A simpler one is preferred if it is within one standard error of the best: first a
    lower correlation, then an earlier candidate. Labels are no better than chance if the best
    candidate predicts them by less than three standard errors better than the best predictor that
    knows annotators but no items.
    """
    folds = Folds.of(labels)
    assign_folds(labels, session, folds)
    with_subtypes = N_SUBTYPES * labels.n_categories <= max_states
    candidates = [
        Candidate(1, max(CONCENTRATIONS), learn_crowd=False),
        *(
            Candidate(m, c, learn_crowd=True)
            for m in ((1, N_SUBTYPES) if with_subtypes else (1,))
            for c in CONCENTRATIONS
        ),
    ]
    n_predictors = len(candidates) * len(CORRELATIONS) + len(CROWD_PSEUDO_COUNTS)
    total, products = np.zeros(n_predictors + 1), np.zeros((n_predictors, n_predictors))
    for held in range(folds.n_folds):
        sums = _score_fold(labels, session, held, candidates)
        total += sums["total"]
        products += sums["products"]
    if total[0] < _MIN_HELD_LABELS:
        return HeldOutChoice(candidates[0], 0.0, chance=None)
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
    without_items = len(candidates) * width + int(mean[len(candidates) * width :].argmax())
    gain, error = difference(max(by_candidate, key=lambda a: mean[a]), without_items)
    return HeldOutChoice(
        candidates[chosen // width],
        float(CORRELATIONS[chosen % width]),
        chance=gain <= _STANDARD_ERRORS_ABOVE_CHANCE * error,
    )


def _score_fold(
    labels: LabelSummary, session: Session, held: int, candidates: list[Candidate]
) -> dict[str, Floats]:
    """Return sums of the log-probabilities of one fold's labels, and of their products."""
    fitted = [_fit_without(candidate.steps(labels, session, held)) for candidate in candidates]
    parameters, tables = zip(*fitted, strict=True)
    counts = AnnotatorCounts(*(np.concatenate(one, axis=2) for one in zip(*tables, strict=True)))
    n_states = [len(one.state_prior) for one in parameters]
    n_predictors = len(candidates) * len(CORRELATIONS) + len(CROWD_PSEUDO_COUNTS)
    score = Pass(
        "held_out.score",
        ("fold",),
        (
            *(Input("held"), Input("prior"), Input("known_truth")),
            Input("counts", annotator_axis=0),
            Input("pseudo_counts", annotator_axis=0),
            *(Input("first_state"), Input("correlations")),
            Input("without_items", annotator_axis=0),
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
        without_items=predict_without_items(tables[0].counts[:, :-1].sum(axis=2)),
    )


def _fit_without(steps: ClassSteps) -> tuple[ClassParameters, AnnotatorCounts]:
    """Fit the labels that are not held out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        parameters, _ = run_em(steps, steps.start(), tol=_TOL, max_iter=_MAX_ITER)
    return parameters, steps.annotator_counts(parameters)


def predict_without_items(counts: Floats) -> Floats:
    """Return the probabilities of labels by annotators' and the crowd's shares, for each prior.

    ``counts`` is annotators x categories; the result has one more axis, over `CROWD_PSEUDO_COUNTS`.
    """
    n_categories = counts.shape[1]
    crowd = (counts.sum(axis=0) + 1.0) / (counts.sum() + n_categories)
    prior = crowd[:, np.newaxis] * CROWD_PSEUDO_COUNTS
    mass = counts[:, :, np.newaxis] + prior
    shares: Floats = mass / mass.sum(axis=1, keepdims=True)
    return shares


def assign_folds(labels: LabelSummary, session: Session, folds: Folds) -> None:
    """Assign the labels to folds, in the session's array "fold".

    Folds follow from hashes of the labels themselves, not from names or the order of rows: an
    annotator's hash is of how often they gave each label and to which items, an item's of its labels
    and their annotators. Only items that are alike in this differ by their order.
    """
    annotator_hash, category_hash = hash_counts(labels.labels_per_category)
    hashes = {"annotator_hash": annotator_hash, "category_hash": category_hash}
    sums = session.run_pass(
        Pass(
            "held_out.hash_annotators",
            inputs=_HASH_INPUTS,
            sums=(Sum("hash", (labels.n_annotators,), annotator_axis=0),),
        ),
        **hashes,
    )
    hashes["annotator_hash"] = mix_bits(annotator_hash + sums["hash"].astype(np.uint64))
    session.allocate("item_hash", per="items")
    session.run_pass(Pass("held_out.hash_items", ("item_hash",), _HASH_INPUTS), **hashes)
    session.put("item_hash", _number_equal(session.collect("item_hash")), per="items")
    session.allocate("fold", per="labels")
    assign = Pass(
        "held_out.assign_folds",
        ("fold", "item_hash"),
        (*_HASH_INPUTS, Input("held_share"), Input("n_folds"), Input("sampled_share")),
    )
    session.run_pass(assign, **hashes, **folds._asdict())


def _number_equal(hashes: Floats) -> Floats:
    """Return hashes of 52 bits that differ between items that have the same one."""
    order = np.argsort(hashes, kind="stable")
    in_order = hashes[order]
    is_first = np.append(True, in_order[1:] != in_order[:-1])
    place = np.arange(len(hashes))
    rank = np.empty(len(hashes), dtype=np.uint64)
    rank[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    mixed = mix_bits(hashes.astype(np.uint64) + mix_bits(rank)) >> np.uint64(12)
    return mixed.astype(np.float64)
