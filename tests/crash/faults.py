"""Runs commands in forked processes, and makes them fail.

A fault is raised before the nth operation that changes files: opening a file to write, creating,
renaming, linking, removing, fsync. Faults in writes themselves, also those of compiled code, come
from the system: files may not become larger than a limit.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPERATIONS = {
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod",
    "os.truncate",
}  # fmt: skip
KILLED = 77
FAULTS: dict[str, Callable[[], None]] = {
    "ENOSPC": lambda: _raise(OSError(28, "No space left on device")),
    "EIO": lambda: _raise(OSError(5, "Input/output error")),
    "KeyboardInterrupt": lambda: _raise(KeyboardInterrupt()),
    "MemoryError": lambda: _raise(MemoryError()),
    "exit": lambda: os._exit(KILLED),
}
_TIMEOUT = 120.0
_ERRORS, _OPERATIONS = "errors", "operations"


def _raise(error: BaseException) -> None:
    raise error


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a process: a kind at the nth operation, or a limit on the size of files."""

    kind: str = ""
    number: int = 0
    max_bytes: int | None = None

    def __str__(self) -> str:
        if self.max_bytes is not None:
            return f"files of at most {self.max_bytes:,} bytes"
        return f"{self.kind} at operation {self.number}"


@dataclass(frozen=True)
class Outcome:
    """How a process ended: its exit code, None if it was killed; and what it printed."""

    code: int | None
    errors: str
    operations: tuple[str, ...]
    seconds: float


class Operations:
    """Counts the operations that change files under a folder, and raises a fault at one of them."""

    def __init__(self, folder: Path, fault: Fault | None, log: Any) -> None:
        self._folder, self._fault, self._log = str(folder), fault, log
        self._count = 0

    def install(self) -> None:
        from annotruth.io import system

        sys.addaudithook(self._hear)
        for module, name in ((os, "fsync"), (system, "exchange_folders")):
            setattr(module, name, self._counted(getattr(module, name), name))

    def _counted(self, function: Any, name: str) -> Any:
        def counted(*arguments: Any) -> Any:
            self._count_one(name, arguments[0])
            return function(*arguments)

        return counted

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in OPERATIONS:
            path = arguments[0]
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & 3:
            path = arguments[0]  # opened to write
        else:
            return
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        # Paths relative to an open folder, or descriptors, are of the folder.
        if isinstance(path, str) and path.startswith("/") and not path.startswith(self._folder):
            return
        self._count_one(event, path)

    def _count_one(self, event: str, path: object) -> None:
        self._count += 1
        self._log.write(f"{event} {path}\n")
        self._log.flush()
        fault = self._fault
        if fault is not None and self._count == fault.number:
            FAULTS[fault.kind]()


def run(
    words: tuple[str, ...],
    folder: Path,
    fault: Fault | None = None,
    *,
    kill_after: float | None = None,
) -> Outcome:
    """Run a command in a forked process, in a folder, with a fault or a kill after some seconds."""
    running = start(words, folder, fault)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(running.process, signal.SIGKILL)
    return running.wait()


def start(words: tuple[str, ...], folder: Path, fault: Fault | None = None) -> Running:
    """Start a command in a forked process, in a folder."""
    scratch = tempfile.TemporaryDirectory()
    process = os.fork()
    if process == 0:
        with (
            Path(scratch.name, _ERRORS).open("w") as errors,
            Path(scratch.name, _OPERATIONS).open("w") as log,
        ):
            _run_and_exit(words, folder, fault, errors, log)
    return Running(process, scratch, time.monotonic())


@dataclass(frozen=True)
class Running:
    """A process, and the folder of what it prints and of its operations."""

    process: int
    scratch: tempfile.TemporaryDirectory[str]
    begin: float

    def wait(self) -> Outcome:
        """Wait for the end; a process that takes too long is ended by SIGABRT."""
        code = os.waitstatus_to_exitcode(_wait(self.process, self.begin + _TIMEOUT))
        with self.scratch as scratch:
            texts = {path.name: path.read_text() for path in Path(scratch).iterdir()}
        return Outcome(
            code=None if code in (-signal.SIGKILL, KILLED) else code,
            errors=texts.get(_ERRORS, ""),
            operations=tuple(texts.get(_OPERATIONS, "").splitlines()),
            seconds=time.monotonic() - self.begin,
        )


def _wait(process: int, deadline: float) -> int:
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGABRT)
            return os.waitpid(process, 0)[1]
        time.sleep(0.002)


def _run_and_exit(
    words: tuple[str, ...], folder: Path, fault: Fault | None, errors: Any, log: Any
) -> None:
    from annotruth.app.cli import main

    code: Any = 1
    try:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors.fileno(), 2)
        sys.argv = ["annotruth", *words]
        if fault is not None and fault.max_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (fault.max_bytes, fault.max_bytes))
        else:
            Operations(folder, fault, log).install()
        main()
    except SystemExit as stopped:
        code = stopped.code
    finally:
        try:
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
        finally:  # also if files may not become any larger
            os._exit(code if isinstance(code, int) else 1)
