"""doccano's JSON lines: annotations by user in one file, or one file per user."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from annotruth.errors import InputError
from annotruth.io.content import FileContent, read_content, recognise_content, size_limit
from annotruth.io.decompress import check_size, open_zip, read_member
from annotruth.io.formats.source import Format, ParsedLabels, Record, Source
from annotruth.io.formats.votes import Votes, check_scalar, counted, mapping, sequence


def _recognise(source: Source) -> bool:
    first = source.first
    if "id" not in first and "doc_id" not in first:
        return False
    annotations = first.get("annotations")
    if isinstance(annotations, list):
        return all(isinstance(one, dict) and {"label", "user"} <= set(one) for one in annotations)
    return _is_of_one_user(first)


def _is_of_one_user(record: Record) -> bool:
    """Return whether a record is of one user: an example with a list of labels and no user name."""
    labels = record.get("label", record.get("labels", record.get("entities")))
    return isinstance(labels, list) and bool({"text", "data", "filename"} & set(record))


def _read(source: Source) -> ParsedLabels:
    votes, n_examples = Votes(), 0
    name = source.path.name.split(".")[0]
    for record in source.records():
        n_examples += 1
        _add(votes, record, name)
    note = "" if len(set(votes.annotators)) != 1 else "one user; give the folder of all users"
    parsed = votes.parsed(counted(n_examples, "example", "examples"), note)
    return replace(parsed, nominal=True)  # numbers are ids of labels


def read_users(path: Path, *, max_size: str | int | None = None) -> ParsedLabels | None:
    """Read a folder or a zip of one file per user, named after the user; None if it is not one."""
    votes, users = Votes(), []
    for name, content in _members(path, max_size):
        source = Source(Path(name), content)
        if content.kind != "json" or not _recognise(source):
            return None
        users.append(Path(name).stem)
        for record in source.records():
            _add(votes, record, users[-1])
    if len(users) < 2:
        return None
    return replace(votes.parsed(f"{len(users):,} users, one file each"), nominal=True)


def _add(votes: Votes, record: Record, user: str) -> None:
    item = record.get("id", record.get("doc_id"))
    if "entities" in record:
        _refuse_spans()
    if "annotations" not in record:
        labels = sequence(record.get("label", record.get("labels")), "the list of labels")
        if any(isinstance(label, list | dict) for label in labels):
            _refuse_spans()
        # An example without labels may not have been looked at.
        votes.add(item, record.get("username", record.get("user", user)), labels or None)
        return
    labels_of_user: dict[Any, list[Any]] = {}
    for one in sequence(record["annotations"], "the list of annotations"):
        annotation = mapping(one, "an annotation")
        if "start_offset" in annotation:
            _refuse_spans()
        labels_of_user.setdefault(check_scalar(annotation.get("user")), []).append(
            annotation.get("label")
        )
    for annotator, labels in labels_of_user.items():
        votes.add(item, annotator, labels)


def _refuse_spans() -> NoReturn:
    raise InputError(
        "these are spans in a text: only labels of whole items are read; write them as a table with "
        "the columns item, annotator, label"
    )


def _members(path: Path, max_size: str | int | None) -> Iterator[tuple[str, FileContent]]:
    if path.is_dir():
        for file in sorted(
            file for file in path.iterdir() if file.is_file() and _is_of_user(file.name)
        ):
            yield file.name, read_content(file, max_size=max_size)
    elif zipfile.is_zipfile(path):
        with open_zip(os.fspath(path)) as archive:
            yield from _members_of_zip(archive, size_limit(path.stat().st_size, max_size))


def _is_of_user(name: str) -> bool:
    return name.lower().endswith((".jsonl", ".json"))


def _members_of_zip(archive: zipfile.ZipFile, limit: int) -> Iterator[tuple[str, FileContent]]:
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) < 2 or not all(_is_of_user(member.filename) for member in members):
        return
    check_size(sum(member.file_size for member in members), "zip's content", limit)
    for member in members:
        data = read_member(archive, member, "zip's content", limit=limit)
        yield member.filename, recognise_content(data, limit)


FORMATS = (Format("doccano", "doccano export", _recognise, _read),)
