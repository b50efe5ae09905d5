"""The files that arguments and options name: what is read, and what may be written.

No output replaces an input or another output. Saved fits, folders of tables, simulated crowds and pages
that annotruth wrote are replaced. Any other existing file, and a folder with other files, is refused
before anything is read, unless ``--force`` is given.
"""

from __future__ import annotations

import glob
import json
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from annotruth.errors import (
    ComparisonsError,
    InputError,
    LabelsError,
    hide_credentials,
    is_url,
    system_errors_reported,
)
from annotruth.io.atomic import path_behind_links
from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.report.pdf import HTML, MARK, check_pdf

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions

A = TypeVar("A")
B = TypeVar("B")

WORKBOOK = ".xlsx"

_PAIR_COLUMNS = {"left", "right", "winner", "loser"}

TABLE_SUFFIXES = (".csv", ".parquet", ".json", WORKBOOK)

TABLES = (
    *("items", "annotators", "labels", "distributions", "comparisons", "groups", "answers"),
    "overview",
)
"""The tables of fits, in the folder that ``--out`` names."""

OutputKind = Literal["file", "page", "verdicts", "advice", "tables", "fit", "questions", "crowd"]
"""A file: any, a page, verdicts on annotators or advice; or a folder: tables, a saved fit, saved fits
of questions, a simulated crowd."""

# The columns by which tables are recognised that annotruth wrote.
_OWN_TABLES: Mapping[str, Sequence[Collection[str]]] = {
    "verdicts": [("annotator", "verdict", "reason")],
    "advice": [("item", "status", "add", "gain"), ("left", "right", "annotator", "gain")],
}

_FOLDERS = {
    "tables": "tables",
    "fit": "saved fit",
    "questions": "saved fits of questions",
    "crowd": "simulated crowd",
}
_GENERATOR = b'<meta name="generator" content="annotruth">'
_HEAD_BYTES = 4096
_PART_TIME = (1980, 1, 31, 0, 0, 0)
_DATA = re.compile(r"data-[0-9a-f]{16}")  # the files of a saved fit
_OTHER_SUFFIXES = (".tsv", ".txt", ".xls", ".jsonl", ".html", ".arrow", ".feather", ".gz", ".zip")


def one_or_several(names: list[str]) -> str | list[str]:
    """Return the only name, or all of them, as functions take a path or a list of paths."""
    return names[0] if len(names) == 1 else names


def input_files(names: list[str]) -> list[Path]:
    """Return the files of FIT|LABELS, which no output may replace."""
    files = []
    for name in names:
        folder = Path(name)
        files += saved_files(folder)
        if folder.is_dir() and not is_saved(folder):
            files += folder.iterdir()
        if glob.has_magic(name):
            from annotruth.io.sources import find_matches

            files += map(Path, find_matches(name))
    return files


def is_saved(folder: Path) -> bool:
    """Return whether a folder holds a saved fit."""
    return any((folder / name).is_file() for name in ("fit.json", "questions.json"))


def is_ranking(names: list[str]) -> bool:
    """Return whether the only name is the folder of a saved fit of comparisons."""
    if len(names) != 1 or not is_saved(Path(names[0])):
        return False
    try:
        entries = json.loads((Path(names[0]) / "fit.json").read_bytes())
    except (OSError, ValueError, RecursionError):  # loading it says what is wrong
        return False
    return isinstance(entries, dict) and entries.get("kind") == "ranking"


def heading(names: list[str]) -> str:
    """Return the name of FIT|LABELS in the heading of a report."""
    if any(map(is_url, names)):
        return ", ".join(map(hide_credentials, names))
    if len(names) == 1 and names[0] != "-":
        return Path(names[0]).resolve().name
    from annotruth.io.sources import source_name

    return source_name([name if name == "-" else Path(name).name for name in names])


def is_table_file(path: str | Path | None) -> bool:
    """Return whether ``--out`` names a file for the first table, not a folder for all."""
    return path is not None and Path(path).suffix.lower() in TABLE_SUFFIXES


def is_workbook(path: str | Path | None) -> bool:
    """Return whether an output is a workbook."""
    return path is not None and Path(path).suffix.lower() == WORKBOOK


def check_outputs(
    inputs: Mapping[str, Iterable[str | Path | None]],
    outputs: Mapping[str, Iterable[str | Path | None]],
) -> None:
    """Refuse an output that would replace an input or another output, also through links.

    Both are lists of paths by the argument or flag that names them.
    """
    names: dict[object, str] = {}
    for name, paths in inputs.items():
        for path in paths:
            for key in _identities(path):
                names[key] = f"is also the input {name}"
    for name, paths in outputs.items():
        own = {}
        for path in paths:
            for key in _identities(path):
                if key in names:
                    problem = f"{path}, which {name} writes, {names[key]}"
                    raise InputError(f"{problem}: choose another path")
                own[key] = f"is also written by {name}"
        names |= own


def _identities(path: str | Path | None) -> list[object]:
    """Return what two paths to the same file have in common: the path behind links, or the inode."""
    if path is None:
        return []
    real = Path(os.path.realpath(path))
    try:
        status = real.stat()
    except OSError:  # it does not exist yet, or is no path but the name of a table
        return [real]
    return [real, (status.st_dev, status.st_ino)]


def table_files(
    out: str | Path | None, suffix: str = "csv", names: Iterable[str] = TABLES
) -> list[Path]:
    """Return the paths that ``--out`` writes; refuse a folder that holds a saved fit."""
    if out is None:
        return []
    out = Path(out)
    if is_table_file(out):
        return [out]
    if _arrow_files(out):
        raise InputError(f"{out} holds a saved fit: choose another folder for the tables")
    return [out, out / "fit.json", *(out / f"{name}.{suffix}" for name in names)]


