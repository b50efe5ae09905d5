"""Adding the labels or comparisons of a file to a project."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa
from sqlalchemy import Connection

from annotruth.comparisons.read import read_comparisons
from annotruth.errors import ComparisonsError, InputError, LabelsError
from annotruth.io.readers import read_labels
from annotruth.io.reading.file_errors import file_named_in_errors
from annotruth.labels.encode import to_text
from annotruth.serve.store.events import append_events
from annotruth.serve.store.records import Appended, LabelEvent, Project

SOURCE = "import"
"""The source of events that were read from a file."""

_COLUMNS = {
    "labels": ("item", "annotator", "label"),
    "comparisons": ("left", "right", "annotator", "winner"),
}


def append_file(connection: Connection, project: Project, path: str, now: datetime) -> Appended:
    """Append the labels of a file, in any format that `annotruth fit` reads.

    The id of an event is a hash of its row, so that the same file again adds nothing. Of equal
    comparisons, the second has another id than the first, and so on.
    """
    table = _read(path, project)
    with file_named_in_errors(path):
        return append_events(connection, project.id, SOURCE, events_of(table, project), now)


def _read(path: str, project: Project) -> pa.Table:
    """Read a file; errors suggest no options of reading, which `annotruth serve import` lacks."""
    reader = read_comparisons if project.kind == "comparisons" else read_labels
    try:
        return reader(path).to_arrow()
    except (ComparisonsError, LabelsError) as error:
        found = "comparisons" if isinstance(error, ComparisonsError) else "labels"
        raise InputError(
            f"{path}: these are {found}, and the project {project.name!r} collects {project.kind}: "
            "import them into another project"
        ) from error
    except InputError as error:
        if "`--" not in str(error):
            raise
        columns = ", ".join(_COLUMNS[project.kind])
        raise InputError(
            f"{error}; `annotruth serve import` has no such options: write a table with the columns "
            f"{columns}"
        ) from error


def events_of(table: pa.Table, project: Project) -> Iterator[LabelEvent]:
    """Return the rows of a table as events."""
    columns = [to_text(table[name]).to_pylist() for name in _COLUMNS[project.kind]]
    n_equal: Counter[tuple[str, ...]] = Counter()
    for row in zip(*columns, strict=True):
        n_equal[row] += 1
        event_id = _hash((*row, str(n_equal[row])))
        if project.kind == "labels":
            item, annotator, label = row
            yield LabelEvent(item, annotator, label, event_id)
        else:
            left, right, annotator, outcome = row
            yield LabelEvent(left, annotator, outcome, event_id, other_item=right)


def _hash(row: tuple[str, ...]) -> str:
    content = "".join(f"{len(text)}:{text}" for text in row)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
