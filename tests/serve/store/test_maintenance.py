"""Export, retention, erasure and backup."""

import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet
import pytest
from sqlalchemy import select
from tests.serve.conftest import add_connection, add_webhook

import annotruth as at
from annotruth.io.readers import read_labels
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import append_events, current_labels, events_since
from annotruth.serve.store.maintenance import (
    backup,
    erase_annotator,
    export_labels,
    log,
)
from annotruth.serve.store.projects import (
    add_alert,
    add_snapshot,
    create_project,
    due_deliveries,
    get_project,
    latest_snapshot,
    set_traits,
    snapshot_history,
    snapshots_folder,
    take_lease,
)
from annotruth.serve.store.rows import add_all, latest, metadata
from annotruth.serve.store.tables import (
    Alert,
    AnnotatorHistory,
    AuditEntry,
    LabelEvent,
    Snapshot,
)
from annotruth.serve.store.tables import platform_connection as connection_table

DAY = timedelta(days=1)
EVENTS = [
    LabelEvent("film 1", "ann", "good"),
    LabelEvent("film 1", "bob", "=1+1"),
    LabelEvent("film 1", "bob", "bad"),
    LabelEvent("film 2", "ann", "bad"),
    LabelEvent("film 2", "=cmd()", "good"),
    LabelEvent("film 2", "ann", deleted=True),
]


def append(database, project, events, now):
    with database.begin() as connection:
        append_events(connection, project.id, "api", events, now)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_exports_are_the_current_labels(database, project, now, tmp_path, suffix):
    append(database, project, EVENTS, now)
    path = tmp_path / f"labels{suffix}"
    with database.connect() as connection:
        assert export_labels(connection, project, path) == 3
        view = current_labels(connection, project.id)
    if suffix == ".parquet":
        rows = pyarrow.parquet.read_table(path).to_pylist()
        assert list(rows[0]) == [
            *("item", "annotator", "label"),
            *("source", "annotation", "started", "submitted", "received"),
        ]
        assert rows == [{name: getattr(row, name) for name in rows[0]} for row in view]
    else:
        assert '"\'=cmd()"' in path.read_text()
    labels = at.Labels.of([(row.item, row.annotator, row.label) for row in view])
    assert read_labels(path).same_as(labels)


def test_comparisons_are_exported_as_votes(database, now, tmp_path):
    with database.begin() as connection:
        project = create_project(connection, "pairs", "comparisons", {}, now)
        votes = [
            LabelEvent(left, "ann", "left", other_item=right)
            for left, right in (("a", "b"), ("b", "c"), ("a", "c"))
        ]
        append_events(connection, project.id, "api", votes, now)
        assert export_labels(connection, project, tmp_path / "votes.csv") == 3
    ranking = at.rank(tmp_path / "votes.csv")
    assert next(iter(ranking.items()["item"])) == "a"


def test_exports_of_other_formats_are_refused(database, project, tmp_path):
    with (
        pytest.raises(at.InputError, match=r"must end in \.csv, \.parquet"),
        database.connect() as connection,
    ):
        export_labels(connection, project, tmp_path / "labels.xlsx")


def every_text(database):
    """Return all values of all tables as one text."""
    with database.connect() as connection:
        rows = [
            str(tuple(row))
            for table in metadata.sorted_tables
            for row in connection.execute(select(table))
        ]
    return "\n".join(rows)


ERASED = "zoë-7f3a"


