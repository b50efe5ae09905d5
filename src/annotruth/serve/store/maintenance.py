"""Export, import, erasure of a person's data, and backup."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, delete, exists, select, update

from annotruth.errors import ComparisonsError, InputError, LabelsError, OutputError, shown
from annotruth.io.atomic import atomic_write
from annotruth.io.readers import read_comparisons, read_labels
from annotruth.io.sources import file_named_in_errors
from annotruth.io.writers import format_of, write_table
from annotruth.observations.encode import to_text
from annotruth.serve.store.current import keep_current, read_events
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import (
    AnnotationState,
    annotation_of_slot,
    annotation_states,
    append_events,
    lock_appends,
)
from annotruth.serve.store.projects import lock_project, snapshots_folder
from annotruth.serve.store.rows import (
    add,
    change,
    count,
    remove,
    table_of,
)
from annotruth.serve.store.tables import (
    Alert,
    AnnotatorHistory,
    AppendedEvents,
    AuditEntry,
    LabelEvent,
    Lease,
    PlatformConnection,
    Project,
    ProjectKind,
    Snapshot,
    StoredEvent,
    TraitRow,
    alert,
    event,
    project,
)

SOURCE = "import"
"""The source of events that were read from a file."""

_COLUMNS = {
    "labels": ("item", "annotator", "label"),
    "comparisons": ("left", "right", "annotator", "winner"),
}

_ERASED = "(erased)"
_ABOUT_ANNOTATORS = (StoredEvent, AnnotatorHistory, TraitRow, Lease)
_NAMING_ANNOTATORS = (
    (AuditEntry, "actor"),
    (AuditEntry, "detail"),
    (Snapshot, "summary"),
    (PlatformConnection, "cursor"),
)
_TIME = pa.timestamp("us", "UTC")
_TIME_COLUMNS = ("started", "submitted", "received")
_EXPORTED = {
    "labels": {"item": "item", "annotator": "annotator", "label": "label"},
    "comparisons": {
        "item": "left",
        "other_item": "right",
        "annotator": "annotator",
        "label": "outcome",
    },
}
_EXPORTED_OF_BOTH = ("source", "annotation", *_TIME_COLUMNS)


def append_file(database: Database, project: Project, path: str, now: datetime) -> AppendedEvents:
    """Append the labels of a file, in any format that `annotruth fit` reads.

    The same file again adds nothing. The file is read before the transaction begins, so that a
    running service need not wait.
    """
    table = _read(path, project)
    with file_named_in_errors(path), database.begin() as connection:
        if project.kind == "comparisons":
            events = _comparisons(table)
        else:
            events = _labels(table, annotation_states(connection, project.id, SOURCE))
        return append_events(connection, project.id, SOURCE, events, now)


def _read(path: str, project: Project) -> pa.Table:
    """Read a file; errors suggest no options of reading, which `annotruth serve import` lacks."""
    reader = read_comparisons if project.kind == "comparisons" else read_labels
    try:
        return reader(path).to_arrow()
    except (ComparisonsError, LabelsError) as error:
        found = "comparisons" if isinstance(error, ComparisonsError) else "labels"
        raise InputError(
            f"{path}: these are {found}, and the project {project.name!r} collects {project.kind}: "
            "import them into another project"
        ) from error
    except InputError as error:
        if "`--" not in str(error):
            raise
        columns = ", ".join(_COLUMNS[project.kind])
        raise InputError(
            f"{error}; `annotruth serve import` has no such options: write a table with the columns "
            f"{columns}"
        ) from error


def _labels(table: pa.Table, known: Mapping[str, AnnotationState]) -> Iterator[LabelEvent]:
    """Return the rows of a table of labels as events.

    The id of an event is a hash of its row. Of a label that an import in between had changed, the id
    also has the hash of what it replaces: it is another event than the first time.
    """
    for item, annotator, label in _rows(table, "labels"):
        event_id = _hash(item, annotator, label, "1")
        before = known.get(annotation_of_slot(item, annotator))
        if before is not None and before.event_id.partition("-")[0] == event_id:
            event_id = before.event_id
        elif before is not None:
            event_id += f"-{_hash(before.event_id)}"
        yield LabelEvent(item, annotator, label, event_id)


def _comparisons(table: pa.Table) -> Iterator[LabelEvent]:
    """Return the rows of a table of comparisons as events.

    The id of an event is a hash of its row and of how many equal rows are before it.
    """
    n_equal: Counter[tuple[str, ...]] = Counter()
    for row in _rows(table, "comparisons"):
        n_equal[row] += 1
        left, right, annotator, outcome = row
        event_id = _hash(*row, str(n_equal[row]))
        yield LabelEvent(left, annotator, outcome, event_id, other_item=right)


def _rows(table: pa.Table, kind: ProjectKind) -> Iterator[tuple[str, ...]]:
    return zip(*(to_text(table[name]).to_pylist() for name in _COLUMNS[kind]), strict=True)


def _hash(*texts: str) -> str:
    content = "".join(f"{len(text)}:{text}" for text in texts)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def export_labels(connection: Connection, of: Project, path: str | os.PathLike[str]) -> int:
    """Write the current labels to a .csv, .parquet or .json file; return their number.

    `annotruth fit` and `annotruth rank` read the file. In a CSV, text that a spreadsheet would run
    as a formula is marked.
    """
    format = format_of(path)
    names = [*_EXPORTED[of.kind], *_EXPORTED_OF_BOTH]
    events = read_events(connection, ["seq", "deleted", *names], event.c.project == of.id)
    table = keep_current(events, of.kind).select(names)
    for name in _TIME_COLUMNS:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(_TIME))
    renamed = table.rename_columns([*_EXPORTED[of.kind].values(), *_EXPORTED_OF_BOTH])
    write_table(renamed, path, format, safe_cells=True)
    return int(table.num_rows)


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


def log(
    connection: Connection,
    project_id: int | None,
    actor: str,
    action: str,
    detail: Mapping[str, Any],
    now: datetime,
) -> None:
    """Add an entry to the audit log; ``detail`` has no secrets."""
    entry = {"project": project_id, "time": now, "actor": actor, "action": action}
    add(connection, AuditEntry, **entry, detail=dict(detail))


def erase_annotator(
    database: Database, data_dir: Path, of: Project, annotator: str, actor: str, now: datetime
) -> int:
    """Erase all that names an annotator of a project; return the number of events removed.

    Rows about the annotator are removed: events, history, traits, leases and alerts. In the audit
    log, summaries and cursors of connections, the name is replaced. The fits of the project's
    snapshots have all annotators' labels, so their folders are removed, and the worker fits again.
    The audit log then says that somebody was erased, but not who. SQLite's file is rewritten, so
    that removed rows do not stay in it.
    """
    with database.begin() as connection:
        n_events = erase_rows(connection, of, annotator)
        log(connection, of.id, actor, "annotator erased", {"events": n_events}, now)
    # After the commit: a worker that saves a fit now finds that data were erased.
    shutil.rmtree(snapshots_folder(data_dir) / str(of.id), ignore_errors=True)
    database.compact()
    return n_events


def erase_rows(connection: Connection, of: Project, annotator: str) -> int:
    """Erase what names an annotator of a project from all tables; return the number of events."""
    lock_project(connection, of.id)
    lock_appends(connection)
    about = {"project": of.id, "annotator": annotator}
    counts = [count(connection, row, **about) for row in _ABOUT_ANNOTATORS]
    if not any(counts):
        raise InputError(f"there is no annotator {shown(annotator)} in project {of.name!r}")
    _remove_anonymous_deletions(connection, of.id, annotator)
    for row in _ABOUT_ANNOTATORS:
        remove(connection, row, **about)
    _remove_alerts(connection, of.id, annotator)
    for naming, column in _NAMING_ANNOTATORS:
        _replace_names(connection, naming, column, of.id, annotator)
    change(connection, Snapshot, {"folder": ""}, project=of.id)
    _count_erasure(connection, of)
    return counts[0]


def _count_erasure(connection: Connection, of: Project) -> None:
    """Count that events of a project were removed: who keeps labels in memory reads them again."""
    counted = update(project).where(project.c.id == of.id)
    connection.execute(counted.values(erasures=project.c.erasures + 1))


def _remove_anonymous_deletions(connection: Connection, project_id: int, annotator: str) -> None:
    """Remove deletions that name no annotator, of annotations of this one only."""
    other = event.alias("other")
    same = (
        (other.c.project == event.c.project)
        & (other.c.source == event.c.source)
        & (other.c.annotation == event.c.annotation)
    )
    own = exists().where(same, other.c.annotator == annotator)
    of_others = exists().where(same, other.c.annotator.not_in([annotator, ""]))
    anonymous = (event.c.project == project_id) & (event.c.annotator == "")
    connection.execute(delete(event).where(anonymous, own, ~of_others))


def _remove_alerts(connection: Connection, project_id: int, annotator: str) -> None:
    # Not a part of a longer word: the annotator "a" is not in every text.
    name = re.compile(rf"(?<!\w){re.escape(annotator)}(?!\w)")
    rows = connection.execute(select(alert).where(alert.c.project == project_id))
    removed = [
        row.id
        for row in rows
        if row.subject == annotator
        or name.search(row.text)
        or _without(row.detail, annotator) != row.detail
    ]
    for each in removed:
        remove(connection, Alert, id=each)


def _replace_names(
    connection: Connection, row: type[Any], name: str, project_id: int, annotator: str
) -> None:
    table = table_of(row)
    keys = list(table.primary_key)
    query = select(table.c[name], *keys).where(table.c.project == project_id)
    for value, *key in connection.execute(query).all():
        replaced = _without(value, annotator)
        if replaced != value:
            found = {column.name: part for column, part in zip(keys, key, strict=True)}
            change(connection, row, {name: replaced}, **found)


def _without(value: Any, annotator: str) -> Any:
    """Return a value of JSON with the annotator replaced, as text or as the key of an object."""
    if isinstance(value, dict):
        return {_without(key, annotator): _without(each, annotator) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each, annotator) for each in value]
    return _ERASED if value == annotator else value
