"""From batches of rows to the arrays of `Labels`; a table in memory is one batch."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import slices
from annotruth.labels import validate
from annotruth.labels.arrays import Covariates
from annotruth.labels.bins import make_bins
from annotruth.labels.covariates import content_of_items, to_array, to_numbers
from annotruth.labels.encode import BatchEncoder, encode_columns, restore_text, to_integers
from annotruth.labels.frames import (
    LABEL_ROLES,
    TIME_NAMES,
    as_arrow,
    as_numpy,
    check_annotator_column,
    check_further_columns,
    describe_columns,
    find_columns,
    is_list,
    refuse_comparisons,
)
from annotruth.labels.layout import Layout, RowCodes, TableSize, arrange_with_policy
from annotruth.labels.options import DuplicatePolicy, TableOptions
from annotruth.labels.scale import (
    Scale,
    infer_scale,
    judge_order,
    take_binary_codes_as_classes,
)

MAX_NAMED_REPEATS = 3
"""How many repeated labels a message names."""


def decide_scale(
    values: pa.Array, options: TableOptions, *, from_text: bool
) -> tuple[Scale, NDArray[np.int32]]:
    """Return the scale of the distinct labels, and the category code of each of them."""
    validate.check_finite(values)
    if options.bins is not None:
        scale, category = make_bins(values, options.bins)
    else:
        scale, category = infer_scale(
            values, kind=options.scale, categories=options.categories, from_text=from_text
        )
        if options.infers_scale:
            scale = take_binary_codes_as_classes(scale)
    validate.check_names(scale)
    validate.check_known_categories(category, values, scale)
    validate.check_magnitude(scale)
    return scale, category


class ArrangedCodes(NamedTuple):
    """Codes that a `CodeStore` has sorted.

    Attributes
    ----------
    layout
        The labels, sorted.
    n_changed
        How many labels to refuse, as the annotator gave the item another label before.
    changed
        The first of them.
    left_out
        The rows that were left out because of another one by the same annotator.

    Examples
    --------
    >>> from annotruth.labels.build import MemoryStore
    >>> from annotruth.labels.layout import RowCodes, TableSize
    >>> store = MemoryStore()
    >>> store.append(RowCodes(np.array([0, 0]), np.array([0, 0]), np.array([1, 0])))
    >>> store.arrange(np.array([0, 1]), TableSize(1, 1, 2), "refuse").n_changed
    1
    """

    layout: Layout
    n_changed: int
    changed: RowCodes
    left_out: NDArray[np.int64]


class CodeStore(Protocol):
    """Where the codes of labels are kept until all of them are there, and then sorted.

    Examples
    --------
    >>> from annotruth.labels.build import CodeStore, LabelBuilder, MemoryStore
    >>> store: CodeStore = MemoryStore()
    >>> builder = LabelBuilder(TableOptions(), store=store)
    >>> builder.add(pa.table({"item": ["a"], "annotator": ["ann"], "label": [1]}))
    >>> builder.finish().layout.row.tolist()
    [0]
    """

    def append(self, codes: RowCodes) -> None:
        """Add the codes of some rows."""

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and exceeds the memory that may be used."""

    def arrange(
        self, category: NDArray[np.int32], size: TableSize, duplicates: DuplicatePolicy
    ) -> ArrangedCodes:
        """Sort all labels; ``category`` holds the category of each code of a label."""


