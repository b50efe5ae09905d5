"""The supervisor: children are started again, end with it, and are not left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from annotruth.serve.supervisor import supervise

SLEEP = "import time; time.sleep(60)"
NOTE = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); " + SLEEP
CHILD = (
    "import os, sys; from annotruth.serve.supervisor import end_with_parent; end_with_parent(); "
    "open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); " + SLEEP
)
PARENT = (
    "import os, sys; from annotruth.serve.supervisor import supervise; "
    "supervise({'child': [sys.executable, '-c', sys.argv[1], sys.argv[2]]}, os.environ)"
)


def wait_for_lines(path, n):
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        lines = path.read_text().split() if path.exists() else []
        if len(lines) >= n:
            return [int(line) for line in lines]
        time.sleep(0.02)
    raise TimeoutError(path)


def is_alive(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_for_end(pid):
    deadline = time.monotonic() + 60.0
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


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
        (first,) = wait_for_lines(path, 1)
        os.kill(first, signal.SIGKILL)
        second = wait_for_lines(path, 2)[1]
        assert second != first
        stop.set()
        thread.join()
        assert codes == [0]
        assert not is_alive(second)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
    def test_children_end_with_the_supervisor(self, tmp_path, number):
        path = tmp_path / "pids"
        parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD, str(path)])
        (child,) = wait_for_lines(path, 1)
        parent.send_signal(number)
        parent.wait()
        assert wait_for_end(child)
        if number != signal.SIGKILL:
            assert parent.returncode == 0


def test_bad_input_at_the_start_ends_the_service():
    commands = {
        "refused": [sys.executable, "-c", "raise SystemExit(2)"],
        "other": [sys.executable, "-c", SLEEP],
    }
    assert supervise(commands, os.environ) == 2
