"""Many categories: RobustGPM is fitted to fewer, merged ones, and its results are those of all.

Tables of annotators x categories x states grow with the square of the number of categories, and with
fewer labels than entries they cannot be learned. So categories are merged before the fit:

- *Classes* that no item has side by side may share one row and column of a confusion matrix. Classes
  are taken by falling frequency; each joins the merged class with the fewest labels among those that
  none of its items has yet (a greedy coloring of the graph of classes that compete for an item). So
  annotators' errors are pooled over classes, frequent classes are on their own, and an item's labels
  differ after merging wherever they did before.
- *Values of an ordinal scale* are merged with their neighbors, into bins of equally many values. The
  score of a bin is the mean value of its labels.

Afterwards the probability of a merged class belongs to the one that the item was given; where nobody
gave any, and in bins, it is divided by the crowd's shares of labels. Everything about annotators is that
of the merged categories. So is the judgement of whether labels agree better than chance: agreement that
32 classes would have by chance is not taken for more, however many classes there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from annotruth.engines import DistributedLabels
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Distribution, likely_sets
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.opinions import count_shapes
from annotruth.observations import Labels, LabelSummary, Scale
from annotruth.observations.frames import as_arrow

MAX_CATEGORIES = 128
"""The largest number of categories that the model is fitted to."""

_MERGED_CLASSES = 32  # at least, if there is room for them
_MERGED_VALUES = 100
_LABELS_PER_CELL = 10  # of the crowd's confusion matrix, with which classes are not merged

MAX_BYTES = 8e9
"""How much memory tables may take."""

# Tables of annotators x categories x states: the likelihood, partitions' counts, their update.
_N_TABLES = 8
_N_ITEM_TABLES = 4  # tables of items x categories

PREFIX = "pooled_"
"""What the names of parameters of merged categories begin with."""

GROUP = "category_group"
"""The name of the parameter that says which categories are merged."""


def has_room(labels: LabelSummary) -> bool:
    """Whether the labels are within the model's limits of categories and memory."""
    return not size_problem(labels, pools=True)


def size_problem(labels: LabelSummary, *, pools: bool) -> str:
    """Return which limit the labels exceed, after merging if it ``pools`` them; empty if none."""
    n_annotators, n = labels.n_annotators, labels.n_categories
    if pools and needs_pooling(labels):
        n = _n_merged(labels)
    if n > MAX_CATEGORIES:
        return f"they have {n:,} categories, and it takes at most {MAX_CATEGORIES}"
    n_bytes = _table_bytes(labels, n)
    if n_bytes > MAX_BYTES:
        return (
            f"its tables of {n_annotators:,} annotators x {n:,} categories would take "
            f"{n_bytes / 1e9:.1f} GB, and the limit is {MAX_BYTES / 1e9:.0f} GB"
        )
    return ""


