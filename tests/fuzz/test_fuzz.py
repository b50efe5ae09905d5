"""A short run of the fuzzer; `make fuzz` is a longer one."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SEED = 15
COUNTS = {
    "tables": 60,
    "files": 120,
    "columns": 60,
    "options": 60,
    "votes": 120,
    "fits": 40,
    "flips": 300,
    "crowds": 2,
}


@pytest.mark.parametrize("part", COUNTS)
def test_random_cases(part):
    # A process of its own: the fuzzer forks, and threads of libraries that earlier tests have used
    # (of Polars, for one) do not live on in a fork, which then waits for them forever.
    count = str(COUNTS[part])
    words = ["--part", part, "--count", count, "--seed", str(SEED), "--seconds", "1800"]
    run = [sys.executable, "-m", "tests.fuzz", *words]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} cases ({count} {part}): 0 failed" in done.stdout
