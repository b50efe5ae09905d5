"""A short run of the attacks; `make attack` is a longer one, with further tools."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.attack.targets import DATABASES

ROOT = Path(__file__).resolve().parents[2]

TOOLS = os.environ.get("ANNOTRUTH_ATTACK_TOOLS", "")


@pytest.mark.parametrize("database", DATABASES)
def test_the_service_withstands_a_short_attack(database):
    words = ["--database", database, "--seconds", "60", "--count", "200"]
    words += ["--tools", TOOLS] if TOOLS else []
    run = [sys.executable, "-m", "tests.attack", *words]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if "skipped" in done.stdout:
        pytest.skip(done.stdout.strip())
    (n_requests,) = re.findall(rf"{database}, rights: (\d+) requests", done.stdout)
    assert int(n_requests) > 300
    assert f"{database}, protocol: 200 requests" in done.stdout
