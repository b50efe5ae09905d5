"""The log of finished runs, one JSON line each, with a fingerprint of all they depend on."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from annotruth.errors import OutputError
from annotruth.io.atomic import atomic_write
from annotruth.paper.experiment import Experiment, Results, Settings


class RunId(NamedTuple):
    """A run of an experiment: the index of its condition and its number within it."""

    condition: int
    run: int


def fingerprint(experiment: Experiment, settings: Settings, data: Path | None) -> str:
    """Return a hash of everything that the result of a run depends on."""
    content: dict[str, Any] = {
        "experiment": experiment.name,
        "version": version("annotruth"),
        "settings": dict(settings),
        "conditions": [dict(condition) for condition in experiment.conditions(settings)],
        "models": list(experiment.models),
    }
    if experiment.required_files is not None and data is not None:
        content["data"] = [
            hashlib.sha256((data / path).read_bytes()).hexdigest()
            for path in experiment.required_files.paths
        ]
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class RunLog:
    """The finished runs in ``runs.jsonl``; runs with another fingerprint do not count."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint
        self.results: dict[RunId, Results] = {}
        lines: list[str] = []
        if path.is_file():
            # Bytes that are no text make their line invalid, like one that was cut short.
            lines = path.read_text("utf-8", errors="replace").splitlines(keepends=True)
        self._valid_lines = [line for line in lines if self._load(line)]
        self._has_invalid_lines = len(self._valid_lines) < len(lines)

    def append(self, run_id: RunId, results: Results) -> None:
        """Write a finished run to the file at once."""
        line = {"fingerprint": self._fingerprint, **run_id._asdict(), "results": results}
        try:
            self._drop_invalid_lines()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            reason = error.strerror or str(error)
            raise OutputError(
                f"cannot write {self._path}: {reason}; choose another folder with --out"
            ) from error
        self.results[run_id] = results

    def _drop_invalid_lines(self) -> None:
        """Drop runs of other settings, and a last line that was cut short."""
        if self._has_invalid_lines:
            with atomic_write(self._path) as temporary:
                temporary.write_text("".join(self._valid_lines), "utf-8", newline="\n")
            self._has_invalid_lines = False

    def _load(self, line: str) -> bool:
        """Load a line; return whether it is a complete run with this fingerprint."""
        try:
            entry = json.loads(line)
            run_id = RunId(int(entry["condition"]), int(entry["run"]))
            if entry["fingerprint"] != self._fingerprint or not line.endswith("\n"):
                return False
            self.results[run_id] = entry["results"]
        except (ValueError, KeyError, TypeError):
            return False
        return True