def test_erasing_removes_all_that_names_the_person(database, project, now, tmp_path):
    append(database, project, [*EVENTS, LabelEvent("film 1", ERASED, "good", annotation="9")], now)
    append(database, project, [LabelEvent(annotation="9", deleted=True)], now)
    append(database, project, [LabelEvent("film 2", ERASED, "good")], now)
    with database.begin() as connection:
        other = create_project(connection, "other", "labels", {}, now)
        append_events(connection, other.id, "api", [LabelEvent("f", "zoe", "x")], now)
        row = AnnotatorHistory(project.id, ERASED, 1, now, 5, 0.9, 0.8, 1.0, "serious", "keep")
        add_all(connection, [row, row._replace(annotator="ann")])
        set_traits(connection, project.id, {ERASED: {"group": 1}, "ann": {}})
        take_lease(connection, project.id, "film 1", ERASED, now, now + DAY, places=1)
        add_webhook(connection, project.id, "https://example.org", ["verdict"], "whsec_x")
        for subject, text, detail in [
            (ERASED, "", {}),
            ("film 1", f"Finished, last by {ERASED}.", {}),
            ("film 1", "", {"by": [{"who": ERASED}]}),
            ("film 1", f"x{ERASED}x", {}),
        ]:
            add_alert(connection, project.id, "verdict", subject, text, detail, created=now)
        log(connection, project.id, ERASED, "token created", {"for": ERASED, "n": 1}, now)
        added = add_connection(connection, project.id, "label-studio", {}, "secret")
        changed = connection_table.update().where(connection_table.c.id == added.id)
        connection.execute(changed.values(cursor={"people": {ERASED: 3}}))
        folder = snapshots_folder(tmp_path) / str(project.id) / "1"
        folder.mkdir(parents=True)
        summary = {"spammers": [ERASED], "n": 2}
        saved = Snapshot(project.id, 1, now, 3, 3, "gpm", "refit", summary, f"{project.id}/1")
        assert add_snapshot(connection, saved, project)

    n_events = erase_annotator(database, tmp_path, project, ERASED, "admin", now)
    assert n_events == 2
    assert not folder.exists()
    left = every_text(database).replace(f"x{ERASED}x", "")
    assert ERASED not in left
    with database.connect() as connection:
        assert latest_snapshot(connection, project.id) is None
        assert snapshot_history(connection, project.id)[0].summary == {
            "spammers": ["(erased)"],
            "n": 2,
        }
        assert get_project(connection, project.name).erasures == 1
        entry, before = latest(connection, AuditEntry, limit=2, project=project.id)
        assert (entry.action, entry.detail) == ("annotator erased", {"events": 2})
        assert before.detail == {"for": "(erased)", "n": 1}
        assert len(latest(connection, Alert, limit=9, project=project.id)) == 1
        assert len(due_deliveries(connection, now, limit_per_webhook=9)) == 1
        stored = events_since(connection, project.id, 0, 100)
        assert len(stored) == len(EVENTS)
        assert not any(each.annotation == "9" for each in stored)
        assert len(events_since(connection, other.id, 0, 100)) == 1
    if database.is_sqlite:
        erased = ERASED.encode()
        files = Path(database.name).parent.glob("annotruth.db*")
        found = [path.name for path in files if path.read_bytes().count(erased) > 1]
        assert not found  # but for the alert whose text has a longer word

    with pytest.raises(at.InputError, match="there is no annotator 'zoë-7f3a' in project 'films'"):
        erase_annotator(database, tmp_path, project, ERASED, "admin", now)


def test_backups_are_of_one_moment_while_others_write(sqlite_database, now, tmp_path):
    with sqlite_database.begin() as connection:
        project = create_project(connection, "films", "labels", {}, now)
    append(
        sqlite_database, project, [LabelEvent(f"{n}", "ann", "x" * 500) for n in range(2000)], now
    )
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            pair = [LabelEvent(f"{number}{half}", "bob", "x") for half in "ab"]
            append(sqlite_database, project, pair, now)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        paths = [tmp_path / f"backup{n}.db" for n in range(5)]
        for path in paths:
            backup(sqlite_database, path)
    finally:
        stop.set()
        writer.join()
    for path in paths:
        assert path.stat().st_mode & 0o777 == 0o600
        with closing(sqlite3.connect(path)) as copy:
            assert copy.execute("pragma integrity_check").fetchall() == [("ok",)]
    restored = Database.open(f"sqlite:///{paths[-1]}")
    try:
        assert restored.schema_state() == "current"
        with restored.connect() as connection:
            n_labels = len(current_labels(connection, project.id))
        assert n_labels >= 2000
        assert n_labels % 2 == 0  # whole transactions
    finally:
        restored.dispose()
    assert not list(tmp_path.glob(".annotruth*"))


def test_backups_that_cannot_be_written_are_refused(database, tmp_path):
    if not database.is_sqlite:
        with pytest.raises(at.InputError, match="pg_dump"):
            backup(database, tmp_path / "copy.db")
        return
    with pytest.raises(at.OutputError, match=r"cannot write /dev/null/copy\.db"):
        backup(database, "/dev/null/copy.db")