def max_states(labels: LabelSummary) -> int:
    """Return how many latent states fit into memory."""
    per_state = _N_TABLES * 8 * labels.n_annotators * labels.n_categories
    return int(MAX_BYTES // per_state)


def _table_bytes(labels: LabelSummary, n_categories: int) -> int:
    """Return how much memory tables take with so many categories."""
    is_ordinal = labels.scale.is_ordinal
    n_states = max(n_categories, count_shapes(n_categories)) if is_ordinal else n_categories
    return _N_TABLES * 8 * labels.n_annotators * n_categories * n_states


def needs_pooling(labels: LabelSummary) -> bool:
    """Whether categories are merged: labels in memory with too many of them, or few labels per class."""
    if isinstance(labels, DistributedLabels) or labels.on_disk or labels.classifier is not None:
        return False
    n = labels.n_categories
    if _N_ITEM_TABLES * 8 * labels.n_items * n > MAX_BYTES:
        return False
    if n > MAX_CATEGORIES or (n > _MERGED_CLASSES and _table_bytes(labels, n) > MAX_BYTES):
        return True
    is_few = labels.n_labels < _LABELS_PER_CELL * n**2
    return not labels.scale.is_ordinal and n > _MERGED_CLASSES and is_few


def _n_merged(labels: LabelSummary) -> int:
    """Return how many merged categories there are at least."""
    n = _MERGED_VALUES if labels.scale.is_ordinal else _MERGED_CLASSES
    while n > 2 and _table_bytes(labels, n) > MAX_BYTES:
        n //= 2
    return n


def merge_categories(labels: Labels) -> Codes:
    """Return the merged category of each category."""
    n = _n_merged(labels)
    if not labels.scale.is_ordinal:
        return _merge_classes(labels, n)
    values = np.arange(labels.n_categories)
    bins: Codes = values // -(-len(values) // n)  # of equal numbers of neighboring values
    return bins


def _merge_classes(labels: Labels, n: int) -> Codes:
    """Return merged classes: no two classes of an item are merged, if `MAX_CATEGORIES` suffice."""
    at_most = n
    while at_most < MAX_CATEGORIES and _table_bytes(labels, at_most + 1) <= MAX_BYTES:
        at_most += 1
    known = np.flatnonzero(labels.known >= 0)
    item = np.append(labels.item_of_cell(), known)
    category = np.append(labels.cell_category, labels.known[known])
    order = np.argsort(category, kind="stable")
    items_of = np.split(
        item[order], np.searchsorted(category[order], np.arange(1, labels.n_categories))
    )
    counts = labels.labels_per_category.sum(axis=0)
    merged = np.zeros(labels.n_categories, dtype=np.int64)
    is_taken = np.zeros((labels.n_items, at_most), dtype=np.bool_)
    n_labels = np.zeros(at_most, dtype=np.int64)
    for k in np.argsort(-counts, kind="stable"):
        conflicts = np.count_nonzero(is_taken[items_of[k]], axis=0)
        if conflicts[:n].min() > 0 and n < at_most:
            n += 1
        best = int(np.lexsort((n_labels[:n], conflicts[:n]))[0])
        merged[k] = best
        n_labels[best] += counts[k]
        is_taken[items_of[k], best] = True
    return merged


class PooledLabels(NamedTuple):
    """Labels with merged categories."""

    original: Labels  # the labels as they are, and with merged categories
    labels: Labels
    group: Codes  # the merged category of each category
    position: Codes  # which of the original labels each label is

    @classmethod
    def of(cls, labels: Labels, group: Codes) -> PooledLabels:
        """Return the labels with each category replaced by its group."""
        made = Labels.from_codes(
            labels.item_of_label(),
            labels.annotator,
            group[labels.category_of_label()],
            items=labels.items,
            annotators=labels.annotators,
            scale=_merged_scale(labels, group),
            frame=labels.frame,
        )
        known = np.where(labels.known >= 0, group[labels.known], -1).astype(np.int32)
        made = replace(made, known=known, annotator_prior=labels.annotator_prior)
        return cls(labels, made, group, made.row)

    def in_original_order(self, values: Floats) -> Floats:
        """Return values of labels in the order of the original labels."""
        ordered = np.empty_like(values)
        ordered[self.position] = values
        return ordered

    def shares(self) -> Floats:
        """Return the crowd's share of each category among the labels of its group."""
        counts = self.original.labels_per_category.sum(axis=0).astype(np.float64)
        total = np.bincount(self.group, counts)
        counts += total[self.group] == 0.0  # a group without labels is divided equally
        shares: Floats = counts / np.bincount(self.group, counts)[self.group]
        return shares

    def given(self, items: Codes | slice = slice(None)) -> tuple[Floats, Floats]:
        """Return how often items were given each category, and any category of its group."""
        labels = self.original
        counts = np.zeros((labels.n_items, labels.n_categories))
        counts[labels.item_of_cell(), labels.cell_category] = np.diff(labels.cell_ptr)
        counts = counts[items]
        of_groups = counts @ np.eye(self.labels.n_categories)[self.group]
        return counts, of_groups[:, self.group]

    def spread(self, table: Floats) -> Floats:
        """Return distributions of items over groups as distributions over categories."""
        labels = self.original
        spread = table[:, self.group]
        if labels.scale.is_ordinal:
            spread *= self.shares()
        else:
            counts, of_groups = self.given()
            spread *= np.where(of_groups > 0.0, counts / np.maximum(of_groups, 1.0), self.shares())
        known = np.flatnonzero(labels.known >= 0)
        spread[known] = np.eye(labels.n_categories)[labels.known[known]]
        return spread

    def predict(self, p_group: Floats, item: Codes) -> Floats:
        """Return the probabilities of categories as labels of some items, given those of groups.

        Within a group they are the item's labels, with one pseudo-count by the crowd's shares.
        """
        if self.original.scale.is_ordinal:
            within: Floats = self.shares()
        else:
            items, place = np.unique(item, return_inverse=True)
            counts, of_groups = self.given(items)
            within = ((counts + self.shares()) / (of_groups + 1.0))[place]
        predicted: Floats = p_group[:, self.group] * within
        return predicted

    def expanded(self, fit: Fit) -> Fit:
        """Return the fit of merged categories as one of the original labels."""
        assert fit.distribution is not None
        assert fit.other_distribution is not None
        assert fit.p_serious is not None
        n = self.labels.n_categories
        shares, others = (
            self.spread(of.dense(n)) for of in (fit.distribution, fit.other_distribution)
        )
        parameters = {PREFIX + name: values for name, values in fit.parameters.items()}
        return replace(
            fit,
            data=self.original,
            distribution=Distribution.of_dense(shares),
            other_distribution=Distribution.of_dense(others),
            p_serious=self.in_original_order(fit.p_serious),
            item_columns=self._item_columns(fit, shares, others),
            behavior=self._behaviors(fit),
            parameters={**parameters, GROUP: self.group},
        )

    def _item_columns(self, fit: Fit, shares: Floats, others: Floats) -> dict[str, Any]:
        """Return the model's own columns of the items' table."""
        assert fit.distribution is not None
        columns = dict(fit.item_columns)
        leads = shares if fit.readout == "right" else others
        mode = shares.argmax(axis=1)
        columns["p_leads"] = np.minimum(leads[np.arange(len(mode)), mode], 1.0)
        names = self.original.scale.names
        listed = np.arange(len(names)) if self.original.scale.is_ordinal else np.argsort(names)
        columns["may_lead"] = likely_sets(leads[:, listed], [names[k] for k in listed])
        ratio = shares.max(axis=1) / fit.distribution.confidence()
        for name in ("confidence_low", "confidence_high"):
            if name in columns:
                columns[name] = np.minimum(ratio * np.asarray(columns[name]), 1.0)
        return columns

    def _behaviors(self, fit: Fit) -> list[str] | None:
        """Return the annotators' behaviors, with the label of a group that each gave most."""
        if fit.behavior is None:
            return None
        merged, names = self.labels.scale.names, self.original.scale.names
        behaviors = []
        for counts, behavior in zip(self.original.labels_per_category, fit.behavior, strict=True):
            word, _, label = behavior.partition(" ")
            if label in merged:
                own = np.where(self.group == merged.index(label), counts, -1)
                behavior = f"{word} {names[own.argmax()]}"
            behaviors.append(behavior)
        return behaviors


def pooled_labels(fit: Fit) -> PooledLabels | None:
    """Return the labels that a fit was made of, if their categories were merged."""
    if GROUP not in fit.parameters:
        return None
    group = np.unique(fit.parameter(GROUP, fit.data.n_categories), return_inverse=True)[1]
    return PooledLabels.of(fit.data, group)


def fit_of_merged(fit: Fit, labels: Labels) -> Fit:
    """Return a fit with the parameters of merged categories, and the labels that these belong to."""
    parameters = {
        name.removeprefix(PREFIX): values
        for name, values in fit.parameters.items()
        if name.startswith(PREFIX)
    }
    return replace(fit, data=labels, parameters=parameters)


def _merged_scale(labels: Labels, group: Codes) -> Scale:
    """Return the scale of groups, each named for its most frequent category."""
    counts = labels.labels_per_category.sum(axis=0)
    order = np.lexsort((np.arange(len(group)), -counts, group))
    first = order[np.searchsorted(group[order], np.arange(group.max() + 1))]
    weight = np.maximum(counts, 1e-9)
    total = np.bincount(group, weight)
    scale = labels.scale
    values = np.bincount(group, weight * scale.values) / total
    return Scale(scale.kind, scale.categories.take(as_arrow(first)), values)