class MemoryStore:
    """Keeps the codes in memory.

    Examples
    --------
    >>> from annotruth.labels.build import MemoryStore
    >>> from annotruth.labels.layout import RowCodes, TableSize
    >>> store = MemoryStore()
    >>> store.append(RowCodes(np.array([1, 0]), np.array([0, 0]), np.array([0, 1])))
    >>> store.arrange(np.array([0, 1]), TableSize(2, 1, 2), "refuse").layout.cell_category.tolist()
    [1, 0]
    """

    def __init__(self) -> None:
        self._batches: list[RowCodes] = []

    def append(self, codes: RowCodes) -> None:
        """Add the codes of some rows."""
        self._batches.append(codes)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Accept everything."""

    def arrange(
        self, category: NDArray[np.int32], size: TableSize, duplicates: DuplicatePolicy
    ) -> ArrangedCodes:
        """Sort all labels."""
        codes = self._batches[0]
        if len(self._batches) > 1:
            codes = RowCodes(*map(np.concatenate, zip(*self._batches, strict=True)))
        for rows in slices(len(codes.label)):  # in place, as there may be many
            codes.label[rows] = category[codes.label[rows]]
        layout, left_out, changed = arrange_with_policy(codes, size, duplicates)
        first = codes.take(changed[:MAX_NAMED_REPEATS])
        return ArrangedCodes(layout, len(changed), first, left_out)


class BuiltLabels(NamedTuple):
    """What a `LabelBuilder` made of all rows: attributes of `Labels`.

    Examples
    --------
    >>> from annotruth.labels.build import LabelBuilder
    >>> builder = LabelBuilder(TableOptions())
    >>> builder.add(pa.table({"item": ["a"], "annotator": ["ann"], "label": ["cat"]}))
    >>> built = builder.finish()
    >>> built.scale.kind, built.n_dropped
    ('nominal', 0)
    """

    layout: Layout
    items: pa.Array
    annotators: pa.Array
    scale: Scale
    n_dropped: int
    n_repeated: int = 0
    covariates: Covariates = Covariates()
    read_as: str = ""


class LabelBuilder:
    """Builds labels from batches of rows.

    Parameters
    ----------
    options
        Which columns to take, and what the labels mean.
    store
        Where the codes go; in memory unless given.
    from_text
        Whether the columns have no types, as in a CSV.

    Examples
    --------
    >>> builder = LabelBuilder(TableOptions())
    >>> for item in ("a", "b"):
    ...     builder.add(pa.table({"item": [item], "annotator": ["ann"], "label": [1]}))
    >>> builder.finish().items.to_pylist()
    ['a', 'b']
    """

    def __init__(
        self, options: TableOptions, *, store: CodeStore | None = None, from_text: bool = False
    ) -> None:
        self._options = options
        self._store = MemoryStore() if store is None else store
        self._keeps_times = store is None
        self._times: dict[str, str] = {}
        self._time_parts: dict[str, list[pa.Array]] = {}
        self._from_text = from_text
        self._columns: dict[str, str] = {}
        self._encoders = {role: BatchEncoder(role) for role in LABEL_ROLES}
        self._levels: dict[Any, None] = {}
        self._has_sets = False
        self._n_rows = self._n_kept = self._n_checked = 0
        self._unnamed: dict[str, tuple[int, int]] = {}  # per role: the first row and the number
        self._further: dict[str, list[pa.Array]] = {
            name: [] for name in (*options.covariates, *options.content)
        }

    def choose_columns(self, names: list[str]) -> list[str]:
        """Return the names of the columns that batches must have."""
        options = self._options
        refuse_comparisons(names, options.label_columns)
        self._columns = find_columns(names, LABEL_ROLES, options.label_columns)
        used = list(self._columns.values())
        check_further_columns("covariate", names, options.covariates, used)
        # Items may be named by their content, such as the URLs of images.
        others = [column for role, column in self._columns.items() if role != "item"]
        check_further_columns("content", names, options.content, others)
        if options.time_columns or _has_known_times(names):
            from annotruth.labels.times import find_time_columns, warn_of_unused_times

            if not self._keeps_times:
                warn_of_unused_times(names, used, "on disk (`--memory`)")
                return list(dict.fromkeys([*used, *options.covariates, *options.content]))
            self._times = find_time_columns(names, options.time_columns, [*used, *options.content])
            self._time_parts = {role: [] for role in self._times}
        times = self._times.values()
        return list(dict.fromkeys([*used, *options.covariates, *options.content, *times]))

    def add(self, batch: pa.Table) -> None:
        """Add rows; rows without a label are dropped."""
        if not self._columns:
            self.choose_columns(batch.column_names)
        batch = self._with_sets(batch)
        by_role = {role: batch.column(name) for role, name in self._columns.items()}
        validate.check_types(by_role, self._columns)
        encoded = encode_columns(by_role)
        if self._from_text:
            validate.check_header(encoded, self._columns, self._n_rows - self._n_checked)
        self._levels |= dict.fromkeys(encoded["label"].levels or ())
        is_empty = validate.missing(encoded["label"].values)
        kept = ~is_empty[encoded["label"].codes] if is_empty.any() else None
        if kept is not None:
            encoded = {role: column.take(kept) for role, column in encoded.items()}
        times = self._parse_times(batch, kept)
        for role in ("item", "annotator"):
            rows = validate.unnamed_rows(encoded[role].codes, encoded[role].values, kept)
            if len(rows):
                first, n = self._unnamed.get(role, (self._n_rows + int(rows[0]), 0))
                self._unnamed[role] = first, n + len(rows)
        self._n_rows += batch.num_rows
        n_kept = len(encoded["label"].codes)
        self._n_kept += n_kept
        if self._unnamed or not n_kept:  # after an error, only the rows at fault are counted
            return
        codes = RowCodes(*(self._encoders[role].add(encoded[role]) for role in encoded))
        self._store.append(codes)
        for name, parts in self._further.items():
            column = to_array(batch.column(name))
            parts.append(column if kept is None else column.filter(as_arrow(kept)))
        for role, times_of_labels in times.items():
            self._time_parts[role].append(times_of_labels)
        self._store.check_room(sum(each.n_bytes for each in self._encoders.values()), "ids")

    def _parse_times(self, batch: pa.Table, kept: NDArray[np.bool_] | None) -> dict[str, pa.Array]:
        """Return the times of the labels of a batch by role; null where a column holds none."""
        times = {}
        for role, name in self._times.items():
            from annotruth.labels.times import parse_times

            parsed = parse_times(
                role,
                name,
                to_array(batch.column(name)),
                first_row=self._n_rows - self._n_checked,
                given=role in self._options.time_columns,
                quiet=name in self._options.covariates,
            )
            column = pa.nulls(batch.num_rows) if parsed is None else parsed
            times[role] = column if kept is None else column.filter(as_arrow(kept))
        return times

    def _with_sets(self, batch: pa.Table) -> pa.Table:
        """Return a batch whose labels that are sets are their texts."""
        kind = batch.column(self._columns["label"]).type
        self._has_sets |= self._options.has_sets or is_list(kind)
        if not self._has_sets:
            return batch
        if not isinstance(self._store, MemoryStore):
            raise InputError(
                "sets of labels need all answers in memory: leave out memory (`--memory`)"
            )
        from annotruth.labels.sets import with_keys

        return with_keys(batch, self._columns, self._options)

    def check_rows(self) -> None:
        """Refuse rows without an item or annotator; they count from the last call, as in a file."""
        for role in ("item", "annotator"):
            if role in self._unnamed:
                first, n = self._unnamed[role]
                validate.refuse_unnamed(first - self._n_checked, n, role=role)
        self._n_checked = self._n_rows

    def finish(self) -> BuiltLabels:
        """Return the labels of all rows."""
        validate.check_any_labels(self._n_rows, self._n_kept)
        self.check_rows()
        items, annotators, values = (self._encoders.pop(role).values() for role in LABEL_ROLES)
        if self._from_text:
            items, annotators, values = map(restore_text, (items, annotators, values))
        options = self._options.with_categories(list(self._levels) or None)
        if self._has_sets:
            scale, category = self._scale_of_sets(values)
        else:
            scale, category = decide_scale(values, options, from_text=self._from_text)
        if self._from_text:
            items, annotators = to_integers(items), to_integers(annotators)
        check_annotator_column(
            self._columns, self._options.columns, n_items=len(items), n_labels=self._n_kept
        )
        size = TableSize(len(items), len(annotators), len(scale))
        arranged = self._store.arrange(category, size, options.duplicates)
        if arranged.n_changed:
            item, annotator, _ = arranged.changed
            validate.refuse_repeats(
                items.take(as_arrow(item)), annotators.take(as_arrow(annotator)), arranged.n_changed
            )
        if options.infers_scale and not self._has_sets:
            scale = judge_order(scale, arranged.layout)
        columns = describe_columns(self._columns, self._options.columns)
        return BuiltLabels(
            arranged.layout,
            items,
            annotators,
            scale,
            n_dropped=self._n_rows - self._n_kept,
            n_repeated=len(arranged.left_out) if options.duplicates == "refuse" else 0,
            covariates=self._covariates(arranged),
            read_as=", ".join(filter(None, (columns, validate.describe_codes(scale)))),
        )

    def _scale_of_sets(self, values: pa.Array) -> tuple[Scale, NDArray[np.int32]]:
        """Return the scale of sets of labels, and the code of each set."""
        from annotruth.labels.sets import scale_of_sets

        # In order, so that codes do not depend on the order of rows.
        keys = values.take(pc.sort_indices(values))
        scale = scale_of_sets(keys, self._options.categories)
        return scale, as_numpy(pc.index_in(values, value_set=keys))

    def _covariates(self, arranged: ArrangedCodes) -> Covariates:
        """Return the covariates of labels, in the order of the layout, and the content of items."""
        if not (self._further or self._time_parts):
            return Covariates()
        rows = np.delete(np.arange(self._n_kept), arranged.left_out)[arranged.layout.row]
        columns = {
            name: pa.concat_arrays(parts).take(as_arrow(rows))
            for name, parts in self._further.items()
        }
        return Covariates(
            labels={
                name: to_numbers(columns[name]) if self._from_text else columns[name]
                for name in self._options.covariates
            }
            | self._times_in_order(rows),
            items={
                name: content_of_items(
                    name,
                    restore_text(columns[name]) if self._from_text else columns[name],
                    arranged.layout,
                )
                for name in self._options.content
            },
        )

    def _times_in_order(self, rows: NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the times of labels by role, in the order of the layout; those that are not null."""
        if not self._time_parts:
            return {}
        from annotruth.labels.times import join_times, warn_of_empty_times

        times = {}
        for role, parts in self._time_parts.items():
            column = join_times(role, parts)
            if column.null_count < len(column):
                times[role] = column.take(as_arrow(rows))
            elif any(not pa.types.is_null(part.type) for part in parts):  # else there was a warning
                warn_of_empty_times(role, self._times[role])
        return times


def _has_known_times(names: list[str]) -> bool:
    """Return whether a table may have columns of times."""
    known = {name.strip().lower() for name in names}
    return any(not known.isdisjoint(some) for some in TIME_NAMES.values())
