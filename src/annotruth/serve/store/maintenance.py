"""Export, retention, erasure of a person's data, and backup."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, delete

from annotruth.errors import InputError, OutputError
from annotruth.io.atomic import atomic_write
from annotruth.io.writers import format_of, write_table
from annotruth.serve.store.audit import add_audit
from annotruth.serve.store.current import keep_current, latest_of_annotations, read_events
from annotruth.serve.store.database import Database
from annotruth.serve.store.erasure import count_erasure, erase_rows
from annotruth.serve.store.events import lock_appends
from annotruth.serve.store.records import Project
from annotruth.serve.store.schema import event, to_microseconds
from annotruth.serve.store.snapshots import snapshots_folder
from annotruth.serve.store.statements import lock_project

_ROWS_AT_ONCE = 5_000
_TIME = pa.timestamp("us", "UTC")
_TIMES = ("started", "submitted", "received")
_EXPORTED = {
    "labels": {"item": "item", "annotator": "annotator", "label": "label"},
    "comparisons": {
        "item": "left",
        "other_item": "right",
        "annotator": "annotator",
        "label": "outcome",
    },
}
_EXPORTED_OF_BOTH = ("source", "annotation", *_TIMES)


def export_labels(connection: Connection, project: Project, path: str | os.PathLike[str]) -> int:
    """Write the current labels to a .csv, .parquet or .json file; return their number.

    `annotruth fit` and `annotruth rank` read the file. In a CSV, text that a spreadsheet would run
    as a formula is marked.
    """
    format = format_of(path)
    names = [*_EXPORTED[project.kind], *_EXPORTED_OF_BOTH]
    events = read_events(connection, ["seq", "deleted", *names], event.c.project == project.id)
    table = keep_current(events, project.kind).select(names)
    for name in _TIMES:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(_TIME))
    renamed = table.rename_columns([*_EXPORTED[project.kind].values(), *_EXPORTED_OF_BOTH])
    write_table(renamed, path, format, safe_cells=True)
    return int(table.num_rows)


def remove_superseded(connection: Connection, project: Project, before: datetime) -> int:
    """Remove old events that no current label depends on; return their number.

    These are events received before a time that a later event of their annotation supersedes, and
    all events of an annotation that is not current and has no event since then. A deletion stays
    as long as an event of its annotation does.
    """
    lock_project(connection, project.id)  # in the order of `erase_rows`
    lock_appends(connection)
    names = ["seq", "source", "annotation", "item", "annotator", "submitted", "received", "deleted"]
    events = read_events(connection, names, event.c.project == project.id)
    seq = events["seq"].to_numpy()
    is_old = events["received"].to_numpy() < to_microseconds(before)
    annotation, is_latest = latest_of_annotations(events)
    is_current = np.isin(seq, keep_current(events, project.kind)["seq"].to_numpy())
    has_new = np.isin(annotation, annotation[~is_old])
    needed = is_latest & (is_current | has_new)
    removed = seq[is_old & ~needed].tolist()
    _remove_events(connection, removed)
    if removed:  # a deletion may be among them that the worker has not read yet
        count_erasure(connection, project)
    return len(removed)


def _remove_events(connection: Connection, numbers: list[int]) -> None:
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        some = numbers[start : start + _ROWS_AT_ONCE]
        connection.execute(delete(event).where(event.c.seq.in_(some)))


def backup(database: Database, path: str | os.PathLike[str]) -> None:
    """Copy a database of SQLite as it is at one moment, while others write to it."""
    if not database.is_sqlite:
        raise InputError(f"{database.name}: back up a PostgreSQL server with pg_dump")
    with atomic_write(path) as temporary:
        os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))  # it has secrets
        try:
            with (
                closing(database.engine.raw_connection()) as source,
                closing(sqlite3.connect(temporary)) as target,
            ):
                driver: Any = source.driver_connection
                driver.backup(target)  # in one step, so that it is of one moment
                target.execute("pragma journal_mode = delete")  # no files beside the copy
        except sqlite3.Error as error:
            raise OutputError(
                f"cannot write {os.fspath(path)}: {error}; choose a disk with enough space"
            ) from None


def erase_annotator(
    database: Database, data_dir: Path, project: Project, annotator: str, actor: str, now: datetime
) -> int:
    """Erase all that names an annotator of a project; return the number of events removed.

    Rows about the annotator are removed: events, history, traits, leases and alerts. In the audit
    log, summaries and cursors of connections, the name is replaced. The fits of the project's
    snapshots have all annotators' labels, so their folders are removed, and the worker fits again.
    The audit log then says that somebody was erased, but not who. SQLite's file is rewritten, so
    that removed rows do not stay in it.
    """
    with database.begin() as connection:
        n_events = erase_rows(connection, project, annotator)
        add_audit(connection, project.id, actor, "annotator erased", {"events": n_events}, now)
    # After the commit: a worker that saves a fit now finds that data were erased.
    shutil.rmtree(snapshots_folder(data_dir) / str(project.id), ignore_errors=True)
    database.compact()
    return n_events
