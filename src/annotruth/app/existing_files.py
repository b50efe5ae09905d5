"""The rule for outputs that exist already.

Saved fits, folders of tables, simulated crowds and pages that annotruth wrote are replaced. Any other
existing file, and a folder with other files, is refused before anything is read, unless ``--force``
is given.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

from annotruth.app import options
from annotruth.errors import InputError, system_errors_reported
from annotruth.io.atomic import path_behind_links

OutputKind = Literal["file", "page", "tables", "fit", "questions", "crowd"]
"""A file, a page, or a folder: tables, a saved fit, saved fits of questions, a simulated crowd."""

_FOLDERS = {
    "tables": "tables",
    "fit": "saved fit",
    "questions": "saved fits of questions",
    "crowd": "simulated crowd",
}
_GENERATOR = b'<meta name="generator" content="annotruth">'
_HEAD_BYTES = 4096
_DATA = re.compile(r"data-[0-9a-f]{16}")  # the files of a saved fit
_OTHER_SUFFIXES = (".tsv", ".txt", ".xlsx", ".jsonl", ".html", ".arrow", ".feather", ".gz", ".zip")


def check_out(out: str | Path | None, *, force: bool) -> None:
    """Refuse to replace what annotruth did not write with the tables of ``--out``.

    Names of files in other formats, such as items.xlsx, are not those of folders.
    """
    if out is not None and Path(out).suffix.lower() in _OTHER_SUFFIXES and not Path(out).exists():
        raise InputError(
            f"--out {out}: a table is written to a name that ends in .csv, .parquet or .json, all "
            "tables to a folder"
        )
    check_existing("--out", out, "file" if options.is_table_file(out) else "tables", force=force)


def check_existing(
    flag: str, path: str | Path | None, kind: OutputKind, *, force: bool = False
) -> None:
    """Refuse to replace what annotruth did not write, unless ``force`` is set.

    Parameters
    ----------
    flag
        The option that names the path, for the message.
    path
        A file or a folder to be written; None is nothing.
    kind
        Files are never replaced. A page is replaced if annotruth wrote it, and so are tables,
        saved fits and simulated crowds. A folder may hold other files beside them.
    force
        Whether to replace them all the same.
    """
    if path is None:
        return
    path_behind_links(path)  # refuses a link that leads to itself
    if Path(path).exists():
        with system_errors_reported(path):
            _check_existing(flag, Path(path), kind, force=force)


def _check_existing(flag: str, path: Path, kind: OutputKind, *, force: bool) -> None:
    is_folder = kind in _FOLDERS
    if path.is_dir() != is_folder and (path.is_dir() or path.is_file()):
        other = "a folder: name a file in it" if path.is_dir() else "a file: name a folder"
        raise InputError(f"{flag} {path}: this is {other}")
    if not (path.is_dir() or path.is_file()):
        raise InputError(f"{flag} {path}: this is neither a file nor a folder: choose another path")
    if force or (path.is_dir() and not _foreign_files(path)):
        return
    if is_folder and _folder_kind(path) != kind:
        raise InputError(
            f"{flag} {path}: the folder holds other files and no {_FOLDERS[kind]} of annotruth: "
            "choose another folder, or pass --force to write into it"
        )
    if path.is_file() and not (kind == "page" and _is_page(path)):
        note = " and is not a page of annotruth" if kind == "page" else ""
        raise InputError(
            f"{flag} {path}: the file exists{note}: choose another path, or pass --force to "
            "replace it"
        )


def _foreign_files(folder: Path) -> bool:
    """Return whether a folder has files, apart from hidden ones and what killed commands left."""
    names = [path.name for path in folder.iterdir()]
    return any(not (name.startswith(".") or _DATA.fullmatch(name)) for name in names)


def _folder_kind(folder: Path) -> str | None:
    """Return what annotruth wrote to a folder, as an `OutputKind`; None if nothing."""
    if (folder / "questions.json").is_file() and not (folder / "fit.json").exists():
        return "questions"
    if (folder / "truth.csv").is_file() and b'"behavior"' in _head(folder / "annotators.csv"):
        return "crowd"
    try:
        entries = json.loads((folder / "fit.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(entries, dict) or not {"format", "model"} <= entries.keys():
        return None
    return "fit" if "files" in entries or (folder / "cells.arrow").exists() else "tables"


def _is_page(path: Path) -> bool:
    return _GENERATOR in _head(path)


def _head(path: Path) -> bytes:
    """Return how a file begins; nothing if there is none."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)
