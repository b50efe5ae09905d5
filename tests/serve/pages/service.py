"""A running web server with a project, for tests in a browser."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi import FastAPI
from tests.serve.conftest import publish_fit
from tests.serve.web_server import start_in_thread

import annotruth as at
from annotruth.serve.administration import create_token
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import append_events
from annotruth.serve.store.projects import add_alert, create_project, set_content
from annotruth.serve.store.rows import add_all, put
from annotruth.serve.store.tables import (
    AnnotatorHistory,
    HourlyCount,
    LabelEvent,
    Project,
)
from annotruth.serve.web.app import make_app


@dataclass
class Service:
    """A web server that runs in a thread, and its database."""

    config: ServeConfig
    database: Database
    app: FastAPI
    port: int
    stop_server: Callable[[], None]

    @classmethod
    def start(cls, folder: Path) -> "Service":
        config = ServeConfig(database=f"sqlite:///{folder}/a.db", data_dir=folder, port=0)
        database = Database.open(config.database)
        database.upgrade()
        app = make_app(config)
        return cls(config, database, app, *start_in_thread(app, config))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.stop_server()
        self.database.dispose()

    def n_listeners(self) -> int:
        """Return how many pages follow a project."""
        return self.app.state.context.live.n_listeners

    def token(self, scope="admin", project=None) -> str:
        with self.database.begin() as connection:
            of = None if project is None else project.id
            return create_token(connection, scope, scope, datetime.now(UTC), project_id=of)[1]

    def add_project(self, name, kind="labels", settings=None) -> Project:
        with self.database.begin() as connection:
            return create_project(connection, name, kind, settings or {}, datetime.now(UTC))

    def add_labels(self, project, rows) -> None:
        now = datetime.now(UTC)
        begun = now - timedelta(seconds=4)
        if project.kind == "labels":
            events = [LabelEvent(i, a, x, started=begun, submitted=now) for i, a, x in rows]
        else:
            events = [LabelEvent(i, a, x, other_item=o) for i, o, a, x in rows]
        with self.database.begin() as connection:
            append_events(connection, project.id, "test", events, now)

    def publish(self, project, fit, **summary) -> None:
        """Save a fit as the next snapshot, as the worker does."""
        now, is_ranking = datetime.now(UTC), project.kind == "comparisons"
        figures = {
            "n_items": fit.data.n_items,
            "n_annotators": fit.data.n_annotators,
            "n_spammers": fit.n_spammers,
            "agreement": None if is_ranking else 0.5,
            "n_finished": None if is_ranking else 3,
            "n_needed": None if is_ranking else 20,
            **summary,
        }
        with self.database.begin() as connection:
            row = publish_fit(connection, project, self.config.data_dir, fit, now, summary=figures)
            verdicts = fit.verdict_table().to_pylist()
            history = [
                AnnotatorHistory(
                    *(project.id, str(each["annotator"]), row.version, now, 5, 0.8, 0.6, 0.9),
                    *("serious", each["verdict"]),
                )
                for each in verdicts
            ]
            add_all(connection, history)
            hour = now.replace(minute=0, second=0, microsecond=0)
            put(connection, [HourlyCount(project.id, hour, row.n_labels)])

    def add_alert(self, project, text, subject="") -> None:
        with self.database.begin() as connection:
            now = datetime.now(UTC)
            add_alert(connection, project.id, "verdict", subject, text, {}, created=now)

    def add_content(self, project, contents) -> None:
        with self.database.begin() as connection:
            set_content(connection, project.id, contents, datetime.now(UTC))


def simulated_rows(n_items=60, n_annotators=10):
    """Return labels of a simulated crowd, as rows of text."""
    made = at.simulate.crowd(
        n_items=n_items, n_annotators=n_annotators, labels_per_item=5, spammer_share=0.2, seed=4
    )
    return [tuple(map(str, row.values())) for row in made.labels.to_arrow().to_pylist()]
