"""The folder of a saved fit: its files, their checksums, and how one fit replaces another.

``fit.json`` names the folder of the Arrow files, ``data-*``, with the size and SHA-256 of each. Saving
writes a new folder of files and then replaces ``fit.json`` in one step, so there is always one
complete fit, the old one or the new one. Readers need no lock. Those who save hold the lock of the
file ``.lock``.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import feather

from annotruth.errors import (
    ComparisonsError,
    InputError,
    LabelsError,
    check_path,
    option,
    shown,
    system_errors_reported,
)
from annotruth.io.atomic import (
    check_replaceable,
    cleaned_up_on_sigterm,
    folders_created,
    path_behind_links,
    remove_leftovers,
)
from annotruth.io.system import exclusive, sync_file, sync_folder
from annotruth.models import base_fit
from annotruth.models.base_fit import FORMAT
from annotruth.models.fits.further import FurtherResults, further_kinds, make_further_results
from annotruth.models.result import QUESTIONS_MANIFEST, Fit
from annotruth.models.storage.entries import check_entries
from annotruth.models.storage.schema import COVARIANCE, OPTIONAL_TABLES, SCHEMAS
from annotruth.models.storage.tables import check_table, make_fit, make_tables
from annotruth.observations.options import Campaign

MANIFEST = "fit.json"
WAIT_SECONDS = 600.0
"""How long to wait for another process that saves to the same folder."""

_LOCK = ".lock"
_DATA = re.compile(r"data-[0-9a-f]{16}")
_PARAMETER = "parameter-"
_FURTHER = "further-"  # prefix of the tables of further results
_NAMES = {COVARIANCE}.union(*SCHEMAS.values())
_FILE = re.compile(rf"({'|'.join(sorted(_NAMES))}|{_PARAMETER}[a-z_]+|{_FURTHER}[a-z_]+)\.arrow")
_HELD: ContextVar[frozenset[Path]] = ContextVar("_HELD", default=frozenset())
# What reading a damaged file can raise.
_DAMAGE = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    pa.ArrowException,
)


def save(fit: Fit[Any], path: str | os.PathLike[str]) -> None:
    """Write a fit to a folder; if that fails, or the process is killed, the folder has the old fit."""
    folder = path_behind_links(path)
    if (folder / QUESTIONS_MANIFEST).exists():
        raise InputError(f"{path} holds the fits of several questions: choose another folder")
    with (
        system_errors_reported(path),
        folders_created(folder),
        cleaned_up_on_sigterm(),
        _lock_held(folder),
    ):
        remove_leftovers(folder)
        data = folder / f"data-{secrets.token_hex(8)}"
        try:
            data.mkdir()
            files = _write_files(fit, data)
            fitted_at = (fit.fitted_at or base_fit.now()).isoformat()
            entries = fit.to_dict() | {
                "fitted_at": fitted_at,
                "data": data.name,
                "files": files,
            }
            if campaign := fit.campaign.changed():
                entries["campaign"] = campaign
            entries.pop("notes", None)  # they follow from labels and results
            entries["checksum"] = _checksum(entries)
            manifest = data / MANIFEST
            manifest.write_text(json.dumps(entries, indent=2) + "\n", "utf-8", newline="\n")
            sync_file(manifest)
            sync_folder(data)
            sync_folder(folder)
            check_replaceable(folder / MANIFEST)
            manifest.replace(folder / MANIFEST)
        except BaseException:
            # An interruption can come right after the rename, so the manifest says what to keep.
            _remove_unused(folder, [data])
            if not (folder / MANIFEST).exists():
                (folder / _LOCK).unlink(missing_ok=True)
            raise
        if sync_folder(folder):
            _remove_unused(folder, folder.iterdir())


def _write_files(fit: Fit[Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Write tables and arrays; return the size and the checksum of each file."""
    tables, parameters = make_tables(fit)
    arrays = {f"{_PARAMETER}{name}": values for name, values in parameters.items()}
    if fit.kind == "comparisons":
        arrays[COVARIANCE] = fit.scores.covariance
    for results in fit.further.values():
        tables |= {f"{_FURTHER}{name}": table for name, table in results.tables.items()}
    for name, table in tables.items():
        feather.write_feather(table, str(folder / f"{name}.arrow"))
    for name, values in arrays.items():
        with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as file:
            pa.ipc.write_tensor(pa.Tensor.from_numpy(np.ascontiguousarray(values)), file)
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files[path.name] = {"bytes": path.stat().st_size, "sha256": digest}
        sync_file(path)
    return files


