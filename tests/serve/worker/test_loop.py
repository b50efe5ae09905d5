"""The loop goes on: errors of one project, a full disk, another worker, a database that goes away."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.serve.conftest import add_webhook
from tests.serve.worker.conftest import make_events
from tests.waiting import MAX_SECONDS, wait_until

import annotruth as at
from annotruth.errors import InputError
from annotruth.models.result import Fit
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import DatabaseUnavailableError
from annotruth.serve.store.events import append_events
from annotruth.serve.store.projects import (
    annotator_history,
    create_project,
    due_deliveries,
    get_worker_state,
    hourly_counts,
    latest_snapshot,
    set_gold,
)
from annotruth.serve.store.rows import latest, utc_now
from annotruth.serve.store.tables import Alert, LabelEvent
from annotruth.serve.worker import loop as loops
from annotruth.serve.worker import project as projects
from annotruth.serve.worker.loop import Loop, beat, only_worker, run

COMMAND = [sys.executable, "-m", "annotruth.serve.worker.loop"]


def state_of(database, project):
    with database.connect() as connection:
        return get_worker_state(connection, project.id), latest_snapshot(connection, project.id)


def test_a_snapshot_has_figures_histories_hours_and_alerts(database, project, post, loop, now):
    with database.begin() as connection:
        add_webhook(connection, project.id, "https://example.org", ["finished"], "whsec_c2VjcmV0")
    post(make_events(n_items=60, per_item=7, accuracy=0.9))
    loop.step()
    with database.connect() as connection:
        row = latest_snapshot(connection, project.id)
        histories = annotator_history(connection, project.id)
        hours = hourly_counts(connection, project.id)
        alerts = latest(connection, Alert, limit=10, project=project.id)
        deliveries = due_deliveries(connection, utc_now(), limit_per_webhook=10)
    assert row.summary["n_finished"] + row.summary["statuses"]["needs labels"] == 60
    assert 0.5 < row.summary["agreement"] < 1.0
    assert row.summary["n_needed"] > 0
    assert hours == {now: 420}
    assert {each.annotator for each in histories} == {f"ann {k}" for k in range(8)}
    assert [each.kind for each in alerts] == ["finished"]
    assert [each.alert for each in deliveries] == [alerts[0].id]
    post(make_events(n_items=1, per_item=2, start=60))
    loop.step()
    with database.connect() as connection:
        assert hourly_counts(connection, project.id) == {now: 422}
        assert len(annotator_history(connection, project.id)) < 12  # few changed noticeably
        assert len(latest(connection, Alert, limit=10, project=project.id)) <= 2


def test_known_truths_are_used_as_soon_as_they_are_there(database, project, post, loop):
    post(make_events())
    loop.step()
    with database.begin() as connection:
        set_gold(connection, project.id, {"item 1": "class 2", "no such item": "class 1"})
    again = Loop(database, loop._data_dir)
    assert again.step()
    row = state_of(database, project)[1]
    assert at.load(loop._data_dir / "snapshots" / row.folder).data.known.max() == 2


def test_an_error_in_one_project_is_kept_and_others_go_on(
    database, project, post, loop, now, monkeypatch
):
    with database.begin() as connection:
        other = create_project(connection, "other", "labels", {}, now)
        append_events(connection, other.id, "api", make_events(), now)
    post(make_events())
    fit_current, failing = projects.fit_current, [InputError("too few labels: add some")]

    def fit(current, *arguments):
        if failing and len(current) == 120 and not fitted:
            fitted.append(1)
            raise failing[0]
        return fit_current(current, *arguments)

    fitted = []
    monkeypatch.setattr(projects, "fit_current", fit)
    clock = [100.0]
    assert loop.step(lambda: clock[0])
    state, snapshot = state_of(database, project)
    assert (state.error, snapshot) == ("too few labels: add some", None)
    assert state_of(database, other)[1].version == 1
    assert not loop.step(lambda: clock[0])  # it waits before the next attempt
    clock[0] += 1.5
    assert loop.step(lambda: clock[0])
    state, snapshot = state_of(database, project)
    assert (state.error, snapshot.version) == ("", 1)


def test_an_unexpected_error_is_kept_too(database, project, post, loop, monkeypatch):
    post(make_events())
    monkeypatch.setattr(projects, "fit_current", lambda *_: 1 / 0)
    assert not loop.step()
    assert "ZeroDivisionError" in state_of(database, project)[0].error


def test_a_full_disk_leaves_the_old_snapshot(database, project, post, loop, tmp_path, monkeypatch):
    events = make_events()
    post(events[:100])
    clock = [0.0]
    loop.step(lambda: clock[0])
    post(events[100:])
    with monkeypatch.context() as patched:
        original = Fit.save

        def save(self, path):
            original(self, path)
            raise OSError(errno.ENOSPC, "No space left on device")

        patched.setattr(Fit, "save", save)
        assert not loop.step(lambda: clock[0])
    state, snapshot = state_of(database, project)
    assert "No space left" in state.error
    assert snapshot.version == 1
    assert [path.name for path in (tmp_path / "data/snapshots").glob("*/*")] == ["1"]
    clock[0] += 60.0
    assert loop.step(lambda: clock[0])
    state, snapshot = state_of(database, project)
    assert (state.error, snapshot.version, snapshot.n_labels) == ("", 2, 120)


def test_an_erasure_during_a_fit_discards_it(database, project, post, loop, monkeypatch):
    post(make_events())
    loop.step()
    post([LabelEvent("item 1", "somebody", "class 1")])
    fit_current = projects.fit_current
    from annotruth.serve.store.tables import event
    from annotruth.serve.store.tables import project as table

    def fit(*arguments):
        made = fit_current(*arguments)
        if not erased:
            erased.append(1)
            with database.begin() as connection:
                connection.execute(event.delete().where(event.c.annotator == "somebody"))
                connection.execute(table.update().values(erasures=1))
        return made

    erased = []
    monkeypatch.setattr(projects, "fit_current", fit)
    loop.step()
    assert state_of(database, project)[1].version == 1
    post(make_events(n_items=1, start=50))
    assert loop.step()
    row = state_of(database, project)[1]
    fit = at.load(loop._data_dir / "snapshots" / row.folder)
    assert "somebody" not in fit.data.annotators.to_pylist()


def test_comparisons(database, loop, now):
    made = at.simulate.comparers(n_items=6, n_annotators=5, comparisons_per_annotator=40, seed=3)
    rows = made.comparisons.to_arrow().to_pylist()
    events = [
        LabelEvent(str(r["left"]), str(r["annotator"]), r["winner"], other_item=str(r["right"]))
        for r in rows
    ]
    with database.begin() as connection:
        project = create_project(
            connection, "pairs", "comparisons", {"model": "bradley-terry"}, now
        )
        append_events(connection, project.id, "api", events[:180], now)
    for part in (events[180:190], events[190:]):
        assert loop.step()
        with database.begin() as connection:
            append_events(connection, project.id, "api", part, now)
    loop.step()
    row = state_of(database, project)[1]
    fit = at.load(loop._data_dir / "snapshots" / row.folder)
    assert row.n_labels == fit.data.n_comparisons == 200


def test_a_second_worker_waits(database, tmp_path):
    waits = []
    with only_worker(database, tmp_path, lambda: False) as first:
        assert first is not None
        with only_worker(database, tmp_path, lambda: waits.append(1) or len(waits) > 2) as second:
            assert second is None
    assert len(waits) == 3
    with only_worker(database, tmp_path, lambda: True) as third:
        assert third is not None


def test_the_worker_goes_on_when_the_database_is_back(
    database, project, post, tmp_path, monkeypatch
):
    post(make_events())
    stop, calls = threading.Event(), []
    original = Loop.step

    def step(self):
        calls.append(1)
        if len(calls) == 1:
            raise DatabaseUnavailableError("the server is away")
        is_published = original(self)
        stop.set()
        return is_published

    monkeypatch.setattr(Loop, "step", step)
    monkeypatch.setattr(loops, "retry_after", lambda n: 0.0)
    run(database, tmp_path / "data", stop)
    assert state_of(database, project)[1].version == 1


def test_other_work_is_done_meanwhile_and_may_fail(database, project, tmp_path):
    stop, calls = threading.Event(), []

    def fail():
        raise InputError("nobody answers")

    def call():
        calls.append(1)
        stop.set()

    run(database, tmp_path / "data", stop, {fail: 0.01, call: 0.01})
    assert calls
    beat(database)


def test_the_heartbeat_is_that_of_all_projects(database, project, post, loop):
    post(make_events())
    loop.step()
    before = state_of(database, project)[0]
    beat(database)
    after = state_of(database, project)[0]
    assert after.heartbeat > before.heartbeat
    assert after == before._replace(heartbeat=after.heartbeat)


def test_a_function_that_takes_long_keeps_no_other_waiting():
    is_slow, is_called = threading.Event(), threading.Event()

    def slow():
        is_slow.set()
        assert is_called.wait(MAX_SECONDS)

    def fast():
        if is_slow.is_set():
            is_called.set()

    with loops._called_again_and_again({slow: 0.01, fast: 0.01}):
        assert is_called.wait(MAX_SECONDS)


def test_an_error_that_repeats_is_logged_once_until_a_call_succeeds(caplog):
    calls = []

    def fails():
        calls.append(1)
        if len(calls) != 3:
            raise InputError("the host is away")

    with loops._called_again_and_again({fails: 0.001}):
        wait_until(lambda: len(calls) >= 6, "six calls")
    assert [each.message for each in caplog.records] == ["the host is away"] * 2


def test_missing_settings_are_said_in_one_line():
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ANNOTRUTH_SERVE_")}
    ended = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "ANNOTRUTH_SERVE_DATABASE is not set" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_the_process_publishes_and_ends_when_asked(database, project, post, tmp_path):
    post(make_events())
    config = ServeConfig(database=str(database.engine.url), data_dir=Path(tmp_path) / "data")
    process = subprocess.Popen(COMMAND, env={**os.environ, **config.to_environment()})
    try:

        def snapshot():
            with database.connect() as connection:
                return latest_snapshot(connection, project.id)

        wait_until(snapshot, "a snapshot; the first fit may compile", seconds=5 * MAX_SECONDS)
        assert snapshot().n_labels == 120
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
