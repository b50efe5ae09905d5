"""Labels read in batches within a memory limit; they stay on disk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from annotruth.errors import InputError, is_database_url
from annotruth.io.batches import read_batches
from annotruth.io.content import ContentKind, read_content
from annotruth.io.options import ReadOptions
from annotruth.io.reading.file_errors import file_errors_reported
from annotruth.io.reading.long_table import asks_question, choose_long_table
from annotruth.io.reading.parse import local_copy
from annotruth.io.sources import (
    LabelFile,
    check_same_columns,
    check_same_kind,
    describe_files,
    source_name,
)
from annotruth.labels.build import LabelBuilder
from annotruth.labels.on_disk.disk import Disk, parse_size
from annotruth.labels.on_disk.sort import DiskStore
from annotruth.labels.on_disk.table import MappedLabels


def read_to_disk(files: Sequence[LabelFile], read: ReadOptions) -> MappedLabels:
    """Read long tables in batches; the labels stay on disk, and only ids are in memory."""
    assert read.memory is not None
    disk = Disk(parse_size(read.memory))
    with disk.stopped_on_failure():
        store, builder = DiskStore(disk), None
        kinds: list[ContentKind] = []
        columns: list[str] = []
        for file in files:
            with file_errors_reported(file), local_copy(file, read.max_size) as path:
                _check_on_disk(file, read)
                content = read_content(Path(path), disk=disk, max_size=read.max_size)
                kinds.append(content.kind)
                check_same_kind(content.kind, kinds[0], source_name(files[0]))
                if builder is None:
                    builder = LabelBuilder(read, store=store, from_text=content.kind == "text")
                choose = partial(_choose_same, builder, content.kind, read, columns, files[0])
                for batch in read_batches(
                    content, choose, max_rows=disk.rows_at_once, keep_codes=True
                ):
                    builder.add(batch)
                builder.check_rows()
        assert builder is not None
        with file_errors_reported(files):
            built = builder.finish()
            if len(files) > 1:
                built = built._replace(read_as=describe_files(len(files), built.read_as))
            return MappedLabels.from_built(built, disk=disk, rows=store.rows)


def _check_on_disk(file: LabelFile, read: ReadOptions) -> None:
    """Refuse sources and options that are not for labels on disk."""
    if is_database_url(file) or read.query is not None:
        raise InputError("databases are not read within a memory limit: leave out `--memory`")
    if read.input_format not in (None, "long") or asks_question(read):
        raise InputError(
            "within a memory limit only a table of one row per label is read: leave out "
            "input_format and question (`--input-format`, `--question`), or memory (`--memory`)"
        )
    for role in read.time_columns:
        raise InputError(
            f"labels on disk do not carry their {role}: leave {role} out of columns (`--columns`), or "
            "leave out memory (`--memory`)"
        )
    for name in ("covariates", "content"):
        if getattr(read, name):
            raise InputError(
                f"labels on disk do not carry {name}: leave out {name} (`--{name}`), or "
                "memory (`--memory`)"
            )


def _choose_same(
    builder: LabelBuilder,
    kind: ContentKind,
    read: ReadOptions,
    columns: list[str],
    first: LabelFile,
    names: list[str],
) -> list[str]:
    """Choose the columns of a long table, which must be ``columns``; of the first file, set them."""
    chosen = choose_long_table(builder, kind, read, names)
    check_same_columns(chosen, columns or chosen, source_name(first))
    columns[:] = chosen
    return chosen
