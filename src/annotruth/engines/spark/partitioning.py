"""From a Spark frame to partitions: one shuffle of the rows by item.

No process holds all rows, and the driver sees counts, the categories and the annotators only:

1. the rows are shuffled by item; a task encodes the ids of its rows and writes the codes;
2. the driver numbers the annotators of all partitions, in the order of their ids;
3. a task per partition replaces the codes by those common to all partitions and sorts the labels,
   as in memory.

Every order is that of the ids, so the order of the rows does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.engines.spark.cluster import run_on_partitions, run_tasks
from annotruth.engines.spark.frames import is_spark_frame
from annotruth.engines.spark.labels import LabelPartition, SparkLabels, write_partition
from annotruth.engines.spark.storage import SharedFolder
from annotruth.errors import InputError, option
from annotruth.observations import DuplicatePolicy, Labels, Scale, validate
from annotruth.observations.build import decide_scale
from annotruth.observations.columns.names import LABEL_ROLES, find_columns, warn_of_unused_times
from annotruth.observations.encode import EncodedColumn, encode_column, encode_columns, match_ids
from annotruth.observations.frames import as_arrow, as_numpy
from annotruth.observations.layout import RowCodes, find_repeats
from annotruth.observations.options import ReadOptions
from annotruth.observations.truth import MatchedTruth, TruthTable, check_matches, read_truths

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def sort_codes(column: EncodedColumn) -> EncodedColumn:
    """Return the column with codes in the order of the values, whatever the order of the rows."""
    order = as_numpy(pc.sort_indices(column.values))
    code = np.empty(len(order), dtype=np.int32)
    code[order] = np.arange(len(order), dtype=np.int32)
    return EncodedColumn(code[column.codes], column.values.take(as_arrow(order)))


def number_annotators(
    folder: SharedFolder, encoded: list[EncodedRows], id_type: pa.DataType
) -> tuple[pa.Table, str]:
    """Return all annotators in the order of their ids, with their numbers of labels.

    The second value is a file of the codes among them, one batch per partition.
    """
    rows = [folder.read(one.file) for one in encoded]
    ids = pa.chunked_array([each["annotator"].cast(id_type) for each in rows], id_type)
    coded = sort_codes(encode_column(ids))
    n_labels = np.concatenate([as_numpy(each["n_labels"]) for each in rows])
    totals = np.bincount(coded.codes, weights=n_labels, minlength=len(coded.values))
    bounds = np.cumsum([0, *(one.n_annotators for one in encoded)])
    codes = coded.codes.astype(np.int64)
    file = folder.write_batches("codes", ({"codes": codes[a:b]} for a, b in pairwise(bounds)))
    return pa.table({"annotator": coded.values, "n_labels": totals.astype(np.int64)}), file


class EncodedRows(NamedTuple):
    """What a task returns of the rows it has encoded."""

    file: str  # the codes and ids of the rows that have a label
    n_rows: int  # the numbers of rows, of rows with a label, and of annotators
    n_kept: int
    n_annotators: int
    values: pa.Array  # the distinct labels
    n_unnamed: dict[str, int]  # how many rows have a label but no item, and no annotator


def encode_rows(
    folder: SharedFolder, rows: pa.Table, *, categories: Sequence[Any] | None, from_text: bool
) -> EncodedRows | None:
    """Encode the ids of some rows, drop the rows without a label, and write the codes."""
    if not rows.num_rows:
        return None
    coded = encode_columns({role: rows.column(role) for role in LABEL_ROLES})
    empty = validate.missing(coded["label"].values)
    if from_text:
        empty = empty | validate.not_available(coded["label"].values, categories)
    if empty.any():
        kept = ~empty[coded["label"].codes]
        coded = {role: column.take(kept) for role, column in coded.items()}
    coded = {role: sort_codes(column) for role, column in coded.items()}
    n_unnamed = {
        role: int(validate.missing(column.values)[column.codes].sum())
        for role, column in coded.items()
    }
    annotator = coded["annotator"]
    n_annotators = len(annotator.values)
    file = folder.write(
        "rows",
        {
            **{f"{role}_codes": column.codes for role, column in coded.items()},
            **{role: column.values for role, column in coded.items()},
            "n_labels": np.bincount(annotator.codes, minlength=n_annotators),
        },
    )
    n_kept = len(annotator.codes)
    values = coded["label"].values
    return EncodedRows(file, rows.num_rows, n_kept, n_annotators, values, n_unnamed)


def check_rows(encoded: list[EncodedRows]) -> None:
    """Refuse a frame without labels, and labels without an item or annotator."""
    validate.check_any_labels(
        sum(one.n_rows for one in encoded), sum(one.n_kept for one in encoded)
    )
    for role in ("item", "annotator"):
        n = sum(one.n_unnamed[role] for one in encoded)
        if n:
            raise InputError(
                f"{n:,} rows have a label but no {role}: name the {role} or remove the rows"
            )


_MAX_VALUES = 100_000  # distinct labels, which the driver collects
_NAMED_REPEATS = 3  # in a message


class SortedPartition(NamedTuple):
    """What a task returns of a partition it has sorted and written."""

    partition: LabelPartition  # the partition
    n_repeats: int  # how many labels repeat an item and annotator, and the ids of some of them
    repeats: tuple[pa.Array, pa.Array]
    n_known: int  # how many of its items have a known truth


class _Categories(NamedTuple):
    """The scale, and the category of every distinct label."""

    scale: Scale
    values: pa.Array
    codes: NDArray[np.int32]


class _KnownTruths(NamedTuple):
    """The known truths of some items, as categories."""

    ids: pa.Array
    codes: NDArray[np.int32]


def partition_frame(
    frame: DataFrame,
    folder: SharedFolder,
    options: ReadOptions,
    *,
    gold: Any = None,
    n_partitions: int | None = None,
    from_text: bool = False,
) -> SparkLabels:
    """Check the labels of a frame and write them to partitions in a folder of their own.

    ``frame``, ``folder``, ``options``: The frame, the folder, and how to read the labels.
    ``gold``: Known truths of some items: a frame of ``item, label``, a mapping or a Series.
    ``n_partitions``: How many partitions to make; by default Spark chooses.
    ``from_text``: Whether the columns have no types, as in a CSV.
    """
    if options.duplicates == "last":
        raise InputError(
            "rows of a Spark table have no order, so none is the last: pass "
            f"{option('duplicates', 'keep')}"
        )
    spark = frame.sparkSession
    known = None if gold is None else _collect_gold(gold)
    names = find_columns(frame.columns, LABEL_ROLES, options.columns)
    warn_of_unused_times(frame.columns, names.values(), "on Spark")
    rows = frame.select(*(_column(frame, name).alias(role) for role, name in names.items()))
    empty = rows.limit(0).toArrow()
    validate.check_types({role: empty.column(role) for role in names}, names)
    shuffled = (
        rows.repartition("item") if n_partitions is None else rows.repartition(n_partitions, "item")
    )

    encode = partial(encode_rows, folder, categories=options.categories, from_text=from_text)
    encoded = run_on_partitions(shuffled, encode)
    check_rows(encoded)
    categories = _decide_categories(encoded, options, from_text=from_text)
    files = [one.file for one in encoded]
    id_type = empty.schema.field("annotator").type
    annotators, codes_file = number_annotators(folder, encoded, id_type)
    truths = None if known is None else _known_truths(known, categories.scale)
    task = partial(
        _sort_partition, folder, files, codes_file, categories, truths, options.duplicates
    )
    written = run_tasks(spark, task, len(encoded))
    _check_repeats(written)
    if truths is not None:
        check_matches(sum(one.n_known for one in written), truths.ids, "gold")
    folder.remove([*files, codes_file])
    return SparkLabels(
        spark=spark,
        folder=folder,
        scale=categories.scale,
        partitions=[one.partition for one in written],
        annotators=annotators,
        n_dropped=sum(one.n_rows - one.n_kept for one in encoded),
    )


def _column(frame: DataFrame, name: str) -> Column:
    """Return a column by its name, which may have dots and backticks in it."""
    return frame["`" + name.replace("`", "``") + "`"]


def _collect_gold(gold: Any) -> TruthTable:
    """Return the known truths, which are few; refuse items that occur twice."""
    known = read_truths(gold.toArrow() if is_spark_frame(gold) else gold, role="gold")
    codes = encode_column(pa.chunked_array([known.ids])).codes
    validate.check_items_once(codes, known.ids, "gold")
    return known


def _known_truths(known: TruthTable, scale: Scale) -> _KnownTruths:
    truth = MatchedTruth(np.arange(len(known.ids)), known.values, scale, "gold")
    return _KnownTruths(known.ids, truth.categories())


def _decide_categories(
    encoded: list[EncodedRows], options: ReadOptions, *, from_text: bool
) -> _Categories:
    values = pc.unique(pa.chunked_array([one.values for one in encoded]))
    values = values.take(pc.sort_indices(values))
    if len(values) > _MAX_VALUES:
        raise InputError(
            f"there are {len(values):,} different labels: if they are numbers of a continuous "
            f"scale, put them into bins: pass {option('bins', 10)}"
        )
    scale, codes = decide_scale(values, options, from_text=from_text)
    return _Categories(scale, values, codes)


def _sort_partition(
    folder: SharedFolder,
    files: list[str],
    codes_file: str,
    categories: _Categories,
    truths: _KnownTruths | None,
    duplicates: DuplicatePolicy,
    number: int,
) -> SortedPartition:
    """Replace a partition's codes by those common to all partitions, sort its labels, write it."""
    rows = folder.read(files[number])
    codes = as_numpy(folder.read(codes_file, number)["codes"])
    item, annotator = as_numpy(rows["item_codes"]), as_numpy(rows["annotator_codes"])
    category = categories.codes[match_ids(rows["label"], categories.values)]
    label = category[as_numpy(rows["label_codes"])]
    # Within an item and category labels are in the order of the annotators, not of the rows.
    by_annotator = np.argsort(annotator, kind="stable")
    labels = Labels.from_codes(
        item[by_annotator],
        annotator[by_annotator],
        label[by_annotator],
        items=rows["item"],
        annotators=rows["annotator"],
        scale=categories.scale,
        frame="pyarrow",
    )
    later = np.empty(0, dtype=np.int64)
    if duplicates == "refuse":
        # Identical rows are refused too: they could only be counted once all partitions are.
        repeats = find_repeats(RowCodes(item, annotator, label), len(codes))
        later = np.sort(np.concatenate([repeats.identical, repeats.changed]))
    named = later[:_NAMED_REPEATS]
    n_known = 0
    if truths is not None:
        place = match_ids(truths.ids, labels.items)
        present = place >= 0
        n_known = int(present.sum())
        labels.known[place[present]] = truths.codes[present]
    return SortedPartition(
        write_partition(folder, labels, codes),
        len(later),
        (
            labels.items.take(as_arrow(item[named])),
            labels.annotators.take(as_arrow(annotator[named])),
        ),
        n_known,
    )


def _check_repeats(written: list[SortedPartition]) -> None:
    """Refuse annotators who labelled an item twice, which tasks count and do not refuse."""
    n_repeats = sum(one.n_repeats for one in written)
    if n_repeats:
        items, annotators = (
            pa.concat_arrays([one.repeats[side] for one in written])[:_NAMED_REPEATS]
            for side in (0, 1)
        )
        validate.refuse_repeats(items, annotators, n_repeats)
