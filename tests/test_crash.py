"""A short run of `make crash`: kills and faults leave exactly the old or exactly the new."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_and_faults_leave_the_old_or_the_new():
    words = [sys.executable, "-m", "tests.crash", "--kills", "8", "--faults", "12", "--seed", "0"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 violations" in done.stdout
