"""The real Label Studio: its webhooks, polling of what they lose, and predictions in its Data Manager.

Runs where ANNOTRUTH_LABEL_STUDIO names its executable; `make label-studio` installs it.
"""

import json
import os
import socket
import subprocess
import time

import httpx2
import pytest
from tests.serve.conftest import add_connection
from tests.serve.web_server import start_in_thread
from tests.waiting import wait_until

import annotruth as at
from annotruth.serve.config import ServeConfig
from annotruth.serve.hooks.message import new_secret
from annotruth.serve.hooks.polling import POLL_EVERY, is_poll_due, poll_due
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import current_labels
from annotruth.serve.store.projects import (
    add_snapshot,
    all_gold,
    create_project,
    folder_name,
    keep_contact,
    snapshots_folder,
)
from annotruth.serve.store.rows import find_one, utc_now
from annotruth.serve.store.tables import PlatformConnection, Snapshot
from annotruth.serve.web.app import make_app

EXECUTABLE = os.environ.get("ANNOTRUTH_LABEL_STUDIO", "")
LEGACY_TOKEN = "0123456789abcdef0123456789abcdef01234567"
SECONDS_TO_START = 400
INTERFACE = """
<View>
  <Text name="text" value="$text"/>
  <Choices name="sentiment" toName="text" choice="single">
    <Choice value="Positive"/><Choice value="Negative"/>
  </Choices>
</View>
"""

