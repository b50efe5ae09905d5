"""From batches of rows to the arrays of `Labels`; a table in memory is one batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import (
    InputError,
    option,
)
from annotruth.kernels.arrays import slices
from annotruth.observations import sets, validate
from annotruth.observations.arrays import REPLACED, Covariates
from annotruth.observations.bins import make_bins
from annotruth.observations.columns.names import (
    LABEL_ROLES,
    check_annotator_column,
    check_further_columns,
    describe_columns,
    find_columns,
    find_time_columns,
    refuse_comparisons,
    warn_of_unused_times,
)
from annotruth.observations.covariates import (
    content_of_items,
    join_times,
    parse_times,
    to_array,
    to_numbers,
    warn_of_empty_times,
)
from annotruth.observations.disk import Disk, sort_on_disk
from annotruth.observations.encode import (
    BatchEncoder,
    Memory,
    encode_columns,
    restore_text,
    to_integers,
)
from annotruth.observations.frames import as_arrow, as_numpy, default_frame, is_list
from annotruth.observations.layout import (
    ArrangedRows,
    RowCodes,
    TableSize,
    arrange_with_policy,
)
from annotruth.observations.options import ParsedLabels, ParsedSource, ReadOptions
from annotruth.observations.scale import (
    Scale,
    infer_scale,
    judge_order,
    take_binary_codes_as_classes,
    to_plain,
)
from annotruth.observations.table import Labels

_MAX_NAMED_REPEATS = 3  # in a message


def decide_scale(
    values: pa.Array, options: ReadOptions, *, from_text: bool
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
    validate.check_scale(scale)
    validate.check_known_categories(category, values, scale)
    return scale, category


_MAX_NOTES = 3  # of several sources


class TableBuilder:
    """What the builders of labels and of comparisons have in common: ids, codes and their store.

    Codes go to ``disk`` if that is given. With ``mixed_as_text``, ids of different types become text.
    """

    def __init__(
        self, roles: Sequence[str], disk: Disk | None = None, *, mixed_as_text: bool = False
    ) -> None:
        self._disk = disk
        self._store = disk or Memory()
        self._from_text = False
        self._encoders = {
            role: BatchEncoder(role, self._store, mixed_as_text=mixed_as_text) for role in roles
        }
        self._n_rows = self._n_sources = 0
        self._unused: Counter[str] = Counter()  # rows left out, by reason

    def _check_room(self) -> None:
        if self._disk is not None:
            n_bytes = sum(each.n_bytes for each in self._encoders.values())
            self._disk.check_room(n_bytes, "ids")

    def _ids(self, role: str, *, may_be_numbers: bool = True) -> pa.Array:
        """Return the ids behind codes; those of a table without types are numbers where they can be."""
        if self._from_text and may_be_numbers:
            self._encoders[role].merge_whole_numbers()
        ids = self._encoders[role].values()
        if not self._from_text:
            return ids
        return to_integers(restore_text(ids)) if may_be_numbers else restore_text(ids)

    def _of_all_sources(self, each: str) -> str:
        """Return one line on how the sources were read, of which each was read so."""
        if self._n_sources == 1:
            return each
        return f"{self._n_sources:,} files" + (f", each {each}" if each else "")


class LabelColumns(NamedTuple):
    """The columns of a long table of labels: of each role, of times by role, and further ones."""

    by_role: Mapping[str, str]
    times: Mapping[str, str]
    further: Sequence[str]

    @classmethod
    def find(
        cls, names: Sequence[str], options: ReadOptions, *, on_disk: bool = False
    ) -> LabelColumns:
        """Return the columns of a table; refuse one in which they are not found."""
        names = list(names)
        refuse_comparisons(names, options.label_columns)
        by_role = find_columns(names, LABEL_ROLES, options.label_columns)
        used = list(by_role.values())
        check_further_columns("covariate", names, options.covariates, used)
        # Items may be named by their content, such as the URLs of images.
        others = [column for role, column in by_role.items() if role != "item"]
        check_further_columns("content", names, options.content, others)
        times = {}
        if on_disk:
            warn_of_unused_times(names, used, f"on disk ({option('memory')})")
        else:
            times = find_time_columns(names, options.time_columns, [*used, *options.content])
        return cls(by_role, times, (*options.covariates, *options.content))

    def names(self) -> list[str]:
        """Return the columns to read."""
        columns = [*self.by_role.values(), *self.further, *self.times.values()]
        return list(dict.fromkeys(columns))


class LabelBuilder(TableBuilder):
    """Builds labels from one source after the other, each in batches; codes go to ``disk`` if given."""

    def __init__(self, read: ReadOptions, disk: Disk | None = None) -> None:
        super().__init__(LABEL_ROLES, disk)
        self._options = read
        self._codes = {role: self._store.column(np.int32) for role in LABEL_ROLES}
        self._first: ParsedSource | None = None
        self._columns = LabelColumns({}, {}, ())
        self._notes: dict[str, None] = {}
        self._golds: list[pa.Table] = []
        self._levels: dict[Any, None] = {}
        self._has_sets = False
        self._n_kept = self._n_checked = self._n_unavailable = 0
        self._unnamed: dict[str, tuple[int, int]] = {}  # per role: the first row and the number
        self._further: defaultdict[str, list[pa.Array]] = defaultdict(list)
        self._times: defaultdict[str, list[pa.Array]] = defaultdict(list)

    def add(self, parsed: ParsedLabels) -> None:
        """Add the next rows of a source; rows without a label are dropped."""
        if self._first is None:
            self._first = ParsedSource(from_text=parsed.from_text, title=parsed.title)
            self._options = parsed.options(self._options)
            self._from_text = parsed.from_text
            on_disk = self._disk is not None
            self._columns = LabelColumns.find(
                parsed.table.column_names, self._options, on_disk=on_disk
            )
        self._notes |= dict.fromkeys(filter(None, parsed.notes))
        self._unused.update(parsed.unused)
        self._golds += [] if parsed.gold is None else [parsed.gold]
        columns = self._columns
        batch = self._with_sets(parsed.table, columns.by_role)
        by_role = {role: batch.column(name) for role, name in columns.by_role.items()}
        validate.check_types(by_role, columns.by_role)
        encoded = encode_columns(by_role)
        if self._from_text:
            validate.check_header(encoded, columns.by_role, self._n_rows - self._n_checked)
        self._levels |= dict.fromkeys(encoded["label"].levels or ())
        is_empty = validate.missing(encoded["label"].values)
        if self._first.na_is_empty:
            unavailable = validate.not_available(encoded["label"].values, self._options.categories)
            self._n_unavailable += int(unavailable[encoded["label"].codes].sum())
            is_empty = is_empty | unavailable
        kept = ~is_empty[encoded["label"].codes] if is_empty.any() else None
        if kept is not None:
            encoded = {role: column.take(kept) for role, column in encoded.items()}
        times = self._parse_times(batch, columns.times) if columns.times else {}
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
        for role, column in self._codes.items():
            column.append(self._encoders[role].add(encoded[role]))
        mask = None if kept is None else as_arrow(kept)
        for parts, values in (
            (self._further, {name: to_array(batch.column(name)) for name in columns.further}),
            (self._times, times),
        ):
            for name, value in values.items():
                parts[name].append(value if mask is None else value.filter(mask))
        self._check_room()

    def _parse_times(self, batch: pa.Table, columns: Mapping[str, str]) -> dict[str, pa.Array]:
        """Return the times of a batch by role; null where a column holds none."""
        times = {}
        for role, name in columns.items():
            parsed = parse_times(
                role,
                name,
                to_array(batch.column(name)),
                first_row=self._n_rows - self._n_checked,
                given=role in self._options.time_columns,
                quiet=name in self._options.covariates,
            )
            times[role] = pa.nulls(batch.num_rows) if parsed is None else parsed
        return times

    def _with_sets(self, batch: pa.Table, columns: Mapping[str, str]) -> pa.Table:
        """Return a batch whose labels that are sets are their texts, and null where they are NA."""
        name = columns["label"]
        self._has_sets |= self._options.has_sets or is_list(batch.column(name).type)
        if not self._has_sets:
            return batch
        is_text_of_sets = not is_list(batch.column(name).type)
        if self._first is not None and self._first.na_is_empty and is_text_of_sets:
            column = to_plain(batch.column(name))
            unavailable = validate.not_available(column, self._options.categories)
            self._n_unavailable += int(unavailable.sum())
            column = pc.if_else(as_arrow(unavailable), None, column)
            batch = batch.set_column(batch.column_names.index(name), name, column)
        if self._disk is not None:
            raise InputError(
                f"sets of labels need all answers in memory: leave out {option('memory')}"
            )
        n_before = batch.num_rows
        n_empty = int(validate.missing(to_array(batch.column(name))).sum())
        batch = sets.with_keys(batch, columns, self._options)
        if batch.num_rows < n_before:  # a row was one label of an answer
            self._n_rows += n_empty  # what is read are answers
        return batch

    def end_source(self) -> None:
        """Refuse rows of a source without an item or annotator; rows count from the last call."""
        for role in ("item", "annotator"):
            if role in self._unnamed:
                first, n = self._unnamed[role]
                validate.refuse_unnamed(first - self._n_checked, n, role=role)
        self._n_checked = self._n_rows
        self._n_sources += 1

    def finish(self, *, frame: str | None = None) -> Labels:
        """Return the labels of all sources, with their known truths."""
        validate.check_any_labels(self._n_rows, self._n_kept)
        options = self._options.with_categories(list(self._levels) or None)
        values = self._ids("label", may_be_numbers=False)
        if self._has_sets:
            # In order, so that codes do not depend on the order of rows.
            keys = values.take(pc.sort_indices(values))
            scale = sets.scale_of_sets(keys, self._options.categories)
            category = as_numpy(pc.index_in(values, value_set=keys))
        else:
            scale, category = decide_scale(values, options, from_text=self._from_text)
        items, annotators = self._ids("item"), self._ids("annotator")
        given = options.columns
        check_annotator_column(
            self._columns.by_role, given, n_items=len(items), n_labels=self._n_kept
        )
        rows = RowCodes(*(column.to_array() for column in self._codes.values()))
        for encoder, codes in zip(self._encoders.values(), rows, strict=True):
            encoder.renumber(codes)
        self._encoders.clear()
        for at in slices(len(rows.label)):  # in place, as there may be many
            rows.label[at] = category[rows.label[at]]
        size = TableSize(len(items), len(annotators), len(scale))
        if self._disk is None:
            arranged = arrange_with_policy(rows, size, options.duplicates)
        else:
            arranged = sort_on_disk(self._disk, rows, size, options.duplicates)
        if len(arranged.changed):
            item, annotator, _ = rows.take(arranged.changed[:_MAX_NAMED_REPEATS])
            ids = items.take(as_arrow(item)), annotators.take(as_arrow(annotator))
            validate.refuse_repeats(*ids, len(arranged.changed))
        if options.infers_scale and not self._has_sets:
            scale = judge_order(scale, arranged.layout)
        is_refused = options.duplicates == "refuse"
        if not is_refused:
            self._unused[REPLACED] += len(arranged.left_out)
        made: dict[str, Any] = {
            **arranged.layout._asdict(),
            "items": items,
            "annotators": annotators,
            "scale": scale,
            "known": np.full(len(items), -1, dtype=np.int32),
            "covariates": self._covariates(arranged, self._columns.times),
            "n_dropped": self._n_rows - self._n_kept,
            "n_repeated": len(arranged.left_out) if is_refused else 0,
            "unused": dict(+self._unused),
            "frame": frame or default_frame(),
            "read_as": self._read_as(scale),
        }
        labels = Labels(**made, disk=self._disk, rows=arranged.rows)
        return labels.with_gold(pa.concat_tables(self._golds)) if self._golds else labels

    def _read_as(self, scale: Scale) -> str:
        """Return one line on how the labels were read."""
        assert self._first is not None
        title, notes = self._first.title, list(self._notes)
        columns = "" if title else describe_columns(self._columns.by_role, self._options.columns)
        if self._n_sources > 1:
            notes = [*notes[:_MAX_NOTES], *["..."] * (len(notes) > _MAX_NOTES)] if title else []
        each = replace(self._first, notes=notes).read_as
        more = validate.describe_codes(scale), validate.describe_unavailable(self._n_unavailable)
        each = ", ".join(filter(None, (each, columns)))
        return ", ".join(filter(None, (self._of_all_sources(each), *more)))

    def _covariates(self, arranged: ArrangedRows, times: Mapping[str, str]) -> Covariates:
        """Return the covariates of labels, in the order of the layout, and the content of items."""
        if not (self._further or self._times):
            return Covariates()
        rows = np.delete(np.arange(self._n_kept), arranged.left_out)[arranged.layout.row]
        columns = {
            name: pa.concat_arrays(parts).take(as_arrow(rows))
            for name, parts in self._further.items()
        }
        labels = {name: columns[name] for name in self._options.covariates}
        content = {name: columns[name] for name in self._options.content}
        if self._from_text:
            labels = {name: to_numbers(column) for name, column in labels.items()}
            content = {name: restore_text(column) for name, column in content.items()}
        for role, parts in self._times.items():
            column = join_times(role, parts)
            if column.null_count < len(column):
                labels[role] = column.take(as_arrow(rows))
            elif any(not pa.types.is_null(part.type) for part in parts):  # else there was a warning
                warn_of_empty_times(role, times[role])
        of_items = {
            name: content_of_items(name, column, arranged.layout)
            for name, column in content.items()
        }
        return Covariates(labels=labels, items=of_items)
