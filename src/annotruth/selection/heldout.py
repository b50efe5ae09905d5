"""How well a model predicts labels that it has not seen: a measure that needs no truth."""

from __future__ import annotations

import math
import warnings
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import ConvergenceWarning, InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.labels.validate import check_seed
from annotruth.models.base import Estimator
from annotruth.models.em import Progress, ProgressCallback
from annotruth.models.registry import get_model

FLOOR = 0.01
"""The share of chance mixed into every prediction, so that no single label costs without end."""

_MOST_NUMBERS = 2**20  # of predictions made at a time


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a model made of labels that it had not seen.

    Attributes
    ----------
    model
        Its name.
    log_p
        The log-probability, in nats, that it gave to each scored label.
    item
        The item of each scored label.
    n_unscored
        How many labels were not scored, because their item or annotator would have had no other.
    converged
        Whether every fit met its stopping rule.
    """

    model: str
    log_p: Floats
    item: NDArray[np.integer[Any]]
    n_unscored: int
    converged: bool

    def __repr__(self) -> str:
        return (
            f"HeldOut({self.model}: {with_error(self.score, self.standard_error)} a label, "
            f"{self.n_scored:,} labels scored)"
        )

    @property
    def n_scored(self) -> int:
        """How many labels were scored."""
        return len(self.log_p)

    @cached_property
    def score(self) -> float:
        """The mean log-probability of a label: higher is better, 0 would be certainty."""
        return float(self.log_p.mean())

    @cached_property
    def standard_error(self) -> float:
        """The standard error of the score over items; NaN where there is only one."""
        return _standard_error(self.log_p, self.item)

    def ahead_of(self, other: HeldOut) -> tuple[float, float]:
        """Return by how much it scores higher on the same labels, and that mean's error."""
        gain = self.log_p - other.log_p
        return float(gain.mean()), _standard_error(gain, self.item)


def held_out(
    model: str | Estimator,
    data: Any,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> HeldOut:
    r"""Score a model by how well it predicts each label from the others.

    The labels are dealt into parts. The model is fitted without one part and predicts its labels,
    for each part in turn; known truths stay. With N categories, a label r of annotator s on item e
    scores

    .. math:: \log \bigl( 0.99\, p(r_{e,s} = r) + 0.01 / N \bigr), \qquad p \text{ from `predict_proba`}.

    The hundredth of chance is the same for all models: some of them call labels impossible, and
    one such label would decide everything.

    Every item's labels are dealt evenly. Parts depend on the ids and the seed, not on the model
    or the order of rows. A label whose item or annotator would be left without any other is
    never held out, and not scored. As labels of one item share its truth, the standard error is
    that of sums over items.

    Parameters
    ----------
    model
        A model's name, or an estimator with its options set, which is left as it is.
    data
        What `Estimator.fit` takes; known truths come with `Labels.with_gold`.
    folds
        Into how many parts the labels are dealt.
    seed
        Another seed, other parts.
    progress
        Called after every iteration of every fit.
    """
    labels = Labels.of(data)
    estimator = get_model(model)() if isinstance(model, str) else model
    return score_parts(estimator, labels, parts_of(labels, folds, seed), progress)


def parts_of(labels: Labels, folds: int, seed: int) -> Codes:
    """Deal the labels out: the part in which each is held out, -1 for those that never are."""
    if folds < 2:
        raise InputError(f"folds must be 2 or more, not {folds}")
    check_seed(seed)
    rng = np.random.default_rng(seed)
    item, annotator = labels.item_of_label(), labels.annotator
    by_item, by_annotator = (ranks_of(ids) for ids in (labels.items, labels.annotators))
    order = np.lexsort((labels.category_of_label(), by_annotator[annotator], by_item[item]))
    order = order[rng.permutation(labels.n_labels)]
    turn = rng.permutation(labels.n_items)[by_item]
    order = order[np.argsort(turn[item[order]], kind="stable")]
    part = np.empty(labels.n_labels, dtype=np.int64)
    part[order] = np.arange(labels.n_labels) % folds
    _leave_company(part, item, labels.labels_per_item, order)
    _leave_company(part, annotator, labels.labels_per_annotator, order)
    if (part < 0).all():
        raise InputError(
            "no label can be predicted from the others, as each is the only one of its item or of "
            "its annotator: add labels, or choose a model by name, such as robust-gpm"
        )
    return part


def score_parts(
    estimator: Estimator, labels: Labels, part: Codes, progress: ProgressCallback | None
) -> HeldOut:
    """Score a model on parts that `parts_of` dealt."""
    mine = copy(estimator)
    log_p = np.empty(labels.n_labels)
    converged = True
    category, item = labels.category_of_label(), labels.item_of_label()
    turns = np.unique(part[part >= 0])
    for turn, one in enumerate(turns, start=1):
        stage = f"trying {mine.name}, part {turn} of {len(turns)}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `settled` tells
            mine.fit(labels.subset(part != one), progress=_at_stage(progress, stage))
        converged &= mine.result_.converged
        held = np.flatnonzero(part == one)
        rows = max(_MOST_NUMBERS // max(labels.n_categories, 32), 1)
        for some in np.split(held, range(rows, len(held), rows)):
            p = mine.predict_proba(item[some], labels.annotator[some])
            likely = p[np.arange(len(some)), category[some]]
            log_p[some] = np.log((1.0 - FLOOR) * likely + FLOOR / labels.n_categories)
    scored = part >= 0
    return HeldOut(mine.name, log_p[scored], item[scored], int((~scored).sum()), converged)


def ranks_of(ids: pa.Array) -> Codes:
    """Return the place of each id among all in the order of their text, whatever order they came in."""
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[pc.sort_indices(ids.cast(pa.string())).to_numpy()] = np.arange(len(ids))
    return ranks


def _leave_company(
    part: Codes, owner: NDArray[np.integer[Any]], n_labels: Codes, order: Codes
) -> None:
    """Take one label of each owner back whose labels would all be held out at once."""
    held = part >= 0
    n_parts = int(part.max(initial=0)) + 1
    pair = owner.astype(np.int64) * n_parts + part
    together = np.bincount(pair[held], minlength=len(n_labels) * n_parts)
    bare = held & (together[np.where(held, pair, 0)] == n_labels[owner])
    bare_in_order = order[bare[order]]
    _, first = np.unique(owner[bare_in_order], return_index=True)
    part[bare_in_order[first]] = -1


def with_error(value: float, error: float) -> str:
    """Write a mean over items with its standard error, which one item alone does not have."""
    return f"{value:.4f} ± {f'{error:.4f}' if math.isfinite(error) else 'unknown'}"


def _standard_error(values: Floats, item: NDArray[np.integer[Any]]) -> float:
    """Return the standard error of a mean whose values hang together within an item."""
    _, place = np.unique(item, return_inverse=True)
    sums = np.bincount(place, values - values.mean())
    if len(sums) < 2:
        return float("nan")
    return float(np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / len(values))


def _at_stage(progress: ProgressCallback | None, stage: str) -> ProgressCallback | None:
    if progress is None:
        return None

    def tell(heard: Progress) -> None:
        progress(heard._replace(stage=stage))

    return tell
