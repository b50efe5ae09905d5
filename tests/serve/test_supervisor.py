"""The supervisor: children are started again, end with it, and are not left behind."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.waiting import MAX_SECONDS, wait_until

from annotruth.serve.start import supervise

SLEEP = f"import time; time.sleep({10 * MAX_SECONDS})"  # longer than any test waits
NOTE = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); " + SLEEP
CHILD = (
    "import os, sys; from annotruth.serve.start import end_with_parent; end_with_parent(); "
    "open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); " + SLEEP
)
BUSY = (  # as during a fit
    "import signal; from annotruth.serve import start; start._ORPHAN_SECONDS = 0.1; "
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); " + CHILD
)
PARENT = (
    "import os, sys; from annotruth.serve.start import supervise; "
    "supervise({'child': [sys.executable, '-c', sys.argv[1], sys.argv[2]]}, os.environ)"
)


def wait_for_pids(path, n):
    """Return the process ids that children have written, when there are as many."""

    def pids():
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    wait_until(lambda: len(pids()) >= n, f"process {n}")
    return pids()


def is_alive(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
class TestProcesses:
    def test_a_killed_child_is_started_again(self, tmp_path):
        path, stop = tmp_path / "pids", threading.Event()
        commands = {"child": [sys.executable, "-c", NOTE, str(path)]}
        codes = []
        thread = threading.Thread(
            target=lambda: codes.append(supervise(commands, os.environ, stop=stop))
        )
        thread.start()
        (first,) = wait_for_pids(path, 1)
        os.kill(first, signal.SIGKILL)
        second = wait_for_pids(path, 2)[1]
        assert second != first
        stop.set()
        thread.join()
        assert codes == [0]
        assert not is_alive(second)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
    def test_children_end_with_the_supervisor(self, tmp_path, number):
        path = tmp_path / "pids"
        parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD, str(path)])
        (child,) = wait_for_pids(path, 1)
        parent.send_signal(number)
        parent.wait()
        wait_until(lambda: not is_alive(child), "the end of the child")
        if number != signal.SIGKILL:
            assert parent.returncode == 0

    def test_a_busy_child_ends_with_a_killed_supervisor(self, tmp_path):
        path = tmp_path / "pids"
        parent = subprocess.Popen([sys.executable, "-c", PARENT, BUSY, str(path)])
        (child,) = wait_for_pids(path, 1)
        parent.kill()
        parent.wait()
        wait_until(lambda: not is_alive(child), "the end of the child")


def test_bad_input_at_the_start_ends_the_service():
    commands = {
        "refused": [sys.executable, "-c", "raise SystemExit(2)"],
        "other": [sys.executable, "-c", SLEEP],
    }
    assert supervise(commands, os.environ) == 2
