"""The worker's process: settings, and its end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.serve.worker.conftest import make_events
from tests.waiting import MAX_SECONDS, wait_until

from annotruth.serve.config import ServeConfig
from annotruth.serve.store.projects import latest_snapshot

COMMAND = [sys.executable, "-m", "annotruth.serve.worker.loop"]


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
