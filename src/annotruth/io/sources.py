"""Labels and tables from whatever the caller has: a path, a frame, or `Labels`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from annotruth.errors import InputError
from annotruth.io.options import ReadOptions
from annotruth.io.readers import read_labels, read_table
from annotruth.labels import Labels


def load_labels(
    data: Any, read: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
) -> Labels:
    """Return the labels in a path, a frame or `Labels`, with known truths and priors attached."""
    if isinstance(data, str | Path):
        labels = read_labels(data, read)
    else:
        for name in ("input_format", "question", "memory"):
            if getattr(read, name) is not None:
                raise InputError(f"{name} is for files: leave it out")
        labels = Labels.of(data, read)
    if gold is not None:
        with file_named_in_errors(gold):
            labels = labels.with_gold(load_table(gold))
    if annotator_prior is not None:
        with file_named_in_errors(annotator_prior):
            labels = labels.with_annotator_prior(load_table(annotator_prior))
    return labels


def load_table(data: Any) -> Any:
    """Return the table in a file; whatever is not a path is returned as it is."""
    return read_table(data)[0] if isinstance(data, str | Path) else data


@contextmanager
def file_named_in_errors(data: Any) -> Iterator[None]:
    """Put the path before messages about what a file holds, where ``data`` is a path."""
    try:
        yield
    except InputError as error:
        if isinstance(data, str | Path) and not str(error).startswith(f"{data}: "):
            raise InputError(f"{data}: {error}") from error
        raise