def saved_files(folder: Path | None) -> list[Path]:
    """Return the files of a saved fit, or of one that is to be saved, and the folder itself."""
    if folder is None:
        return []
    return [folder, folder / "fit.json", *_arrow_files(folder)]


def _arrow_files(folder: Path) -> list[Path]:
    return list(folder.glob("data-*/*"))


def check_out(out: str | Path | None, *, force: bool, advice: bool = False) -> None:
    """Refuse to replace what annotruth did not write with the tables of ``--out``.

    Names of files in other formats, such as items.tsv, are not those of folders. ``advice``: whether
    the tables are those of advice, of which a file is recognised.
    """
    if out is not None and Path(out).suffix.lower() in _OTHER_SUFFIXES and not Path(out).exists():
        raise InputError(
            f"--out {out}: a table is written to a name that ends in .csv, .parquet or .json, all "
            "tables to a folder, or to a workbook that ends in .xlsx"
        )
    file: OutputKind = "advice" if advice else "file"
    check_existing("--out", out, file if is_table_file(out) else "tables", force=force)


def check_existing(
    flag: str, path: str | Path | None, kind: OutputKind, *, force: bool = False
) -> None:
    """Refuse to replace what annotruth did not write, unless ``force`` is set.

    Pages, workbooks, verdicts and advice are replaced if annotruth wrote them, and workbooks only if
    nobody has saved them since; other files never. Tables, saved fits and simulated crowds are
    replaced, too; a folder may hold other files beside them. ``flag`` names the path in the
    message; a path of None is nothing.
    """
    if path is None:
        return
    if str(path) == "-":
        raise InputError(f"{flag} -: standard output is not written to: name a file or a folder")
    path_behind_links(path)  # refuses a link that leads to itself
    if Path(path).exists():
        with system_errors_reported(path):
            _check_replaced(flag, Path(path), kind, force=force)
    if kind == "page" and Path(path).suffix.lower() not in HTML:
        check_pdf(path, flag)


def _check_replaced(flag: str, path: Path, kind: OutputKind, *, force: bool) -> None:
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
    if path.is_file() and not _is_own(path, kind):
        note = " and is not a page of annotruth" if kind == "page" else ""
        if is_workbook(path):
            note = " and was not written by annotruth, or was changed since"
        raise InputError(
            f"{flag} {path}: the file exists{note}: choose another path, or pass --force to "
            "replace it"
        )


def _is_own(path: Path, kind: str) -> bool:
    """Return whether annotruth wrote a file of this kind."""
    if kind == "page":
        return _is_page(path)
    if is_workbook(path):
        return _is_unchanged_workbook(path)
    columns = _columns_as_written(path)
    return any(columns.issuperset(own) for own in _OWN_TABLES.get(kind, ()))


def _is_unchanged_workbook(path: Path) -> bool:
    """Return whether annotruth wrote a workbook, and nobody has saved it since."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("docProps/core.xml") as file:
            core = file.read(_HEAD_BYTES).decode()
            times = {entry.date_time for entry in archive.infolist()}
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return False
    tags = ("dc:creator", "cp:lastModifiedBy", "dcterms:created", "dcterms:modified")
    found = [re.search(f"<{tag}[^>]*>([^<]*)<", core) for tag in tags]
    author, editor, created, modified = (each and each[1] for each in found)
    # XlsxWriter gives all parts the same time; others give the current one, or change the editor.
    return author == editor == "annotruth" and created == modified and times == {_PART_TIME}


def _columns_as_written(path: Path) -> set[str]:
    """Return the columns of a CSV or JSON file in the form that annotruth writes; none of others."""
    start = _head(path).split(b"\n")
    try:
        if start[0] == b"[":
            return set(json.loads(start[1].removesuffix(b",")))
        return set(json.loads(b"[%s]" % start[0]))  # names in quotes, as no spreadsheet writes them
    except (ValueError, TypeError, IndexError, RecursionError):
        return set()


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
    return "fit" if "files" in entries else "tables"


def _is_page(path: Path) -> bool:
    """Return whether annotruth wrote a file, as a page in HTML or PDF."""
    if _GENERATOR in _head(path):
        return True
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - len(MARK), 0))
        return file.read() == MARK


def _head(path: Path) -> bytes:
    """Return how a file begins; nothing if there is none."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def choose_path(
    read: ReadOptions,
    model: str | None,
    label_flags: Mapping[str, object],
    of_labels: Callable[[], A],
    of_comparisons: Callable[[], B],
) -> A | B:
    """Call the function for what the input is; refuse flags for labels if it is comparisons.

    Comparisons are known by ``--columns`` or ``--model``, or because they are refused where labels
    are read. Labels with an option for comparisons are refused because of that option.
    """
    refusal: InputError | None = None
    if not (_PAIR_COLUMNS & (read.columns or {}).keys() or model in PAIR_MODELS):
        try:
            return of_labels()
        except ComparisonsError as error:
            refusal = error
    refuse_label_flags(label_flags)
    try:
        return of_comparisons()
    except LabelsError as error:
        if model in PAIR_MODELS:
            refusal = InputError(f"{model} ranks comparisons, and these are labels: leave it out")
        raise refusal or error from None


def refuse_label_flags(flags: Mapping[str, object]) -> None:
    """Refuse flags for labels where there are comparisons."""
    for flag, value in flags.items():
        if value is not None:
            raise InputError(f"{flag} is for labels, and these are comparisons: leave it out")
