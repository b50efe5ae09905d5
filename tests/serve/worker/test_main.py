"""The worker's process: settings, and its end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.serve.worker.conftest import make_events

from annotruth.serve.config import ServeConfig
from annotruth.serve.store.snapshots import latest_snapshot

COMMAND = [sys.executable, "-m", "annotruth.serve.worker"]


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
        snapshot, deadline = None, time.monotonic() + 300.0
        while snapshot is None and time.monotonic() < deadline:
            time.sleep(0.05)
            with database.connect() as connection:
                snapshot = latest_snapshot(connection, project.id)
        assert snapshot.n_labels == 120
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60.0) == 0
    finally:
        process.kill()
        process.wait()
