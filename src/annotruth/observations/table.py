"""`Labels`: which annotator gave which item which label, checked and laid out for the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.bindings import bound
from annotruth.kernels.arrays import Codes, mix_bits
from annotruth.observations import validate
from annotruth.observations.arrays import LabelArrays
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import as_arrow, default_frame
from annotruth.observations.keywords import ReadKeywords
from annotruth.observations.layout import CanonicalOrder, RowCodes, arrange, canonical_orders
from annotruth.observations.options import ReadOptions, names_keywords
from annotruth.observations.scale import Scale
from annotruth.observations.sets import match_known_sets, with_sets
from annotruth.observations.truth import (
    match_annotator_prior,
    match_classifier,
    match_covariates,
    match_truth,
)


@dataclass(frozen=True, eq=False, repr=False)
class Labels(LabelArrays):
    """A frozen, validated table of labels.

    Labels are in integer codes, sorted by item and within it by category; `LabelArrays` describes
    the layout.

    Attributes
    ----------
    items, annotators
        The ids behind the codes, in order of first appearance.
    scale
        The categories, their order and their values.
    item_ptr, cell_category, cell_ptr, annotator
        The layout; ``annotator`` holds one code per label.
    row
        The position of each label among the rows with a label, to return tables in the order of
        the input.
    known
        The code of an item's known truth, -1 where there is none.
    covariates
        Further data about labels, annotators and items.
    disk, rows
        Where the arrays are on disk, and then the codes in row order; None in memory.
    annotator_prior, annotator_weight, classifier, n_dropped, n_repeated, unused, frame, read_as, left_out
        As in `LabelSummary`.

    Examples
    --------
    >>> labels = Labels.of([("a", "ann", "cat"), ("a", "bob", "dog"), ("b", "ann", "cat")])
    >>> labels
    Labels(3 labels of 2 items by 2 annotators, 2 nominal categories)
    >>> labels.with_gold({"b": "cat"}).known
    array([-1,  0], dtype=int32)
    """

    @classmethod
    @names_keywords(ReadKeywords)
    def of(
        cls, data: Any, read: ReadOptions | None = None, **options: Unpack[ReadKeywords]
    ) -> Labels:
        """Return the labels in a frame, an array, or plain Python data.

        Parameters
        ----------
        data
            A pandas, polars or pyarrow frame, long (item, annotator, label) or wide (one row per
            item, one column per annotator); a list of (item, annotator, label) tuples or of
            dicts; ``{item: {annotator: label}}``; an array of items x annotators; or Labels
            (returned as they are).
        read, **options
            Which columns to take, and what the labels mean: `ReadOptions`, or its fields as
            keywords.
        """
        made: Labels = bound("labels.read")(data, read, **options)
        return made

    @classmethod
    def from_codes(
        cls,
        item: NDArray[np.integer[Any]],
        annotator: NDArray[np.integer[Any]],
        label: NDArray[np.integer[Any]],
        *,
        items: pa.Array | Sequence[Any],
        annotators: pa.Array | Sequence[Any],
        scale: Scale,
        n_dropped: int = 0,
        frame: str | None = None,
    ) -> Labels:
        """Return labels given as integer codes, one entry per label; every id must have a label."""
        validate.check_codes(item, len(items), "item")
        validate.check_codes(annotator, len(annotators), "annotator")
        validate.check_codes(label, len(scale), "label")
        # `pa.array` loads pandas.
        of_items, of_annotators = (
            ids if isinstance(ids, pa.Array) else pa.array(ids) for ids in (items, annotators)
        )
        layout = arrange(RowCodes(item, annotator, label), len(items), len(scale))
        return Labels(
            items=of_items,
            annotators=of_annotators,
            scale=scale,
            **layout._asdict(),
            known=np.full(len(items), -1, dtype=np.int32),
            n_dropped=n_dropped,
            frame=frame or default_frame(),
        )

    def with_gold(self, gold: Any, columns: Mapping[str, str] | None = None) -> Labels:
        """Return the labels with known truths of some items.

        ``gold`` is a frame of ``item, label``, a mapping, or a pandas Series.
        """
        known, scale = self.known.copy(), self.scale
        if scale.has_sets:
            sets = match_known_sets(gold, self, role="gold")
            scale = with_sets(scale, sets.keys)
            code = {key: n for n, key in enumerate(scale.names)}
            known[sets.item] = [code[key] for key in sets.keys]
        else:
            truth = match_truth(gold, self, role="gold", columns=columns)
            known[truth.item] = truth.categories()
        return replace(self, scale=scale, known=known)

    def with_annotator_prior(self, annotator_prior: Any) -> Labels:
        """Return the labels with what is known about some annotators from earlier work.

        ``annotator_prior`` is the annotators' table of an earlier fit, or a mapping of annotator
        to reliability.
        """
        prior = match_annotator_prior(annotator_prior, self.annotators)
        return replace(self, annotator_prior=prior)

    def with_classifier(self, classifier: Any) -> Labels:
        """Return the labels with a classifier's probabilities of the categories.

        ``classifier`` is a frame of ``item`` and one column per category, named as the category or
        with the prefix ``p_``; or an array of items x categories, in the order of the items.
        """
        return replace(self, classifier=match_classifier(classifier, self))

    def with_annotator_covariates(self, data: Any) -> Labels:
        """Return the labels with traits of annotators.

        ``data`` is a frame with a column ``annotator`` and further columns, one row per
        annotator. Annotators without a row get null; those without labels are ignored.
        """
        columns = match_covariates(data, self.annotators, "annotator")
        return replace(self, covariates=self.covariates.with_columns("annotators", columns))

    def with_item_covariates(self, data: Any) -> Labels:
        """Return the labels with further data about items.

        ``data`` is a frame with a column ``item`` and further columns, one row per item. Items
        without a row get null; those without labels are refused.
        """
        columns = match_covariates(data, self.items, "item")
        return replace(self, covariates=self.covariates.with_columns("items", columns))

    def subset(self, kept: NDArray[np.bool_]) -> Labels:
        """Return the marked labels, one mark per label, on the same scale.

        Items and annotators without a label are left out; the codes of the others keep their
        order, and are the same where none is left out. Known truths, priors and covariates stay.
        """
        items = np.unique(self.item_of_label()[kept]).astype(np.int64)
        annotators = np.unique(self.annotator[kept]).astype(np.int64)
        return self._with_rows(np.flatnonzero(kept), items, annotators)

    def with_first(self, items: pa.Array, annotators: pa.Array) -> Labels:
        """Return the labels with these items and annotators first, in this order; all have labels."""
        return self._with_rows(
            np.arange(self.n_labels),
            _put_first(match_ids(items, self.items), self.n_items),
            _put_first(match_ids(annotators, self.annotators), self.n_annotators),
        )

    def _with_rows(self, labels: Codes, items: Codes, annotators: Codes) -> Labels:
        """Return some labels in row order, with their items and annotators in the given order."""
        labels = labels[np.argsort(self.row[labels])]
        order = CanonicalOrder(items, annotators, np.arange(self.n_categories))
        made = self._recoded(labels, order)
        return replace(
            made,
            scale=self.scale,
            covariates=self.covariates.take(labels[made.row], annotators, items),
            n_repeated=self.n_repeated,
            unused=self.unused,
            read_as=self.read_as,
            left_out=self.left_out,
        )

    def _recoded(self, labels: Codes, order: CanonicalOrder) -> Labels:
        """Return labels with the codes of an order of all or some items, annotators and categories."""
        sizes = (self.n_items, self.n_annotators, self.n_categories)
        item, annotator, category = (np.empty(n, dtype=np.int64) for n in sizes)
        for code, places in zip((item, annotator, category), order, strict=True):
            code[places] = np.arange(len(places))
        made = Labels.from_codes(
            item[self.item_of_label()[labels]],
            annotator[self.annotator[labels]],
            category[self.category_of_label()[labels]],
            items=self.items.take(as_arrow(order.item)),
            annotators=self.annotators.take(as_arrow(order.annotator)),
            scale=self.scale.reordered(order.category),
            n_dropped=self.n_dropped,
            frame=self.frame,
        )
        known, classifier = self.known[order.item], self.classifier
        prior, weight = self.annotator_prior, self.annotator_weight
        return replace(
            made,
            known=np.where(known >= 0, category[known], -1).astype(np.int32),
            annotator_prior=None if prior is None else prior[order.annotator],
            annotator_weight=None if weight is None else weight[order.annotator],
            classifier=None if classifier is None else classifier[order.item][:, order.category],
        )

    def same_as(self, other: Labels) -> bool:
        """Return whether other labels are the same, apart from covariates and the order of rows."""
        ids = ("items", "annotators")
        arrays = ("item_ptr", "cell_category", "cell_ptr", "annotator", "known")
        return all(getattr(self, name).equals(getattr(other, name)) for name in ids) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays
        )

    def without_annotators(self, dropped: NDArray[np.bool_]) -> Labels:
        """Return the labels without those of the marked annotators, and without items of theirs alone."""
        return self.subset(~dropped[self.annotator])

    def subset_items(self, item: NDArray[np.integer[Any]]) -> ItemSubset:
        """Return the labels of some items, given in any order and possibly more than once."""
        items, position = np.unique(item, return_inverse=True)
        is_asked = np.zeros(self.n_items, dtype=np.bool_)
        is_asked[items] = True
        kept = is_asked[self.item_of_label()]
        return ItemSubset(self.subset(kept), position, np.unique(self.annotator[kept]))

    def canonical_orders(self, *, keep_categories: bool) -> list[CanonicalOrder]:
        """Return orders that depend on no name and no order of rows; categories may keep theirs.

        There are several if the labels are symmetric: all of them give the same layout.
        """
        # Not 0, whose hash is 0.
        item, annotator, category = (
            np.ones(n, dtype=np.uint64)
            for n in (self.n_items, self.n_annotators, self.n_categories)
        )
        if keep_categories:
            category += np.arange(self.n_categories, dtype=np.uint64)
        if self.annotator_prior is not None:
            serious, irregular = self.annotator_prior.T.astype(np.float64).copy().view(np.uint64)
            annotator = mix_bits(mix_bits(serious) + irregular)
        known = np.flatnonzero(self.known >= 0)
        n_known = np.bincount(self.known[known], minlength=self.n_categories)
        category = mix_bits(mix_bits(category) + n_known.astype(np.uint64))
        # Known truths are the labels of one more annotator, with a color of its own.
        rows = RowCodes(
            np.append(self.item_of_label(), known),
            np.append(self.annotator, np.full(len(known), self.n_annotators)),
            np.append(self.category_of_label(), self.known[known]),
        )
        colors = (item, np.append(annotator, np.uint64(2)), category)
        orders = [
            order._replace(annotator=order.annotator[order.annotator < self.n_annotators])
            for order in canonical_orders(rows, colors)
        ]
        if keep_categories:
            own = np.arange(self.n_categories)
            return [order._replace(category=own) for order in orders]
        return orders

    def reordered(self, order: CanonicalOrder) -> ReorderedLabels:
        """Return the labels in another order of items, annotators and categories.

        Rows are in the order of annotators. Covariates are left out.
        """
        rows = np.argsort(np.argsort(order.annotator)[self.annotator], kind="stable")
        made = self._recoded(rows, order)
        return ReorderedLabels(made, np.argsort(rows[made.row]), order)


def _put_first(codes: Codes, n: int) -> Codes:
    """Return the codes below n with the given ones first."""
    others = np.ones(n, dtype=np.bool_)
    others[codes] = False
    return np.append(codes, np.flatnonzero(others))


class ReorderedLabels(NamedTuple):
    """Labels in another order, and the position there of each of the labels."""

    labels: Labels
    position: Codes
    order: CanonicalOrder


class ItemSubset(NamedTuple):
    """The labels of some items, with codes of their own."""

    labels: Labels
    item: NDArray[np.int64]
    """The code there of each item that was asked for."""
    annotator: NDArray[np.int64]
    """The codes that the annotators had before."""
