"""Snapshots to show on pages, and what the store would say about them."""

from datetime import timedelta

import pytest

import annotruth as at
from annotruth.ranking import next_comparisons
from annotruth.serve.pages.frame import Frame
from annotruth.serve.pages.tables import LabelSnapshotTables, RankTables
from annotruth.serve.pages.visit import Visit
from annotruth.serve.store.rows import add, add_all
from annotruth.serve.store.tables import Project, Snapshot
from annotruth.serve.web.results import LoadedSnapshot

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "javascript:alert(3)",
    "' onmouseover='alert(4)",
    "../../etc/passwd?a=1&b=2#c",
    "\u202ereversed \x01 & tab\t",
)


@pytest.fixture(scope="session")
def hostile_texts():
    """Texts that would run, or break a page, if they were not escaped."""
    return HOSTILE


@pytest.fixture(scope="session")
def tables():
    """The tables of a fit of 120 items by 20 annotators."""
    made = at.simulate.crowd(
        n_items=120, n_annotators=20, labels_per_item=6, spammer_share=0.2, seed=1
    )
    fit = at.fit(made.labels, "gpm")
    return LabelSnapshotTables(LoadedSnapshot(None, fit, at.next_labels(fit)))


@pytest.fixture(scope="session")
def rank_tables():
    """The tables of a ranking of 12 items."""
    made = at.simulate.comparers(n_items=12, n_annotators=8, comparisons_per_annotator=20, seed=3)
    fit = at.rank(made.comparisons)
    return RankTables(LoadedSnapshot(None, fit, next_comparisons(fit)))


@pytest.fixture(scope="session")
def frame():
    """The frame of an administrator's pages."""
    return Frame(csrf="a token", project="films", scope="admin", n_alerts=2)


@pytest.fixture
def visit(sqlite_database, frame, now):
    """Return a visit to a project whose database has some rows; the query follows by name."""
    films = {"name": "films", "kind": "labels", "settings": {"cost_per_label": 0.5}, "created": now}
    with sqlite_database.begin() as connection:
        project = add(connection, Project, **films)

    def visit(tables=None, *rows, frame=frame, now=now, **asked):
        with sqlite_database.begin() as connection:
            for row in rows:
                add_all(connection, [row])
        reader.rollback()  # what it reads next is of now
        return Visit(
            connection=reader,
            frame=frame,
            project=project,
            now=now,
            asked=asked,
            tables=tables,
        )

    with sqlite_database.connect() as reader:
        yield visit


@pytest.fixture(scope="session")
def snapshots(now):
    """The history of a project, one snapshot per ten minutes."""
    return [
        Snapshot(
            *(1, version, now + timedelta(minutes=10 * version), version, 100 * version, "gpm"),
            "update",
            {
                "n_items": 40,
                "n_annotators": 9,
                "n_finished": version,
                "agreement": 0.5 + version / 100,
                "n_spammers": 2,
                "cost": 12.5,
                "n_needed": 77,
                "labels_per_hour": 61.5,
                "notes": ["one <b>note</b>"],
                "expected_end": (now + timedelta(days=400)).isoformat(),
            },
            "",
        )
        for version in range(1, 13)
    ]
