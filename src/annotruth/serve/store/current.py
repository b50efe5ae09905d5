"""Which events are current, computed in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import BigInteger, ColumnElement, Connection, Select, select, type_coerce

from annotruth.serve.store.rows import UtcTime, from_microseconds
from annotruth.serve.store.tables import ProjectKind, StoredEvent, event

_ROWS_AT_ONCE = 1 << 11  # more objects at once take longer: cache misses, garbage collection
_TIMES = [each.name for each in event.columns if isinstance(each.type, UtcTime)]
_TYPES = {
    each.name: pa.int64()
    if each.name in ("seq", "project", *_TIMES)
    else pa.bool_()
    if each.name == "deleted"
    else pa.string()
    for each in event.columns
}

SAID = ("item", "other_item", "annotator", "label")
EVENT_STATES = pa.schema(
    [
        (name, _TYPES[name])
        for name in ("seq", *SAID, "source", "annotation", "submitted", "deleted")
    ]
)
"""The columns of events that decide which are current, and what these say."""


def read_events(
    connection: Connection, names: Sequence[str], *conditions: ColumnElement[bool]
) -> pa.Table:
    """Return columns of the events with the conditions, in order of ``seq``; times are numbers."""
    schema = pa.schema([(name, _TYPES[name]) for name in names])
    # Arrow converts times faster than Python does.
    columns = [
        type_coerce(event.c[name], BigInteger) if name in _TIMES else event.c[name]
        for name in names
    ]
    query = select(*columns).where(*conditions)
    batches = [_to_arrow(rows, schema) for rows in _fetch(connection, query)]
    # For a few rows in order, databases would rather read all rows than use the right index.
    return _in_order(pa.Table.from_batches(batches, schema))


def _in_order(events: pa.Table) -> pa.Table:
    is_sorted = bool((np.diff(events["seq"].to_numpy()) > 0).all())
    return events if is_sorted else events.sort_by("seq")


def _fetch(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Sequence[Any]]]:
    """Return the rows in batches, from the driver: rows of SQLAlchemy take twice the time."""
    with connection.execute(query) as result:
        if (cursor := result.cursor) is not None:
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield rows


def _to_arrow(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    # SQLite has no type of its own for true and false, so that Arrow finds the type.
    arrays = [pa.array(values, None if pa.types.is_boolean(t) else t) for values, t in columns]
    return pa.record_batch(arrays, schema.names).cast(schema)


def latest_states(events: pa.Table) -> pa.Table:
    """Return the latest event of each annotation."""
    return _latest_of(events, "source", "annotation")


def keep_current(events: pa.Table, kind: ProjectKind) -> pa.Table:
    """Return the current ones of events.

    The events are all those of some annotations. Of labels, they are all those of some slots.
    """
    states = latest_states(events)
    living = states.filter(pc.invert(states["deleted"]))
    return living if kind == "comparisons" else _latest_of(living, "item", "annotator")


def after_events(
    states: pa.Table, current: pa.Table, new: pa.Table, kind: ProjectKind
) -> tuple[pa.Table, pa.Table]:
    """Return the states of annotations, and the current labels, after new events.

    Only what concerns the items of these events is computed again.
    """
    concerned = pc.is_in(states["annotation"], new["annotation"].combine_chunks())
    some = pa.concat_tables([states.filter(concerned), new])
    items = some["item"].unique()
    states = pa.concat_tables([_without(states, concerned), latest_states(some)]).combine_chunks()
    others = _without(current, pc.is_in(current["item"], items))
    of_items = keep_current(states.filter(pc.is_in(states["item"], items)), kind)
    together = pa.concat_tables([others, of_items.select(current.column_names)])
    return states, _in_order(together)


def _without(table: pa.Table, rows: pa.ChunkedArray) -> pa.Table:
    return table.filter(pc.invert(rows)) if pc.any(rows).as_py() else table


def _latest_of(events: pa.Table, *names: str) -> pa.Table:
    first, second = (
        np.asarray(events[name].combine_chunks().dictionary_encode().indices).astype(np.int64)
        for name in names
    )
    group = first * (int(second.max(initial=0)) + 1) + second
    order = np.lexsort((events["seq"].to_numpy(), events["submitted"].to_numpy(), group))
    in_order = group[order]
    is_latest = np.zeros(len(order), bool)
    is_latest[order] = np.append(in_order[1:] != in_order[:-1], True)[: len(order)]
    return events.filter(pa.array(is_latest))


def stored_events(events: pa.Table) -> Iterable[StoredEvent]:
    """Return the rows of a table with all columns."""
    columns = {name: events[name].to_pylist() for name in StoredEvent._fields}
    for name in _TIMES:
        columns[name] = [None if t is None else from_microseconds(t) for t in columns[name]]
    return (StoredEvent(*row) for row in zip(*columns.values(), strict=True))
