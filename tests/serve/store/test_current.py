"""Current labels against a plain model: the same events twice, out of order, deleted, edited."""

from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from annotruth.serve.store.current import (
    EVENT_STATES,
    after_events,
    read_events,
)
from annotruth.serve.store.events import (
    append_events,
    current_labels,
)
from annotruth.serve.store.projects import create_project
from annotruth.serve.store.tables import LabelEvent
from annotruth.serve.store.tables import event as stored

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ITEMS, ANNOTATORS, SOURCES = ("a", "b"), ("ann", "bob"), ("api", "ls:1")


@st.composite
def event(draw, kind):
    """An event with few ids and times, so that many of them concern the same annotation."""
    deleted = draw(st.booleans())
    annotation = draw(st.sampled_from(["x", "y"] if deleted else ["x", "y", None]))
    return (
        draw(st.sampled_from(SOURCES)),
        LabelEvent(
            item=draw(st.sampled_from(ITEMS)),
            annotator=draw(st.sampled_from(ANNOTATORS)),
            label=draw(st.sampled_from("12")),
            event_id=draw(st.sampled_from([str(n) for n in range(12)])),
            annotation=annotation,
            other_item="c" if kind == "comparisons" else "",
            submitted=draw(st.sampled_from([None, *(NOW + n * SECOND for n in range(-3, 2))])),
            deleted=deleted,
        ),
    )


class PlainModel:
    """What the store should hold, in lists and dictionaries."""

    def __init__(self, kind):
        self.kind = kind
        self.events = []  # in order
        self.seen = set()

    def append(self, source, event, time):
        """Keep an event that is not there yet; return whether it was new."""
        if (source, event.event_id) in self.seen:
            return False
        self.seen.add((source, event.event_id))
        own = event.annotation is None and self.kind == "comparisons"
        slot = (event.item, event.annotator)
        name = event.event_id if own else event.annotation or slot
        self.events.append((source, name, min(event.submitted or time, time), event))
        return True

    def current(self):
        """Return the current labels as (item, other item, annotator, label)."""
        annotations = {}
        for place, (source, name, submitted, event) in enumerate(self.events):
            before = annotations.get((source, name))
            if before is None or submitted >= before[0]:
                annotations[source, name] = (submitted, place, event)
        living = sorted(each for each in annotations.values() if not each[2].deleted)
        slots = {}
        for _, place, event in living:
            key = place if self.kind == "comparisons" else (event.item, event.annotator)
            slots[key] = (event.item, event.other_item, event.annotator, event.label)
        return sorted(slots.values())


def fields(rows):
    return sorted((each.item, each.other_item, each.annotator, each.label) for each in rows)


@pytest.mark.parametrize("kind", ["labels", "comparisons"])
@given(data=st.data())
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_current_labels_are_those_of_a_plain_model(database, kind, data):
    batches = data.draw(st.lists(st.lists(event(kind), max_size=6), max_size=5))
    model = PlainModel(kind)
    states = kept = EVENT_STATES.empty_table()  # up to date as in the worker
    with database.engine.execution_options(writes=True).connect() as connection:
        project = create_project(connection, "property", kind, {}, NOW)
        seq = 0
        for number, batch in enumerate(batches):
            time = NOW + number * SECOND
            for source in SOURCES:
                events = [each for who, each in batch if who == source]
                appended = append_events(connection, project.id, source, events, time)
                new = [model.append(source, each, time) for each in events]
                assert (appended.n_new, appended.n_repeated) == (sum(new), len(new) - sum(new))
            later = (stored.c.project == project.id) & (stored.c.seq > seq)
            new = read_events(connection, EVENT_STATES.names, later)
            states, kept = after_events(states, kept, new, kind)
            seq = appended.last_seq

        expected = model.current()
        current = current_labels(connection, project.id)
        assert fields(current) == expected
        assert kept["seq"].to_pylist() == [each.seq for each in current]
        for item in ITEMS:
            found = current_labels(connection, project.id, items=[item])
            assert fields(found) == [each for each in expected if each[0] == item]
            found = current_labels(connection, project.id, items=[item], annotator="ann")
            assert fields(found) == [each for each in expected if each[::2] == (item, "ann")]
        connection.rollback()
