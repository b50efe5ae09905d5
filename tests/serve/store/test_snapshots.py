"""Snapshots, their folders, and the histories that they leave."""

from datetime import timedelta

from annotruth.serve.store.projects import (
    add_snapshot,
    annotator_history,
    folder_name,
    get_project,
    get_worker_state,
    hourly_counts,
    latest_annotator_history,
    latest_snapshot,
    next_version,
    remove_old_snapshots,
    remove_orphans,
    set_hourly_counts,
    snapshot_history,
    snapshots_folder,
)
from annotruth.serve.store.rows import add_all, put
from annotruth.serve.store.tables import AnnotatorHistory, Snapshot, WorkerState

HOUR = timedelta(hours=1)


def save(database, data_dir, project, now) -> Snapshot:
    """Add a snapshot with a folder, as the worker does."""
    with database.begin() as connection:
        version = next_version(connection, project.id)
        folder = folder_name(project.id, version)
        (snapshots_folder(data_dir) / folder).mkdir(parents=True)
        added = Snapshot(
            project.id, version, now, 10 * version, 5, "gpm", "refit", {"n": version}, folder
        )
        assert add_snapshot(connection, added, project)
        remove_old_snapshots(connection, data_dir, project.id)
    return added


def test_the_folders_of_the_last_two_snapshots_are_kept(database, project, now, tmp_path):
    with database.connect() as connection:
        assert latest_snapshot(connection, project.id) is None
    saved = [save(database, tmp_path, project, now) for _ in range(4)]
    orphan = snapshots_folder(tmp_path) / str(project.id) / "9"
    orphan.mkdir()
    with database.begin() as connection:
        remove_orphans(connection, tmp_path)
        assert latest_snapshot(connection, project.id) == saved[-1]
        found = snapshot_history(connection, project.id)
        assert found == [each._replace(folder="") for each in saved[:2]] + saved[2:]
        assert snapshot_history(connection, project.id, since=1, limit=2) == saved[2:]
    left = sorted(path.name for path in (snapshots_folder(tmp_path) / str(project.id)).iterdir())
    assert left == ["3", "4"]


def test_a_snapshot_from_before_an_erasure_is_not_added(database, project, now):
    added = Snapshot(project.id, 1, now, 1, 1, "gpm", "refit", {}, "1/1")
    with database.begin() as connection:
        assert not add_snapshot(connection, added, project._replace(erasures=-1))
        assert latest_snapshot(connection, project.id) is None
        assert add_snapshot(connection, added, get_project(connection, project.name))


def test_histories_are_kept_by_annotator_and_hour(database, project, now):
    row = AnnotatorHistory(project.id, "ann", 1, now, 5, 0.9, 0.8, None, "serious", "keep")
    rows = [row, row._replace(annotator="bob"), row._replace(version=3, verdict="drop")]
    with database.begin() as connection:
        add_all(connection, [])
        add_all(connection, rows)
        assert annotator_history(connection, project.id, "ann") == [rows[0], rows[2]]
        assert annotator_history(connection, project.id) == rows
        assert latest_annotator_history(connection, project.id) == {"ann": rows[2], "bob": rows[1]}
        set_hourly_counts(connection, project.id, {now: 3, now + HOUR: 1})
        set_hourly_counts(connection, project.id, {now + HOUR: 2})
        assert hourly_counts(connection, project.id) == {now: 3, now + HOUR: 2}
        assert hourly_counts(connection, project.id, now + HOUR) == {now + HOUR: 2}
        assert hourly_counts(connection, project.id, limit=1) == {now + HOUR: 2}
        assert get_worker_state(connection, project.id) == WorkerState(project.id)
        for state in (
            WorkerState(project.id, 7, now),
            WorkerState(project.id, 9, now, "too few labels"),
        ):
            put(connection, [state])
            assert get_worker_state(connection, project.id) == state