def _checksum(entries: Mapping[str, Any]) -> str:
    others = {name: value for name, value in entries.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def _remove_unused(folder: Path, paths: Iterable[Path]) -> None:
    with suppress(OSError, ValueError):
        used = None
        if (folder / MANIFEST).exists():
            used = json.loads((folder / MANIFEST).read_text("utf-8")).get("data")
        for path in paths:
            if _DATA.fullmatch(path.name) and path.name != used:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def locked(
    path: str | os.PathLike[str], *, on_wait: Callable[[], object] | None = None
) -> Iterator[None]:
    """Keep others from saving a fit to a folder until the block ends.

    To update a saved fit without losing an update by another process, load and save it in one such
    block. Of a folder without a fit, nothing is locked. ``on_wait`` is called once if another process
    holds the lock.
    """
    folder = Path(os.path.realpath(path))
    if not (folder / MANIFEST).is_file():
        yield
        return
    with ExitStack() as stack:
        with system_errors_reported(path):
            stack.enter_context(_lock_held(folder, on_wait))
        yield


@contextmanager
def _lock_held(folder: Path, on_wait: Callable[[], object] | None = None) -> Iterator[None]:
    if folder in _HELD.get():
        yield
        return
    with exclusive(folder / _LOCK, seconds=WAIT_SECONDS, on_wait=on_wait):
        token = _HELD.set(_HELD.get() | {folder})
        try:
            yield
        finally:
            _HELD.reset(token)


def load(path: str | Path) -> Fit[Any]:
    """Read a fit from its folder; `annotruth.load` also reads those of several questions."""
    check_path(path, "the folder of a saved fit")
    folder = Path(path)
    try:
        manifest = _read_manifest(folder)
        while True:
            try:
                return _read_fit(folder, manifest)
            except FileNotFoundError as error:
                before, manifest = manifest, _read_manifest(folder)
                if manifest == before:  # else another process has saved a fit meanwhile
                    raise _missing(folder, Path(error.filename)) from None
    except InputError:
        raise
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise InputError(
            f"the fit in {folder} cannot be read ({reason}): fit the labels again and save the fit"
        ) from None


def load_fit(fit: Any, kind: str = "") -> Fit[Any]:
    """Return a fit, or the one that is saved in a folder, of labels or of comparisons.

    Raise for sets, which cannot be updated or advised on, and for another ``kind`` than the given one.
    """
    found: Fit[Any] = fit if hasattr(fit, "kind") else load(fit)
    if found.kind == "sets":
        refuse_sets()
    if found.kind == "distributed":
        refuse_distributed()
    if kind == "labels" != found.kind:
        raise ComparisonsError(
            "this is a fit of comparisons, not of labels: use rank (`annotruth rank`)"
        )
    if kind == "comparisons" != found.kind:
        raise LabelsError("this is a fit of labels, not of comparisons: use fit (`annotruth fit`)")
    return found


def refuse_sets(*_: object, **__: object) -> NoReturn:
    """Refuse a fit of sets where one of labels or of comparisons is needed."""
    raise InputError(
        "this is a fit of sets of labels, which can be reported and evaluated, but takes no more "
        "answers and has no advice: to add answers, fit all of them again (`annotruth fit`)"
    )


def refuse_distributed(*_: object, **__: object) -> NoReturn:
    """Refuse to update or evaluate a fit whose results are not on this machine."""
    raise InputError(
        "this fit is distributed: it can be neither updated nor evaluated here; its tables are "
        "frames, and fit takes all labels again"
    )


def _read_manifest(folder: Path) -> bytes:
    path = folder / MANIFEST
    if not path.is_file():  # or a pipe, which never ends
        raise _missing(folder, path)
    return path.read_bytes()


def _missing(folder: Path, path: Path) -> InputError:
    if path.name == MANIFEST and (folder / QUESTIONS_MANIFEST).is_file():
        return InputError(
            f"{folder} holds the fits of several questions: name the folder of one, such as "
            f"{_first_question(folder)}; {QUESTIONS_MANIFEST} says which is which"
        )
    hint = (
        "name the folder of a saved fit"
        if path.name == MANIFEST
        else f"tables are not a saved fit: use {option('save')}"
    )
    return InputError(f"no saved fit in {folder}: {path} is missing; {hint}")


def _first_question(folder: Path) -> Path:
    """Return the folder of a question's fit, for a message."""
    names = (path for path in sorted(folder.glob("q*")) if (path / MANIFEST).is_file())
    return next(names, folder / "q1")


def _read_fit(folder: Path, manifest: bytes) -> Fit[Any]:
    """Return the fit that a manifest describes; files that are missing raise FileNotFoundError."""
    entries = json.loads(manifest)
    if not isinstance(entries, dict):
        raise TypeError("fit.json is not an object")
    if entries.get("format") != FORMAT:
        raise InputError(
            f"the fit in {folder} was saved in format {shown(entries['format'])}, which this "
            f"version of annotruth cannot read (it reads format {FORMAT}): fit the labels again "
            "and save the fit, or use the version that saved it"
        )
    if "files" not in entries:
        raise FileNotFoundError(errno.ENOENT, "missing", str(folder / "items.arrow"))
    check_entries(entries)
    contents = _read_files(folder, entries)
    arrays = {
        name.removeprefix(_PARAMETER): _read_array(content)
        for name, content in contents.items()
        if name.startswith(_PARAMETER) or name == COVARIANCE
    }
    names = SCHEMAS[entries.get("kind")].keys() - (OPTIONAL_TABLES - contents.keys())
    tables = {name: _read_table(contents[name]) for name in names}
    fit = make_fit(entries, tables, arrays)
    campaign = Campaign(**entries.get("campaign", {}))
    return replace(fit, further=_read_further(entries, contents), campaign=campaign)


def _read_further(
    entries: Mapping[str, Any], contents: Mapping[str, pa.Buffer]
) -> dict[str, FurtherResults]:
    found = {}
    for kind, each in entries.get("further", {}).items():
        names = further_kinds()[kind].tables
        tables = {name: _read_table(contents[f"{_FURTHER}{name}"]) for name in names}
        for name, table in tables.items():
            check_table(name, table)
        found[kind] = make_further_results(kind, each, tables)
    return found


def _read_table(content: pa.Buffer) -> pa.Table:
    return feather.read_table(pa.BufferReader(content), memory_map=False)


def _read_array(content: pa.Buffer) -> pa.Tensor:
    return pa.ipc.read_tensor(pa.BufferReader(content))


def _read_files(folder: Path, entries: Mapping[str, Any]) -> dict[str, pa.Buffer]:
    """Return the contents of the files in the manifest, by names without suffix, if unchanged."""
    if entries["checksum"] != _checksum(entries):
        raise ValueError("fit.json was changed after it was saved")
    files = entries["files"]
    if not _DATA.fullmatch(entries["data"]) or not all(map(_FILE.fullmatch, files)):
        raise ValueError("fit.json names other files than those of a fit")

    def read(name: str) -> pa.Buffer:
        content = _read_regular_file(folder / entries["data"] / name, files[name]["bytes"])
        if hashlib.sha256(content).hexdigest() != files[name]["sha256"]:
            raise ValueError(f"{name} was changed after it was saved")
        return content

    with ThreadPoolExecutor() as pool:
        contents = pool.map(read, files)
        return {Path(name).stem: each for name, each in zip(files, contents, strict=True)}


def _read_regular_file(path: Path, size: int) -> pa.Buffer:
    """Return the content of a file; raise if it is of another size, or a pipe or a device."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or size != status.st_size:
        raise ValueError(f"{path.name} was changed after it was saved")
    with pa.OSFile(str(path), "rb") as file:
        return file.read_buffer(status.st_size)
