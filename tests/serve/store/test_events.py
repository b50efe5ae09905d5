"""Events: idempotent, in order, and the current labels that follow from them."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from sqlalchemy.event import listen

import annotruth as at
from annotruth.serve.store.events import (
    append_batches,
    append_events,
    current_labels,
    events_since,
    last_seq,
)
from annotruth.serve.store.projects import create_project
from annotruth.serve.store.tables import AppendedEvents, Batch, LabelEvent

EVENTS = [
    LabelEvent("film 1", "ann", "good", event_id="1"),
    LabelEvent("film 1", "bob", "bad", event_id="2"),
    LabelEvent("film 2", "ann", "good", event_id="3"),
]


def test_events_are_stored_once(database, project, now):
    with database.begin() as connection:
        first = append_events(connection, project.id, "api", EVENTS, now)
        again = append_events(connection, project.id, "api", EVENTS, now)
        other = append_events(connection, project.id, "import", EVENTS[:1] * 2, now)
    assert first == AppendedEvents(3, 0, last_seq=3)
    assert again[:2] == (0, 3)
    assert other[:2] == (1, 1)
    with database.connect() as connection:
        assert last_seq(connection, project.id) == other.last_seq
        found = events_since(connection, project.id, 0, 10)
        assert events_since(connection, project.id, found[0].seq, 2) == found[1:3]
    assert [each.event_id for each in found] == ["1", "2", "3", "1"]
    assert found[0].received == found[0].submitted == now
    assert found[0].submitted.tzinfo == UTC


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (LabelEvent("", "ann", "x"), "the event has no item"),
        (LabelEvent("a", "", "x"), "the event has no annotator"),
        (LabelEvent("a", "ann"), "the event has no label"),
        (LabelEvent("a", deleted=True), "the event has no annotator"),
        (LabelEvent("a" * 513, "ann", "x"), "longer than 512 characters"),
        (LabelEvent("\U0001f600" * 300, "ann", "x"), "1,024 bytes"),
        (LabelEvent("a\0", "ann", "x"), r"the item 'a\\x00' contains a zero character"),
        (LabelEvent("a", "\ud800", "x"), "is not valid Unicode"),
        (LabelEvent("a", "ann", "x", event_id=""), "the event id is empty"),
        (LabelEvent(" \t", "ann", "x"), "the item ' .*' counts as missing"),
        (LabelEvent("a", " NaN", "x"), "the annotator ' NaN' counts as missing"),
        (LabelEvent("a", "ann", "nan"), "the label 'nan' counts as missing"),
        (LabelEvent("a", "ann", "-inf"), "the label '-inf' is infinite"),
        (LabelEvent("a", "ann", "1e999"), "the label '1e999' is infinite"),
    ],
)
def test_bad_events_are_refused_and_nothing_is_stored(database, project, now, event, message):
    with pytest.raises(at.InputError, match=message) as caught, database.begin() as connection:
        append_events(connection, project.id, "api", [EVENTS[0], event], now)
    assert "\n" not in str(caught.value)
    with database.connect() as connection:
        assert last_seq(connection, project.id) == 0


def test_whatever_is_stored_can_be_fitted(database, project, now):
    ids = ["inf", "1e999", "NA", "None", " x", "\u200b", "=1+1", "<b>", "label", "-"]
    events = [LabelEvent(item, ids[n - 1], "12"[n % 2]) for n, item in enumerate(ids)]
    events += [LabelEvent(item, "ann", label) for item, label in zip(ids, ids[2:], strict=False)]
    with database.begin() as connection:
        append_events(connection, project.id, "api", events, now)
        current = current_labels(connection, project.id)
    rows = [
        {name: getattr(each, name) for name in ("item", "annotator", "label")} for each in current
    ]
    assert at.Labels.of(pa.Table.from_pylist(rows)).n_labels == len(events)


def test_a_missing_id_of_an_earlier_version_can_be_deleted(database, project, now):
    with database.begin() as connection:
        event = LabelEvent(" ", "ann", deleted=True)
        assert append_events(connection, project.id, "api", [event], now).n_new == 1


def test_the_longest_ids_fit_into_the_indexes(database, project, now):
    long = "".join(chr(0x4E00 + (n * 7919) % 20000) for n in range(341))
    given = LabelEvent(long, long[::-1], long, event_id=long, annotation=long)
    with database.begin() as connection:
        append_events(connection, project.id, "s" * 200, [given], now)
        (found,) = current_labels(connection, project.id, items=[long])
    assert (found.slot, found.label) == (given[:2], long)


def test_submitted_is_never_after_received(database, project, now):
    given = LabelEvent("a", "ann", "x", submitted=now + timedelta(days=1))
    with database.begin() as connection:
        append_events(connection, project.id, "api", [given], now)
        assert events_since(connection, project.id, 0, 1)[0].submitted == now


@pytest.mark.parametrize(
    ("started", "submitted", "stored"),
    [
        (-5, -2, (-5, -2)),
        (100, 105, (-5, 0)),  # the sender's clock is ahead
        (-5, None, (-5, 0)),
        (5, None, (None, 0)),
        (-2, -5, (None, -5)),
    ],
)
def test_no_time_is_in_the_future_and_no_start_after_the_end(
    database, project, now, started, submitted, stored
):
    def moment(seconds):
        return None if seconds is None else now + timedelta(seconds=seconds)

    event = LabelEvent("a", "ann", "x", started=moment(started), submitted=moment(submitted))
    with database.begin() as connection:
        append_events(connection, project.id, "api", [event], now)
        (label,) = current_labels(connection, project.id)
    assert (label.started, label.submitted) == tuple(map(moment, stored))


def test_a_start_long_before_an_end_in_the_future_is_left_out(database, project, now):
    first, last = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 9999))
    event = LabelEvent("a", "ann", "x", started=first, submitted=last)
    with database.begin() as connection:
        append_events(connection, project.id, "api", [event], now)
        (found,) = events_since(connection, project.id, 0, 10)
    assert (found.started, found.submitted) == (None, now)


def test_batches_of_several_projects_take_as_many_statements_as_one(database, project, now):
    with database.begin() as connection:
        other = create_project(connection, "duels", "comparisons", {}, now)
        append_events(connection, project.id, "api", EVENTS[:1], now)
    vote = LabelEvent("a", "ann", "left", event_id="1", other_item="b")
    batches = [
        Batch(project.id, "api", EVENTS[:2]),
        Batch(other.id, "api", [vote, vote]),
        Batch(project.id, "import", EVENTS[:1]),
        Batch(project.id, "api", EVENTS[1:]),
    ]

    def append(some):
        statements = []
        with database.begin() as connection:
            listen(connection, "before_cursor_execute", lambda *given: statements.append(given[2]))
            return append_batches(connection, some, now), len(statements)

    of_all, n_of_all = append(batches)
    assert [each[:2] for each in of_all] == [(1, 1), (1, 1), (1, 0), (1, 1)]
    last = [last_of(database, each) for each in (project, other)]
    assert [each.last_seq for each in of_all] == [last[0], last[1], last[0], last[0]]
    of_one, n_of_one = append(batches[:1])
    assert of_one == [(0, 2, last[0])]
    assert n_of_all == n_of_one <= 5


def last_of(database, project):
    with database.connect() as connection:
        return last_seq(connection, project.id)
