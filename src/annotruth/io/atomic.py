"""Atomic writes: a result is complete, or not there at all.

What is being written has a hidden, unique name on the same disk as its destination, so the last
step is a rename, which either happens or does not.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotruth.errors import OutputError

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_A_FOLDER = {errno.ENOTDIR, errno.EEXIST}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary file name that is renamed to ``path`` when the block succeeds.

    Missing parent folders are created. When the block fails, the temporary file and the folders
    created for it are removed, and an existing file at ``path`` stays as it was.
    """
    # As in plain writing, a link is followed: the file behind it is replaced, not the link.
    destination = Path(os.path.realpath(path))
    with _errors_reported(path), _parents_created(destination.parent):
        _check_replaceable(destination)
        temporary = destination.parent / _hidden_name(destination.suffix)
        try:
            yield temporary
            temporary.replace(destination)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_write_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary folder whose files are moved to ``folder`` when the block succeeds.

    A new folder appears at once with all its files; in an existing one, files are replaced one by
    one after all of them are written, and other files stay.
    """
    destination = Path(os.path.realpath(folder))
    with _errors_reported(folder), _parents_created(destination.parent):
        exists = destination.is_dir()
        temporary = (destination if exists else destination.parent) / _hidden_name()
        if destination.exists() and not exists:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        temporary.mkdir()
        try:
            yield temporary
            _move_files(temporary, destination)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _move_files(temporary: Path, destination: Path) -> None:
    if not destination.exists():
        try:
            temporary.rename(destination)
        except OSError:
            if not destination.is_dir():  # else another process created it meanwhile
                raise
        else:
            return
    files = sorted(temporary.iterdir())
    for file in files:
        _check_replaceable(destination / file.name)
    for file in files:
        file.replace(destination / file.name)


def _hidden_name(suffix: str = "") -> str:
    # The suffix stays, because some writers choose the format by it.
    return f".annotruth-{secrets.token_hex(8)}{suffix}"


def _check_replaceable(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        # A rename would replace a device or a pipe by a plain file.
        raise OSError(errno.EINVAL, "not a regular file", str(path))


@contextmanager
def _parents_created(folder: Path) -> Iterator[None]:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):  # not created after all, or in use by another process
                each.rmdir()
        raise


@contextmanager
def _errors_reported(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the system's errors into an `OutputError` of one line with the next step."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        text = f"cannot write {os.fspath(path)}: {reason}; {_next_step(error.errno)}"
        raise OutputError(" ".join(text.split())) from error


def _next_step(code: int | None) -> str:
    if code in _DISK_FULL:
        return "free some space or write to another disk"
    if code in _NOT_ALLOWED:
        return "choose a place that you may write to"
    if code in _NOT_A_FOLDER:
        return "a file is in the place of a folder, so choose another path"
    if code == errno.EISDIR:
        return "a folder of that name exists, so choose another name"
    if code == errno.ENAMETOOLONG:
        return "choose a shorter path"
    return "choose another path"
