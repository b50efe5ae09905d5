"""From a Spark frame to chunks: one shuffle by item, and one of the chunks' annotators.

No task needs all of anything, and the driver hears of counts and of the categories alone:

1. rows are shuffled by item; a task encodes the ids of its rows and writes raw codes;
2. the annotators of every chunk are shuffled by id; a task numbers its own, in the order of the
   ids, and says who they are in which chunk;
3. a task for every chunk puts the common codes in and sorts the labels, as in memory.

All orders are those of ids, so it does not matter in which order rows come.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.engines.spark.chunks import Chunk, write_chunk
from annotruth.engines.spark.labels import SparkLabels
from annotruth.engines.spark.people import People, codes_of, in_order, numbered
from annotruth.engines.spark.storage import Storage
from annotruth.engines.spark.tasks import run_on_rows, run_tasks
from annotruth.errors import InputError
from annotruth.labels import DuplicatePolicy, Labels, Scale, TableOptions, validate
from annotruth.labels.buffers import as_arrow, as_numpy
from annotruth.labels.build import decide_scale
from annotruth.labels.encode import encode_column, encode_columns, match_ids
from annotruth.labels.frames import is_spark_frame
from annotruth.labels.layout import RowCodes, find_repeats
from annotruth.labels.truth import Answers, Truth, answers_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MOST_VALUES = 100_000  # different labels, of which the driver hears
_NAMED = 3  # repeats that a message names


class Rows(NamedTuple):
    """What a task tells of the rows it has encoded."""

    file: str
    n_rows: int
    n_kept: int
    n_annotators: int
    values: pa.Array
    unnamed: dict[str, int]


class Finished(NamedTuple):
    """What a task tells of a chunk it has sorted."""

    chunk: Chunk
    n_repeats: int
    repeats: tuple[pa.Array, pa.Array]
    n_known: int


def pack(
    frame: DataFrame,
    storage: Storage,
    options: TableOptions,
    *,
    gold: Any = None,
    partitions: int | None = None,
    from_text: bool = False,
) -> SparkLabels:
    """Check the labels of a frame and lay them out in chunks in a folder of their own."""
    if options.duplicates == "last":
        raise InputError("rows of a Spark table have no order, so none is the last: choose keep")
    known = None if gold is None else _gold(gold)
    names = validate.find_columns(frame.columns, validate.LABEL_ROLES, options.columns)
    rows = frame.select(*(_column(frame, name).alias(role) for role, name in names.items()))
    empty = rows.limit(0).toArrow()
    validate.check_types({role: empty.column(role) for role in names}, names)
    by_item = (
        rows.repartition("item") if partitions is None else rows.repartition(partitions, "item")
    )

    encoded = run_on_rows(by_item, partial(_encode_rows, storage))
    the_scale, values, category = _scale(encoded, options, from_text=from_text)
    files = [one.file for one in encoded]
    people = numbered(
        frame.sparkSession,
        storage,
        files,
        sum(one.n_annotators for one in encoded),
        empty.schema.field("annotator").type,
    )
    finish = partial(
        _finish,
        storage,
        files,
        people,
        the_scale,
        (values, category),
        None if known is None else (known.ids, _categories(known, the_scale)),
        options.duplicates,
    )
    finished = run_tasks(frame.sparkSession, finish, len(encoded))
    _check(finished, known)
    storage.remove(files)
    return SparkLabels(
        spark=frame.sparkSession,
        storage=storage,
        scale=the_scale,
        chunks=[one.chunk for one in finished],
        shards=[one.shard for one in people],
        n_dropped=sum(one.n_rows - one.n_kept for one in encoded),
    )


def pack_labels(labels: Labels, storage: Storage, n_chunks: int) -> list[Chunk]:
    """Lay labels in memory out in chunks, in their order."""
    bounds = np.unique(labels.partition(n_chunks))
    chunks = []
    for start, stop in pairwise(bounds):
        cells = labels.item_ptr[start : stop + 1]
        ends = labels.cell_ptr[cells[0] : cells[-1] + 1]
        people, annotator = np.unique(labels.annotator[ends[0] : ends[-1]], return_inverse=True)
        part = Labels(
            items=labels.items[start:stop],
            annotators=labels.annotators.take(as_arrow(people)),
            scale=labels.scale,
            item_ptr=cells - cells[0],
            cell_category=labels.cell_category[cells[0] : cells[-1]],
            cell_ptr=ends - ends[0],
            annotator=annotator.astype(np.int32),
            row=np.arange(len(annotator)),
            known=labels.known[start:stop],
        )
        chunks.append(write_chunk(storage, part, people.astype(np.int64)))
    return chunks


def _column(frame: DataFrame, name: str) -> Column:
    """Take a column by its name, with whatever dots and backticks it has."""
    return frame["`" + name.replace("`", "``") + "`"]


def _gold(gold: Any) -> Answers:
    """Bring known truths, which are few, to the driver; none may be there twice."""
    known = answers_of(gold.toArrow() if is_spark_frame(gold) else gold, role="gold")
    validate.check_known_items(
        encode_column(pa.chunked_array([known.ids])).codes, known.ids, "gold"
    )
    return known


def _categories(known: Answers, scale: Scale) -> NDArray[np.int32]:
    return Truth(np.arange(len(known.ids)), known.values, scale, "gold").categories()


def _encode_rows(storage: Storage, rows: pa.Table) -> Rows | None:
    """Encode the ids of some rows, and drop those without a label."""
    if not rows.num_rows:
        return None
    coded = encode_columns({role: rows.column(role) for role in validate.LABEL_ROLES})
    empty = validate.missing(coded["label"].values)
    if empty.any():
        kept = ~empty[coded["label"].codes]
        coded = {role: column.take(kept) for role, column in coded.items()}
    coded = {role: in_order(column) for role, column in coded.items()}
    unnamed = {
        role: int(validate.missing(column.values)[column.codes].sum())
        for role, column in coded.items()
    }
    annotator = coded["annotator"]
    file = storage.write(
        "rows",
        {
            **{f"{role} codes": column.codes for role, column in coded.items()},
            **{role: column.values for role, column in coded.items()},
            "n_labels": np.bincount(annotator.codes, minlength=len(annotator.values)),
        },
    )
    values = coded["label"].values
    n_kept = len(annotator.codes)
    return Rows(file, rows.num_rows, n_kept, len(annotator.values), values, unnamed)


def _scale(
    encoded: list[Rows], options: TableOptions, *, from_text: bool
) -> tuple[Scale, pa.Array, NDArray[np.int32]]:
    """Decide the scale, and the category of every different label."""
    validate.check_any_labels(
        sum(one.n_rows for one in encoded), sum(one.n_kept for one in encoded)
    )
    for role in ("item", "annotator"):
        n = sum(one.unnamed[role] for one in encoded)
        if n:
            raise InputError(
                f"{n:,} rows have a label but no {role}: name the {role} or remove the rows"
            )
    values = pc.unique(pa.chunked_array([one.values for one in encoded]))
    values = values.take(pc.sort_indices(values))
    if len(values) > _MOST_VALUES:
        raise InputError(
            f"there are {len(values):,} different labels: if they are numbers of a continuous "
            "scale, put them into bins (bins 10, say)"
        )
    the_scale, category = decide_scale(values, options, from_text=from_text)
    return the_scale, values, category


def _finish(
    storage: Storage,
    files: list[str],
    people: list[People],
    scale: Scale,
    categories: tuple[pa.Array, NDArray[np.int32]],
    gold: tuple[pa.Array, NDArray[np.int32]] | None,
    duplicates: DuplicatePolicy,
    place: int,
) -> Finished:
    """Put the common codes of annotators and categories in, and sort."""
    raw = storage.read(files[place])
    codes = codes_of(storage, people, place, len(raw["annotator"]))
    order = np.argsort(codes)
    renumbered = np.empty(len(order), dtype=np.int32)
    renumbered[order] = np.arange(len(order), dtype=np.int32)
    item, annotator = as_numpy(raw["item codes"]), renumbered[as_numpy(raw["annotator codes"])]
    values, category = categories
    label = category[match_ids(raw["label"], values)][as_numpy(raw["label codes"])]
    # Within an item and category the order is that of the annotators, however rows came.
    rows = np.argsort(annotator, kind="stable")
    labels = Labels.from_codes(
        item[rows],
        annotator[rows],
        label[rows],
        items=raw["item"],
        annotators=raw["annotator"].take(as_arrow(order)),
        scale=scale,
        frame="pyarrow",
    )
    later = np.empty(0, dtype=np.int64)
    if duplicates == "refuse":
        later = find_repeats(RowCodes(item, annotator, label), len(order)).later
    first = as_arrow(later[:_NAMED])
    n_known = 0
    if gold is not None:
        ids, truth = gold
        found = match_ids(ids, labels.items)
        n_known = int((found >= 0).sum())
        labels.known[found[found >= 0]] = truth[found >= 0]
    return Finished(
        write_chunk(storage, labels, codes[order]),
        len(later),
        (
            labels.items.take(as_arrow(item).take(first)),
            labels.annotators.take(as_arrow(annotator).take(first)),
        ),
        n_known,
    )


def _check(finished: list[Finished], known: Answers | None) -> None:
    """Refuse repeats and gold that no item has; tasks only tell of them."""
    n_repeats = sum(one.n_repeats for one in finished)
    if n_repeats:
        items, annotators = (
            pa.concat_arrays([one.repeats[side] for one in finished])[:_NAMED] for side in (0, 1)
        )
        validate.refuse_repeats(items, annotators, n_repeats)
    if known is not None:
        n_known = sum(one.n_known for one in finished)
        if n_known < len(known.ids):
            raise InputError(
                f"the gold names {len(known.ids) - n_known:,} items that have no labels: remove "
                "them, or check that the ids match"
            )
