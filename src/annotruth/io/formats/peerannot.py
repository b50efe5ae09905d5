"""peerannot's answers.json: ``{task: {worker: label}}``, with metadata.json metadata it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotruth.errors import InputError
from annotruth.io.formats.source import Format, ParsedLabels, Source
from annotruth.io.formats.votes import Votes, counted, mapping

_MOST_CLASSES = 1 << 20  # a larger count is an error, not a number of classes
_MOST_BYTES = 1 << 24  # of metadata


def _recognise(source: Source) -> bool:
    tasks = list(source.first.values())
    return bool(tasks) and all(
        isinstance(labels, dict)
        and not any(isinstance(label, dict | list) for label in labels.values())
        for labels in tasks
    )


def _read(source: Source) -> ParsedLabels:
    votes = Votes()
    tasks = mapping(source.document, "the file")
    for task, labels in tasks.items():
        for worker, label in mapping(labels, f"the labels of task {task!r}").items():
            votes.add(task, worker, label)
    categories = _classes(source.path, votes.labels)
    parsed = votes.parsed(
        counted(len(tasks), "task", "tasks"),
        f"{len(categories)} classes by metadata.json" if categories else "",
    )
    return replace(parsed, from_text=True, categories=categories, nominal=True)


def _classes(path: Path, labels: Sequence[Any]) -> list[int] | None:
    """Return the classes 0, 1, ... that metadata.json counts, where labels are their numbers."""
    metadata = path.with_name("metadata.json")
    if not metadata.is_file() or metadata.stat().st_size > _MOST_BYTES:
        return None
    try:
        n_classes = mapping(json.loads(metadata.read_bytes()), "metadata.json").get("n_classes")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{metadata.name} beside the file cannot be read ({error}): correct or remove it"
        ) from error
    if type(n_classes) is not int or n_classes > _MOST_CLASSES:
        return None
    fits = all(type(label) is int and 0 <= label < n_classes for label in labels)
    return list(range(n_classes)) if fits else None


FORMATS = (Format("peerannot", "peerannot answers", _recognise, _read),)
