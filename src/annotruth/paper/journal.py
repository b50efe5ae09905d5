"""The runs that are done, one JSON line each, with a fingerprint of all that shaped them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from annotruth.errors import OutputError
from annotruth.io.atomic import atomic_write
from annotruth.paper.base import Experiment, Results, Settings


class Task(NamedTuple):
    """One run of one condition, both by number."""

    condition: int
    run: int


def fingerprint(experiment: Experiment, settings: Settings, data: Path | None) -> str:
    """Return a short text that changes with whatever changes a run's result."""
    parts: dict[str, Any] = {
        "experiment": experiment.name,
        "version": version("annotruth"),
        "settings": dict(settings),
        "conditions": [dict(condition) for condition in experiment.conditions(settings)],
        "models": list(experiment.models),
    }
    if experiment.data is not None and data is not None:
        parts["data"] = [
            hashlib.sha256((data / file).read_bytes()).hexdigest() for file in experiment.data.files
        ]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Journal:
    """The lines of ``runs.jsonl``."""

    def __init__(self, path: Path, mark: str) -> None:
        self._path = path
        self._mark = mark
        self.done: dict[Task, Results] = {}
        lines = path.read_text("utf-8").splitlines(keepends=True) if path.is_file() else []
        kept = [line for line in lines if self._remember(line)]
        self._stale = len(kept) < len(lines)
        self._kept = kept

    @contextmanager
    def appending(self) -> Iterator[Callable[[Task, Results], None]]:
        """Hand out a function that writes a finished run down at once."""
        with ExitStack() as stack:
            file: TextIO | None = None

            def append(task: Task, results: Results) -> None:
                nonlocal file
                if file is None:
                    # Not before there is something to keep: bad input leaves nothing behind.
                    file = stack.enter_context(self._opened())
                line = {"fingerprint": self._mark, **task._asdict(), "results": results}
                file.write(json.dumps(line) + "\n")
                file.flush()
                self.done[task] = results

            yield append

    def _opened(self) -> TextIO:
        if self._stale:
            # Runs of other settings, and a last line that was cut short, go.
            with atomic_write(self._path) as aside:
                aside.write_text("".join(self._kept), "utf-8", newline="\n")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            reason = error.strerror or str(error)
            raise OutputError(
                f"cannot write {self._path}: {reason}; choose another folder with --out"
            ) from error

    def _remember(self, line: str) -> bool:
        try:
            entry = json.loads(line)
            task = Task(int(entry["condition"]), int(entry["run"]))
            if entry["fingerprint"] != self._mark or not line.endswith("\n"):
                return False
            self.done[task] = entry["results"]
        except (ValueError, KeyError, TypeError):
            return False
        return True
