"""Adding the labels or comparisons of a file to a project."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

import pyarrow as pa

from annotruth.comparisons.read import read_comparisons
from annotruth.errors import ComparisonsError, InputError, LabelsError
from annotruth.io.readers import read_labels
from annotruth.io.reading.file_errors import file_named_in_errors
from annotruth.labels.encode import to_text
from annotruth.serve.store.annotations import AnnotationState, annotation_states
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import annotation_of_slot, append_events
from annotruth.serve.store.records import Appended, LabelEvent, Project, ProjectKind

SOURCE = "import"
"""The source of events that were read from a file."""

_COLUMNS = {
    "labels": ("item", "annotator", "label"),
    "comparisons": ("left", "right", "annotator", "winner"),
}


def append_file(database: Database, project: Project, path: str, now: datetime) -> Appended:
    """Append the labels of a file, in any format that `annotruth fit` reads.

    The same file again adds nothing. The file is read before the transaction begins, so that a
    running service need not wait.
    """
    table = _read(path, project)
    with file_named_in_errors(path), database.begin() as connection:
        if project.kind == "comparisons":
            events = _comparisons(table)
        else:
            events = _labels(table, annotation_states(connection, project.id, SOURCE))
        return append_events(connection, project.id, SOURCE, events, now)


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


def _labels(table: pa.Table, known: Mapping[str, AnnotationState]) -> Iterator[LabelEvent]:
    """Return the rows of a table of labels as events.

    The id of an event is a hash of its row. Of a label that an import in between had changed, the id
    also has the hash of what it replaces: it is another event than the first time.
    """
    for item, annotator, label in _rows(table, "labels"):
        event_id = _hash(item, annotator, label, "1")
        before = known.get(annotation_of_slot(item, annotator))
        if before is not None and before.event_id.partition("-")[0] == event_id:
            event_id = before.event_id
        elif before is not None:
            event_id += f"-{_hash(before.event_id)}"
        yield LabelEvent(item, annotator, label, event_id)


def _comparisons(table: pa.Table) -> Iterator[LabelEvent]:
    """Return the rows of a table of comparisons as events.

    The id of an event is a hash of its row and of how many equal rows are before it.
    """
    n_equal: Counter[tuple[str, ...]] = Counter()
    for row in _rows(table, "comparisons"):
        n_equal[row] += 1
        left, right, annotator, outcome = row
        event_id = _hash(*row, str(n_equal[row]))
        yield LabelEvent(left, annotator, outcome, event_id, other_item=right)


def _rows(table: pa.Table, kind: ProjectKind) -> Iterator[tuple[str, ...]]:
    return zip(*(to_text(table[name]).to_pylist() for name in _COLUMNS[kind]), strict=True)


def _hash(*texts: str) -> str:
    content = "".join(f"{len(text)}:{text}" for text in texts)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
