"""From batches of rows to the arrays of `Labels`; a table in memory is one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import slices
from annotruth.observations import validate
from annotruth.observations.arrays import Covariates
from annotruth.observations.covariates import content_of_items, to_array, to_numbers
from annotruth.observations.disk import Disk, Memory
from annotruth.observations.disk_sort import MAX_NAMED_REPEATS, ArrangedCodes, sort_on_disk
from annotruth.observations.encode import BatchEncoder, encode_columns, restore_text, to_integers
from annotruth.observations.frames import (
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
from annotruth.observations.layout import Layout, RowCodes, TableSize, arrange_with_policy
from annotruth.observations.options import TableOptions
from annotruth.observations.scale import (
    Scale,
    infer_scale,
    judge_order,
    make_bins,
    take_binary_codes_as_classes,
    to_plain,
)


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


@dataclass(frozen=True, kw_only=True)
class ParsedSource:
    """What was found in a source, for the summary and for messages."""

    from_text: bool = False
    """Whether the columns have no types, as in a CSV."""
    notes: Sequence[str] = ()
    """What was found and left out."""
    title: str = ""
    """The name of the format; empty for a table of one row per label or comparison."""

    @property
    def read_as(self) -> str:
        """Return one line on how the source was read."""
        notes = ", ".join(note for note in self.notes if note)
        if not self.title:
            return notes
        return f"{self.title} ({notes})" if notes else self.title

    @property
    def kind(self) -> str:
        """Return what several files must have in common."""
        return self.title or ("a text table" if self.from_text else "a table with types")


class BuiltLabels(NamedTuple):
    """What a `LabelBuilder` made of all rows: attributes of `Labels`."""

    layout: Layout
    items: pa.Array
    annotators: pa.Array
    scale: Scale
    n_dropped: int
    n_repeated: int = 0
    covariates: Covariates = Covariates()
    read_as: str = ""
    notes: tuple[str, ...] = ()  # what else to say of how they were read
    rows: RowCodes | None = None
    """The codes in row order, where they are on disk."""

    def described(self, read_as: str) -> BuiltLabels:
        """Return the labels with one line on how they were read, and the notes behind it."""
        return self._replace(read_as=", ".join(filter(None, (read_as, *self.notes))), notes=())


class LabelBuilder:
    """Builds labels from batches of rows; codes go to ``disk`` if that is given.

    With ``na_is_empty``, labels such as NA are missing ones, unless they are among the categories.
    """

    def __init__(
        self,
        options: TableOptions,
        *,
        disk: Disk | None = None,
        from_text: bool = False,
        na_is_empty: bool = False,
    ) -> None:
        self._options = options
        self._disk = disk
        self._store = disk or Memory()
        self._codes = [self._store.column(np.int32) for _ in LABEL_ROLES]
        self._times: dict[str, str] = {}
        self._time_parts: dict[str, list[pa.Array]] = {}
        self._from_text = from_text
        self._na_is_empty = na_is_empty
        self._n_unavailable = 0
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
            from annotruth.observations.times import find_time_columns, warn_of_unused_times

            if self._disk is not None:
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
        if self._na_is_empty:
            unavailable = validate.not_available(encoded["label"].values, self._options.categories)
            if unavailable.any():
                self._n_unavailable += int(unavailable[encoded["label"].codes].sum())
                is_empty = is_empty | unavailable
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
        for column, role in zip(self._codes, LABEL_ROLES, strict=True):
            column.append(self._encoders[role].add(encoded[role]))
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
            from annotruth.observations.times import parse_times

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
        if self._na_is_empty:
            batch = self._without_unavailable(batch)
        if self._disk is not None:
            raise InputError(
                "sets of labels need all answers in memory: leave out memory (`--memory`)"
            )
        from annotruth.observations.sets import with_keys

        return with_keys(batch, self._columns, self._options)

    def _without_unavailable(self, batch: pa.Table) -> pa.Table:
        """Return a batch in which cells of NA or the like are null."""
        name = self._columns["label"]
        column = to_plain(batch.column(name))
        unavailable = validate.not_available(column, self._options.categories)
        self._n_unavailable += int(unavailable.sum())
        place = batch.column_names.index(name)
        return batch.set_column(place, name, pc.if_else(as_arrow(unavailable), None, column))

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
        rows = RowCodes(*(column.to_array() for column in self._codes))
        for at in slices(len(rows.label)):  # in place, as there may be many
            rows.label[at] = category[rows.label[at]]
        size = TableSize(len(items), len(annotators), len(scale))
        if self._disk is None:
            layout, left_out, changed = arrange_with_policy(rows, size, options.duplicates)
            first = rows.take(changed[:MAX_NAMED_REPEATS])
            arranged = ArrangedCodes(layout, len(changed), first, left_out)
        else:
            arranged = sort_on_disk(self._disk, rows, size, options.duplicates)
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
            read_as=columns,
            notes=(
                validate.describe_codes(scale),
                validate.describe_unavailable(self._n_unavailable),
            ),
            rows=arranged.rows,
        )

    def _scale_of_sets(self, values: pa.Array) -> tuple[Scale, NDArray[np.int32]]:
        """Return the scale of sets of labels, and the code of each set."""
        from annotruth.observations.sets import scale_of_sets

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
        from annotruth.observations.times import join_times, warn_of_empty_times

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
