"""One project: what the worker publishes equals a fit of the current labels."""

import numpy as np
import pytest

import annotruth as at
from annotruth.serve.store.events import current_table
from annotruth.serve.store.projects import change_settings
from annotruth.serve.store.records import LabelEvent
from annotruth.serve.store.snapshots import get_worker_state, latest_snapshot, snapshot_history
from annotruth.serve.worker.loop import Loop
from tests.serve.worker.conftest import make_events


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
        table = current_table(connection, project.id)
    return at.fit(table.select(["item", "annotator", "label"]), **options)


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
