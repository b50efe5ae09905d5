"""Whether labels agree better than chance, and which labels are held out.

Labels are held out, and drawn at random to compare the others with, by hashes of the labels' structure, so
that names and the order of rows do not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, mix_bits
from annotruth.models.base_fit import Verdict, is_above
from annotruth.observations import LabelSummary
from annotruth.observations.layout import hash_counts

CROWD_PSEUDO_COUNTS = np.array([1.0, 10.0, 100.0, 1e9])
"""Labels with the crowd's shares that are added to an annotator's, in predictors without items."""

_MIN_MASS = 1e-12  # of a label among an annotator's others
_HELD_LABELS = 10_000  # enough to compare predictors
_MAX_FOLDS = 5
_MAX_HELD_SHARE = 0.2
_SAMPLED_LABELS, _SAMPLED_LABELS_PER_ANNOTATOR = 60_000, 10

_MIN_LABELS = 50
# Random draws and EM steps: few suffice for labels that clearly agree.
_FEW_DRAWS, _FEW_STEPS = 6, 5
_DRAWS, _STEPS = 40, 30
_SERIOUS_DRAWS = 4
_SIGNIFICANCE = 0.99997  # that of 4 standard errors; the ratios are skewed, so 3 are too few
_CROWD_LABELS = 5.0  # pseudo-counts of labels with the crowd's reliability
_START_RELIABILITY, _DRAWN_RELIABILITY = 0.5, 0.5
_MIN_RELIABILITY, _MAX_RELIABILITY = 1e-6, 0.999
_ORDINAL_GROUPS = 5

_MAX_ENTRIES = 1 << 25  # of tables of draws

_HASH_INPUTS = (Input("annotator_hash", annotator_axis=0), Input("category_hash"))
_DRAWN_STATE = ("fold", "item_hash")
_DRAWN_INPUTS = (
    *_HASH_INPUTS,
    *(Input("first_draw"), Input("reliability"), Input("group"), Input("prior")),
    Input("chance", annotator_axis=0),
)


class Folds(NamedTuple):
    """How labels are held out: some of the items, some of their labels, once per fold."""

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


class Hashes(NamedTuple):
    """Hashes of annotators and categories by their labels, not by their names."""

    annotator_hash: NDArray[np.uint64]
    category_hash: NDArray[np.uint64]

    @classmethod
    def of(cls, labels: LabelSummary) -> Hashes:
        """Return hashes of how often each annotator gave each label."""
        annotator, _ = hash_counts(labels.labels_per_category)
        # Categories with the same total differ by who gave them.
        counts = labels.labels_per_category.astype(np.uint64)
        by_annotator = mix_bits(annotator[:, np.newaxis] + counts)
        return cls(annotator, mix_bits(by_annotator.sum(axis=0, dtype=np.uint64)))


def assign_folds(labels: LabelSummary, session: Session, folds: Folds) -> Hashes:
    """Assign the labels to folds, in the session's array "fold"; return the hashes.

    An annotator's hash is of how often they gave each label and to which items, an item's of its
    labels and their annotators. Only items that are alike in this differ by their order.
    """
    hashes = Hashes.of(labels)
    hashes = hashes._replace(annotator_hash=session.to_engine(hashes.annotator_hash))
    sums = session.run_pass(
        Pass(
            "held_out.hash_annotators",
            inputs=_HASH_INPUTS,
            sums=(Sum("hash", (labels.n_annotators,), annotator_axis=0),),
        ),
        **hashes._asdict(),
    )
    by_items = mix_bits(hashes.annotator_hash + sums["hash"].astype(np.uint64))
    hashes = hashes._replace(annotator_hash=by_items)
    session.allocate("item_hash", per="items")
    session.run_pass(Pass("held_out.hash_items", ("item_hash",), _HASH_INPUTS), **hashes._asdict())
    session.apply("item_hash", _number_equal)
    session.allocate("fold", per="labels")
    assign = Pass(
        "held_out.assign_folds",
        ("fold", "item_hash"),
        (*_HASH_INPUTS, Input("held_share"), Input("n_folds"), Input("sampled_share")),
    )
    session.run_pass(assign, **hashes._asdict(), **folds._asdict())
    return hashes


def _number_equal(hashes: Floats) -> Floats:
    """Return hashes of 52 bits that differ between items that have the same one."""
    order = np.argsort(hashes, kind="stable")
    in_order = hashes[order]
    is_first = np.ones_like(in_order, dtype=np.bool_)
    is_first[1:] = in_order[1:] != in_order[:-1]
    first = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    rank = np.empty_like(order, dtype=np.uint64)
    rank[order] = np.arange(len(hashes), like=first) - first
    mixed = mix_bits(hashes.astype(np.uint64) + mix_bits(rank)) >> np.uint64(12)
    return mixed.astype(np.float64)


def judge_agreement(labels: LabelSummary, session: Session, hashes: Hashes) -> Verdict | None:
    r"""Return whether annotators agree better than chance; None if there are too few labels to tell.

    By chance, annotator s gives label n with their own share :math:`p_{s,n}` of other labels, whatever
    the item. The alternative has serious annotators: with classes :math:`k_e \sim \pi`, the crowd's
    shares,

    .. math:: P(r_{e,s} = n) = \epsilon_s 1_{n = k_e} + (1 - \epsilon_s) p_{s,n}.

    The log-likelihood ratio after some EM steps on :math:`\epsilon` (with five pseudo-counts of the
    crowd's reliability) is compared with the ratios of labels that are drawn by chance. Labels agree
    if theirs is higher at the significance of 4 standard errors (Student's t, as the draws are few).
    There are too few labels to tell if labels drawn with :math:`\epsilon = 0.5` do not agree either,
    or if there are fewer than 50. Ordinal categories are merged into at most five groups of adjacent
    ones.
    """
    if labels.n_labels < _MIN_LABELS:
        return None
    ratios = _AgreementRatios(labels, session, hashes)
    for n_draws, n_steps in ((_FEW_DRAWS, _FEW_STEPS), (_DRAWS, _STEPS)):
        observed, *drawn = ratios.of_draws(0, 1 + n_draws, n_steps)
        if is_above(observed, drawn, _SIGNIFICANCE):
            return "informative"
    serious = ratios.of_draws(1 + _DRAWS, _SERIOUS_DRAWS, _STEPS, reliability=_DRAWN_RELIABILITY)
    would_agree = is_above(float(np.median(serious)), drawn, _SIGNIFICANCE)
    return "chance" if would_agree else None


class _AgreementRatios:
    """Log-likelihood ratios of serious annotators to chance, of the labels and of random draws."""

    def __init__(self, labels: LabelSummary, session: Session, hashes: Hashes) -> None:
        self._session = session
        self._group = _group_categories(labels, hashes)
        counts = labels.labels_per_category @ np.eye(self._group.max() + 1)[self._group]
        self._shape = counts.shape
        self._inputs: dict[str, Any] = {
            **hashes._asdict(),
            "group": self._group,
            "prior": _crowd_shares(counts),
            "chance": label_shares(session.to_engine(counts)),
        }

    def of_draws(
        self, first: int, n: int, n_steps: int, *, reliability: float = 0.0
    ) -> list[float]:
        """Return the ratios of some draws after EM steps; draw 0 are the labels themselves.

        In the others, labels are right with this probability, and by chance otherwise.
        """
        at_once = max(1, _MAX_ENTRIES // (self._shape[0] * self._shape[1]))
        return [
            ratio
            for start in range(first, first + n, at_once)
            for ratio in self._fit_draws(
                start, min(at_once, first + n - start), n_steps, reliability
            )
        ]

    def _fit_draws(self, first: int, n: int, n_steps: int, reliability: float) -> list[float]:
        inputs = {**self._inputs, "first_draw": first, "reliability": reliability}
        counted = Sum("counts", (*self._shape, n), annotator_axis=0)
        count = Pass("held_out.count_drawn", _DRAWN_STATE, _DRAWN_INPUTS, (counted,))
        counts = self._session.run_pass(count, **inputs)["counts"]
        shares = np.stack(
            [label_shares(counts[:, :, r], leave_one_out=True) for r in range(n)], axis=2
        )
        n_labels = np.maximum(counts[:, :, :1].sum(axis=1), 1.0)
        agree = Pass(
            "held_out.agree",
            _DRAWN_STATE,
            (*_DRAWN_INPUTS, *(Input(name, annotator_axis=0) for name in ("shares", "eps"))),
            (Sum("serious", (self._shape[0], n), annotator_axis=0), Sum("log_ratio", (n,))),
        )
        eps = np.full_like(shares[:, 0], _START_RELIABILITY)
        for _ in range(n_steps):
            sums = self._session.run_pass(agree, **inputs, shares=shares, eps=eps)
            crowd = sums["serious"].sum(axis=0) / n_labels.sum()
            share = (sums["serious"] + _CROWD_LABELS * crowd) / (n_labels + _CROWD_LABELS)
            eps = np.clip(share, _MIN_RELIABILITY, _MAX_RELIABILITY)
        ratios: list[float] = sums["log_ratio"].tolist()
        return ratios


def _group_categories(labels: LabelSummary, hashes: Hashes) -> Codes:
    """Return the group of each category; on nominal scales, categories by their hashes."""
    n = labels.n_categories
    if not labels.scale.is_ordinal:
        group = np.empty(n, dtype=np.int64)
        group[np.argsort(hashes.category_hash, kind="stable")] = np.arange(n)
        return group
    shares = _crowd_shares(labels.labels_per_category)
    middle = np.cumsum(shares) - shares / 2.0
    return np.unique(np.floor(_ORDINAL_GROUPS * middle), return_inverse=True)[1]


def _crowd_shares(counts: NDArray[np.int64] | Floats) -> Floats:
    """Return the crowd's shares of labels, with one pseudo-count each."""
    n_categories = counts.shape[1]
    shares: Floats = (counts.sum(axis=0) + 1.0) / (counts.sum() + n_categories)
    return shares


def label_shares(counts: Floats, *, leave_one_out: bool = False) -> Floats:
    """Return annotators' shares of labels, annotators x categories, smoothed towards the crowd's.

    Takes counts of the same shape. The number of pseudo-counts is the one of `CROWD_PSEUDO_COUNTS`
    with the highest leave-one-out log-likelihood. With ``leave_one_out``, the share of a label that
    was given is that among the annotator's other labels.
    """
    pseudo_counts = np.asarray(CROWD_PSEUDO_COUNTS, like=counts)
    prior = _crowd_shares(counts)[:, np.newaxis] * pseudo_counts
    mass = counts[:, :, np.newaxis] + prior
    total = mass.sum(axis=1, keepdims=True)
    # Without the label itself there is one label less, of this category and of all.
    given = (counts > 0)[:, :, np.newaxis]
    less_one = np.maximum(mass - 1.0, _MIN_MASS)
    without = np.where(given, less_one / np.where(given, total - 1.0, 1.0), mass / total)
    log_likelihood = np.einsum("sn,snc->c", counts, np.log(without))
    shares = without if leave_one_out else mass / total
    best: Floats = shares[:, :, int(log_likelihood.argmax())].copy()
    return best