pytestmark = [
    pytest.mark.skipif(not EXECUTABLE, reason="ANNOTRUTH_LABEL_STUDIO names no executable"),
    # Threads of the server end after the test.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@pytest.fixture(scope="module")
def label_studio(tmp_path_factory):
    """A client of a Label Studio that was just installed, on SQLite."""
    folder, port = tmp_path_factory.mktemp("label-studio"), free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "COLLECT_ANALYTICS": "0",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "LATEST_VERSION_CHECK": "false",
        "SSRF_PROTECTION_ENABLED": "false",  # webhooks to this machine
    }
    command = [EXECUTABLE, "start", "--no-browser", "--data-dir", str(folder)]
    command += ["--port", str(port), "--internal-host", "127.0.0.1", "--enable-legacy-api-token"]
    command += ["--username", "ann@example.org", "--password", "annotruth-test"]
    command += ["--user-token", LEGACY_TOKEN]
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)

    def is_up():
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        try:
            return httpx2.get(f"{url}/health", timeout=5).status_code == 200
        except httpx2.TransportError:
            return False

    try:
        wait_until(is_up, "the start of Label Studio", seconds=SECONDS_TO_START)
        headers = {"Authorization": f"Token {LEGACY_TOKEN}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=60) as client:
            yield client
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def server(tmp_path):
    """The address of our web server, and its context."""
    config = ServeConfig(database=f"sqlite:///{tmp_path}/labels.db", data_dir=tmp_path, port=0)
    database = Database.open(config.database)
    database.upgrade()
    database.dispose()
    app = make_app(config)
    started = start_in_thread(app, config)
    yield f"http://127.0.0.1:{started.port}", app.state.context
    started.stop()


def sent(response, status=(200, 201)):
    assert response.status_code in status, response.text[:500]
    return response.json()


def choice(label):
    value = {"choices": [label]}
    return [{"from_name": "sentiment", "to_name": "text", "type": "choices", "value": value}]


class Team:
    """A project of Label Studio whose webhook goes to a connection of ours."""

    def __init__(self, client, context, hooks_url, settings):
        self.client, self.context = client, context
        created = client.post(
            "/api/projects/", json={"title": "Sentiment", "label_config": INTERFACE}
        )
        self.number = sent(created)["id"]
        settings = {"url": str(client.base_url), "project": self.number, **settings}
        with context.database.begin() as connection:
            self.project = create_project(connection, "films", "labels", {}, utc_now())
            self.linked = add_connection(
                connection, self.project.id, "label-studio", settings, new_secret()
            )
        webhook = {
            "url": f"{hooks_url}/hooks/{self.linked.id}",
            "project": self.number,
            "headers": {"X-Annotruth-Secret": self.linked.secret},
            "send_payload": True,
            "send_for_all_actions": True,
        }
        self.webhook = sent(client.post("/api/webhooks/", json=webhook))["id"]

    def add_tasks(self, *tasks):
        path = f"/api/projects/{self.number}/import?return_task_ids=true"
        return sent(self.client.post(path, json=list(tasks)))["task_ids"]

    def annotate(self, task, label, **more):
        content = {"result": choice(label), "lead_time": 2.5, **more}
        return sent(self.client.post(f"/api/tasks/{task}/annotations/", json=content))["id"]

    def edit(self, annotation, **changes):
        return sent(self.client.patch(f"/api/annotations/{annotation}/", json=changes))

    def delete(self, path):
        assert self.client.delete(path).status_code == 204

    def switch_webhook(self, on):
        sent(self.client.patch(f"/api/webhooks/{self.webhook}/", json={"is_active": on}))

    def labels(self):
        with self.context.database.connect() as connection:
            found = current_labels(connection, self.project.id)
        return sorted((each.item, each.label) for each in found)

    def known_truths(self):
        with self.context.database.connect() as connection:
            return all_gold(connection, self.project.id)

    def expect(self, *labels):
        wanted = sorted((str(item), label) for item, label in labels)
        wait_until(lambda: self.labels() == wanted, f"the labels {wanted}")

    def poll(self, data_dir, *, is_due=True):
        """Poll, as if the last time was long ago, or only if a message has asked for it."""
        now = utc_now()
        if is_due:
            before = (now - POLL_EVERY).isoformat()
            cursor = {"polled": before, "predict_after": before}
            with self.context.database.begin() as connection:
                keep_contact(connection, self.linked.id, now, cursor=cursor)
        poll_due(self.context.database, data_dir, now, allow_private=True)
        with self.context.database.connect() as connection:
            linked = find_one(connection, PlatformConnection, id=self.linked.id)
        assert linked.last_error == ""

    def has_poll_request(self):
        with self.context.database.connect() as connection:
            linked = find_one(connection, PlatformConnection, id=self.linked.id)
        return is_poll_due(linked.cursor, utc_now())

    def by_score(self):
        """Return tasks and scores as the Data Manager sorts them, the lowest first."""
        query = json.dumps({"ordering": ["tasks:predictions_score"]})
        parameters = {"project": self.number, "fields": "all", "query": query}
        tasks = sent(self.client.get("/api/tasks", params=parameters))["tasks"]
        return [(task["id"], task["predictions_score"]) for task in tasks]


def test_webhooks_polling_and_predictions(label_studio, server, tmp_path):
    hooks_url, context = server
    team = Team(label_studio, context, hooks_url, {"token": LEGACY_TOKEN, "predictions": True})
    one, two, three, four = team.add_tasks(
        {"text": "fine"},
        {"text": "awful"},
        {"data": {"text": "so so", "annotruth_item": "film-3"}},
        {"text": "dull"},
    )
    first = team.annotate(one, "Positive")
    second = team.annotate(two, "Positive")
    third = team.annotate(three, "Positive")
    team.annotate(four, "Negative", was_cancelled=True)  # skipped
    team.expect((one, "Positive"), (two, "Positive"), ("film-3", "Positive"))

    team.edit(second, result=choice("Negative"))
    team.delete(f"/api/annotations/{third}/")
    team.expect((one, "Positive"), (two, "Negative"))
    third = team.annotate(three, "Negative")
    team.edit(third, ground_truth=True)
    wait_until(lambda: team.known_truths() == {"film-3": "Negative"}, "the known truth")
    team.expect((one, "Positive"), (two, "Negative"))

    team.poll(tmp_path)
    team.expect((one, "Positive"), (two, "Negative"))  # polling after webhooks changes nothing

    team.switch_webhook(on=False)
    team.edit(first, result=choice("Negative"))
    team.delete(f"/api/annotations/{second}/")
    fourth = team.annotate(four, "Positive")
    (five,) = team.add_tasks({"text": "late"})
    team.annotate(five, "Positive")
    time.sleep(1)  # nothing should come
    assert team.labels() == sorted([(str(one), "Positive"), (str(two), "Negative")])
    team.poll(tmp_path)
    team.expect((one, "Negative"), (four, "Positive"), (five, "Positive"))

    team.switch_webhook(on=True)
    team.delete(f"/api/tasks/{five}/")  # names no annotation, but asks for a poll
    wait_until(team.has_poll_request, "the request of a poll")
    team.poll(tmp_path, is_due=False)
    team.expect((one, "Negative"), (four, "Positive"))
    team.edit(fourth, result=choice("Negative"))
    team.expect((one, "Negative"), (four, "Negative"))

    check_predictions(team, tmp_path, {one: 0.9, two: 0.6, four: 0.75})


def check_predictions(team, data_dir, shares):
    """Publish a fit, and see its predictions in the Data Manager."""
    rows = [
        (str(task), f"annotator {number}", "Positive" if number < 20 * share else "Negative")
        for task, share in shares.items()
        for number in range(20)
    ]
    for version, some in enumerate((rows, [*rows, (str(min(shares)), "one more", "Negative")]), 1):
        fit = at.fit(some, "majority")
        folder = folder_name(team.project.id, version)
        fit.save(snapshots_folder(data_dir) / folder)
        added = Snapshot(
            team.project.id, version, utc_now(), 1, len(some), "majority", "refit", {}, folder
        )
        with team.context.database.begin() as connection:
            add_snapshot(connection, added, team.project)
        team.poll(data_dir)
        table = fit.item_table()
        wanted = dict(
            zip(map(int, table["item"].to_pylist()), table["confidence"].to_pylist(), strict=True)
        )
        found = [(task, score) for task, score in team.by_score() if score is not None]
        assert dict(found) == pytest.approx(wanted)
        assert [task for task, _ in found] == sorted(wanted, key=wanted.get)


def test_personal_access_tokens(label_studio, server, tmp_path):
    hooks_url, context = server
    token = sent(label_studio.post("/api/token/"))["token"]
    team = Team(label_studio, context, hooks_url, {"token": token})
    team.switch_webhook(on=False)
    (task,) = team.add_tasks({"text": "fine"})
    team.annotate(task, "Positive")
    team.poll(tmp_path)
    team.expect((task, "Positive"))
