"""doccano's JSON lines: annotations by user in one file, or one file a user."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.formats.base import Format, ParsedLabels
from annotruth.io.formats.source import Record, Source
from annotruth.io.formats.votes import Votes, counted, mapping, sequence, simple


def _recognise(source: Source) -> bool:
    first = source.first
    if "id" not in first and "doc_id" not in first:
        return False
    annotations = first.get("annotations")
    if isinstance(annotations, list):
        return all(isinstance(one, dict) and {"label", "user"} <= set(one) for one in annotations)
    return _is_of_one_user(first)


def _is_of_one_user(record: Record) -> bool:
    """Whether a record is one user's: an example with its list of labels and nobody's name."""
    labels = record.get("label", record.get("labels"))
    return isinstance(labels, list) and bool({"text", "data", "filename"} & set(record))


def _read(source: Source) -> ParsedLabels:
    votes, n_examples = Votes(), 0
    name = source.path.name.split(".")[0]
    for record in source.records():
        n_examples += 1
        _add(votes, record, name)
    note = "" if len(set(votes.annotators)) != 1 else "one user; give the folder of all users"
    return votes.found(counted(n_examples, "example", "examples"), note)


def read_users(path: Path) -> ParsedLabels | None:
    """Read a folder or a zip of one file a user, named after the user; None where it is none."""
    votes, users = Votes(), []
    for name, content in _members(path):
        source = Source(Path(name), "json", pa.py_buffer(content), read=_no_table)
        if not content.lstrip().startswith(b"{") or not _recognise(source):
            return None
        users.append(Path(name).stem)
        for record in source.records():
            _add(votes, record, users[-1])
    if len(users) < 2:
        return None
    return votes.found(f"{len(users):,} users, a file each")


def _add(votes: Votes, record: Record, user: str) -> None:
    item = record.get("id", record.get("doc_id"))
    if "annotations" not in record:
        labels = sequence(record.get("label", record.get("labels")), "the list of labels")
        if any(isinstance(label, list) for label in labels):
            raise InputError("these are spans in a text: a label is one choice out of a list")
        votes.add(item, record.get("username", user), labels)
        return
    said: dict[Any, list[Any]] = {}
    for one in sequence(record["annotations"], "the list of annotations"):
        annotation = mapping(one, "an annotation")
        if "start_offset" in annotation:
            raise InputError("these are spans in a text: a label is one choice out of a list")
        said.setdefault(simple(annotation.get("user")), []).append(annotation.get("label"))
    for who, labels in said.items():
        votes.add(item, who, labels)


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.glob("*.jsonl")):
            yield file.name, file.read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [member.filename for member in archive.infolist() if not member.is_dir()]
            if len(names) > 1 and all(name.endswith(".jsonl") for name in names):
                for name in names:
                    yield name, archive.read(name)


def _no_table(_: Any) -> tuple[pa.Table, bool]:
    raise InputError("this is JSON, not a table")


FORMATS = (Format("doccano", "doccano export", _recognise, _read),)
