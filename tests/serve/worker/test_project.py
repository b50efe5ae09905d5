"""When a project is fitted and published, and what is published."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests.serve.worker.conftest import make_events

import annotruth as at
from annotruth.serve.store.events import current_labels
from annotruth.serve.store.maintenance import erase_annotator
from annotruth.serve.store.projects import (
    change_settings,
    get_worker_state,
    hourly_counts,
    latest_snapshot,
    snapshot_history,
)
from annotruth.serve.store.rows import latest
from annotruth.serve.store.tables import Alert, LabelEvent
from annotruth.serve.worker.loop import Loop
from annotruth.serve.worker.project import retry_after
from annotruth.serve.worker.publish import expected_end

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def saved(database, project, tmp_path):
    """Return the latest snapshot and its fit."""

    def read():
        with database.connect() as connection:
            row = latest_snapshot(connection, project.id)
        return row, at.load(tmp_path / "data" / "snapshots" / row.folder)

    return read


def plain_fit(database, project, **options):
    with database.connect() as connection:
        current = current_labels(connection, project.id)
    return at.fit([(each.item, each.annotator, each.label) for each in current], **options)


def assert_same(one, other, tol=1e-6):
    assert one.data.same_as(other.data)
    assert np.abs(one.distribution.dense(3) - other.distribution.dense(3)).max() < tol
    assert np.abs(one.reliability - other.reliability).max() < tol


def test_first_fit_equals_a_plain_fit(database, project, post, loop, saved):
    last = post(make_events()).last_seq
    assert loop.step()
    row, fit = saved()
    assert (row.version, row.kind, row.last_seq, row.n_labels) == (1, "refit", last, 120)
    assert_same(fit, plain_fit(database, project))
    assert not loop.step()


def test_later_fits_equal_plain_fits(database, project, post, loop, saved):
    events = make_events(n_items=40)
    post(events[:140])
    loop.step()
    post(events[140:150])
    assert loop.step()
    row, fit = saved()
    assert (row.version, row.kind, row.n_labels) == (2, "refit", 150)
    assert_same(fit, plain_fit(database, project))


def test_auto_keeps_its_model_until_there_are_a_fifth_more_labels(
    database, project, post, loop, saved
):
    with database.begin() as connection:
        change_settings(connection, project.id, {"model": "auto"})
    events = make_events(n_items=40)
    kinds = []
    for part in (events[:120], events[120:130], events[130:]):
        post(part)
        assert loop.step()
        kinds.append(saved()[0].kind)
    assert kinds == ["refit", "update", "refit"]


def test_edits_and_deletions(database, project, post, loop, saved):
    events = make_events()
    post([each._replace(annotation=f"a{k}") for k, each in enumerate(events)], "platform")
    loop.step()
    wrong = events[0]._replace(label="class 0" if events[0].label != "class 0" else "class 1")
    post([wrong._replace(annotation="a0")], "platform")
    post([LabelEvent(annotation="a1", deleted=True)], "platform")
    assert loop.step()
    row, fit = saved()
    assert row.n_labels == 119
    labels = {tuple(each.values())[:2]: each["label"] for each in fit.label_table().to_pylist()}
    assert labels[wrong.item, wrong.annotator] == wrong.label
    assert (events[1].item, events[1].annotator) not in labels


def test_a_new_category_is_fitted_from_scratch(project, post, loop, saved):
    post(make_events())
    loop.step()
    post([LabelEvent("item 1", "ann new", "another class")])
    assert loop.step()
    row, fit = saved()
    assert row.kind == "refit"
    assert "another class" in fit.data.scale.names


def test_labels_outside_the_categories_are_left_out(database, project, post, loop, saved):
    with database.begin() as connection:
        change_settings(connection, project.id, {"categories": [f"class {k}" for k in range(3)]})
    post(make_events())
    post([LabelEvent("item 1", "ann new", "clss 1")])
    assert loop.step()
    row, _ = saved()
    assert row.n_labels == 120
    assert row.summary["notes"][0].startswith("1 label is left out: not among the categories")
    with database.connect() as connection:
        assert get_worker_state(connection, project.id).error == ""
    post([LabelEvent("item 2", "ann new", "class 1"), LabelEvent("item 3", "ann new", "clss 1")])
    assert loop.step()
    row, _ = saved()
    assert row.n_labels == 121
    assert row.summary["notes"][0].startswith("2 labels are left out")


def test_what_limits_the_results_is_in_the_summary(project, post, loop, saved):
    rng = np.random.default_rng(1)
    post(
        [
            LabelEvent(f"item {e}", f"p{s}", "abc"[rng.integers(3)])
            for e in range(60)
            for s in range(5)
        ]
    )
    assert loop.step()
    row, fit = saved()
    assert [note.kind for note in fit.notes] == ["chance"]
    assert row.summary["notes"] == [fit.notes[0].sentence]
    assert row.summary["n_spammers"] is None


def test_changed_settings_and_known_truths_are_fitted_from_scratch(
    database, project, post, loop, saved
):
    post(make_events())
    loop.step()
    with database.begin() as connection:
        change_settings(connection, project.id, {"model": "majority"})
    assert loop.step()
    row, _ = saved()
    assert (row.version, row.kind, row.model) == (2, "refit", "majority")
    with database.begin() as connection:
        change_settings(connection, project.id, {"cost_per_label": 0.5})
    assert not loop.step()  # the fit does not depend on it


def test_a_repeated_label_changes_nothing(database, project, post, loop):
    events = make_events()
    post(events)
    loop.step()
    last = post([events[0]]).last_seq
    assert not loop.step()
    with database.connect() as connection:
        assert get_worker_state(connection, project.id).last_seq == last


def test_another_worker_goes_on_from_the_last_snapshot(
    database, project, post, loop, saved, tmp_path
):
    events = make_events()
    post(events[:100])
    loop.step()
    post(events[100:110])
    again = Loop(database, tmp_path / "data")
    assert again.step()
    row, fit = saved()
    assert (row.version, row.n_labels) == (2, 110)
    assert not again.step()
    assert_same(fit, plain_fit(database, project))


def test_a_lost_snapshot_folder_is_fitted_again(database, project, post, loop, saved, tmp_path):
    post(make_events())
    loop.step()
    folder = tmp_path / "data" / "snapshots" / saved()[0].folder
    (folder / "fit.json").write_text("{}")
    again = Loop(database, tmp_path / "data")
    assert again.step()
    assert saved()[0].version == 2
    assert saved()[0].kind == "refit"


def test_after_an_erasure_hours_and_alerts_are_not_repeated(
    database, project, post, loop, tmp_path, now
):
    post(make_events())
    post([LabelEvent(f"item {k}", "spammer", f"class {k % 3}") for k in range(30)])
    loop.step()

    def counts():
        with database.connect() as connection:
            return (
                hourly_counts(connection, project.id),
                len(latest(connection, Alert, limit=1000, project=project.id)),
            )

    before = counts()
    assert before[1] > 0
    erase_annotator(database, tmp_path / "data", project, "ann 0", "test", now)
    assert loop.step()
    assert counts() == before
    erase_annotator(database, tmp_path / "data", project, "ann 1", "test", now)
    assert Loop(database, tmp_path / "data").step()  # another worker
    assert counts() == before


def test_labels_that_were_all_deleted_are_said_to_be(database, project, post, loop, saved):
    post([LabelEvent("item 1", "ann", "class 1"), LabelEvent("item 2", "ann", "class 2")])
    loop.step()
    post([LabelEvent(f"item {k}", "ann", deleted=True) for k in (1, 2)])
    clock = [0.0]
    assert not loop.step(lambda: clock[0])
    with database.connect() as connection:
        error = get_worker_state(connection, project.id).error
    assert error == "all labels were deleted: the results are those before"
    post([LabelEvent("item 1", "ann", "class 1")])
    clock[0] += 60.0
    assert loop.step(lambda: clock[0])
    assert saved()[0].n_labels == 1
    with database.connect() as connection:
        assert get_worker_state(connection, project.id).error == ""


def test_rows_stay_and_folders_of_the_last_two_versions(database, project, post, loop, tmp_path):
    events = make_events()
    for part in (events[:100], events[100:105], events[105:110], events[110:]):
        post(part)
        assert loop.step()
    with database.connect() as connection:
        rows = snapshot_history(connection, project.id)
    assert [row.version for row in rows] == [1, 2, 3, 4]
    assert [row.summary["n_labels"] for row in rows] == [100, 105, 110, 120]
    folders = sorted(path.name for path in (tmp_path / "data/snapshots").glob("*/*"))
    assert folders == ["3", "4"]


def test_waits_double_up_to_a_limit():
    waits = [retry_after(n) for n in range(1, 12)]
    assert waits[:3] == [1.0, 2.0, 4.0]
    assert max(waits) == 30.0


def test_the_rate_is_that_of_the_last_day():
    hour = NOW.replace(minute=0)
    per_hour = {hour - k * HOUR: 10 for k in range(24)} | {hour - 48 * HOUR: 10_000}
    expected = expected_end(per_hour, NOW, n_needed=102)
    assert expected.labels_per_hour == pytest.approx(240 / 23.5)
    assert expected.end == NOW + timedelta(hours=102 / expected.labels_per_hour)


@pytest.mark.parametrize(("counts", "n_needed"), [({}, 5), ({NOW: 5}, 0), ({NOW: 5}, None)])
def test_no_end_is_expected_without_labels_or_without_need(counts, n_needed):
    assert expected_end(counts, NOW, n_needed=n_needed).end is None


def test_an_end_beyond_the_calendar_is_none():
    assert expected_end({NOW: 1}, NOW, n_needed=10**12).end is None
