"""Tables of any columns in files, such as gold, truths and annotator priors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotruth.io.batches import read_columns
from annotruth.io.content import read_content
from annotruth.io.formats.source import Source
from annotruth.io.json_lines import is_json_list, table_of_records
from annotruth.io.reading.file_errors import file_errors_reported
from annotruth.io.reading.parse import local_copy
from annotruth.labels.encode import restore_text


def load_table(data: Any, *, max_size: str | int | None = None) -> Any:
    """Return the table in a file; whatever is not a path is returned as it is."""
    return read_table(data, max_size=max_size) if isinstance(data, str | Path) else data


def read_table(path: str | os.PathLike[str], *, max_size: str | int | None = None) -> pa.Table:
    """Read all columns of a long table, in the formats of `read_labels`; those of a CSV as text."""
    with file_errors_reported(path), local_copy(path, max_size) as file:
        content = read_content(Path(file), max_size=max_size)
        if content.kind == "json" and is_json_list(content.data):
            records = list(Source(Path(file), content).records())
            return table_of_records(records, lambda names: names)
        table = read_columns(content, lambda names: names)
        if content.kind != "text":
            return table
        return pa.table([restore_text(column) for column in table.columns], table.column_names)
