"""Whatever a caller has, a path, a frame or Labels, made into labels with all that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from annotruth.errors import InputError
from annotruth.io.readers import read_labels, read_table
from annotruth.labels import Bins, DuplicatePolicy, Labels, ScaleKind


def labels_from(
    data: Any,
    *,
    gold: Any = None,
    record: Any = None,
    columns: Mapping[str, str] | None = None,
    scale: ScaleKind = "auto",
    categories: Sequence[Any] | None = None,
    duplicates: DuplicatePolicy = "refuse",
    bins: Bins | None = None,
    input_format: str | None = None,
    question: str | None = None,
    memory: str | int | None = None,
) -> Labels:
    """Make labels of what `annotruth.fit` takes, with known truths and records attached."""
    labels = _maker(data, input_format, question, memory)(
        data, columns=columns, scale=scale, categories=categories, duplicates=duplicates, bins=bins
    )
    if gold is not None:
        with naming(gold):
            labels = labels.with_gold(read_if_path(gold))
    if record is not None:
        with naming(record):
            labels = labels.with_record(read_if_path(record))
    return labels


def _maker(
    data: Any, input_format: str | None, question: str | None, memory: str | int | None
) -> Callable[..., Labels]:
    """Return what makes labels of such data: in memory, or with a file's labels on disk."""
    if not isinstance(data, str | Path):
        if input_format is not None or question is not None or memory is not None:
            raise InputError("input_format, question and memory are for files: leave them out")
        return Labels.of
    if memory is None:
        return partial(read_labels, input_format=input_format, question=question)
    from annotruth.io.large import read_labels_within
    from annotruth.labels.on_disk.disk import size_of

    return partial(
        read_labels_within, size_of(memory), input_format=input_format, question=question
    )


def read_if_path(data: Any) -> Any:
    """Read a table from a path; whatever else it is stays as it is."""
    return read_table(data)[0] if isinstance(data, str | Path) else data


@contextmanager
def naming(data: Any) -> Iterator[None]:
    """Name the file in complaints about what it holds."""
    try:
        yield
    except InputError as error:
        if isinstance(data, str | Path) and not str(error).startswith(f"{data}: "):
            raise InputError(f"{data}: {error}") from error
        raise
