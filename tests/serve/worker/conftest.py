"""Simulated labels as events, and the worker on a database."""

import numpy as np
import pytest

pytest.importorskip("sqlalchemy")

from annotruth.serve.store.events import append_events
from annotruth.serve.store.tables import LabelEvent
from annotruth.serve.worker.loop import Loop


def make_events(n_items=30, n_annotators=8, per_item=4, *, seed=0, accuracy=0.85, start=0):
    """Labels of three classes by annotators of one accuracy, in random order."""
    rng = np.random.default_rng(seed)
    events = []
    for item in range(start, start + n_items):
        truth = rng.integers(3)
        for annotator in rng.choice(n_annotators, per_item, replace=False):
            label = truth if rng.random() < accuracy else rng.integers(3)
            events.append(LabelEvent(f"item {item}", f"ann {annotator}", f"class {label}"))
    return [events[k] for k in rng.permutation(len(events))]


@pytest.fixture
def database(sqlite_database):
    """A file of SQLite; what depends on the kind of database is tested with both elsewhere."""
    return sqlite_database


@pytest.fixture
def post(database, project, now):
    """Append events to the project."""

    def append(events, source="api"):
        with database.begin() as connection:
            return append_events(connection, project.id, source, events, now)

    return append


@pytest.fixture
def loop(database, tmp_path):
    """The worker's loop, to be stepped by hand."""
    return Loop(database, tmp_path / "data")
