"""Processes that are killed under load: every acknowledged label is there, once."""

import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_kills_of_the_server_and_the_worker_lose_nothing():
    pytest.importorskip("psycopg")
    from benchmarks.serve.crashes import crash
    from benchmarks.serve.processes import installation

    with installation("SQLite") as installed:
        result = crash(installed, kills=4)
    assert result.n_acknowledged == result.n_stored == result.n_sent > 0
    assert result.n_lost == result.n_twice == 0
    assert result.n_snapshots >= 3
    assert result.difference < 1e-6
