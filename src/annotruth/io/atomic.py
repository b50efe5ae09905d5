"""Write aside, then rename: nobody ever sees a half-written result.

What is being written bears a hidden, unique name on the same disk as its place, so the last
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

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_FOLDER = {errno.ENOTDIR, errno.EEXIST}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hand out a temporary file name that becomes ``path`` when the block ends well.

    Missing parent folders are made. When the block fails, the file, the folders made for it
    and nothing else are removed, and what stood at ``path`` stays.
    """
    # A link is followed, as plain writing would: the file behind it is replaced, not the link.
    place = Path(os.path.realpath(path))
    with _told(path), _parents_made(place.parent):
        _check_replaceable(place)
        aside = place.parent / _hidden_name(place.suffix)
        try:
            yield aside
            aside.replace(place)
        finally:
            aside.unlink(missing_ok=True)


@contextmanager
def atomic_write_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Hand out a temporary folder whose files move into ``folder`` when the block ends well.

    A folder that is not there yet appears at once with all its files; in one that is there,
    files are replaced one by one after all of them are written, and other files stay.
    """
    place = Path(os.path.realpath(folder))
    with _told(folder), _parents_made(place.parent):
        aside = (place if place.is_dir() else place.parent) / _hidden_name()
        if place.exists() and not place.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        aside.mkdir()
        try:
            yield aside
            _move_into(place, aside)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _move_into(place: Path, aside: Path) -> None:
    if not place.exists():
        try:
            aside.rename(place)
        except OSError:
            if not place.is_dir():  # else someone else made it meanwhile
                raise
        else:
            return
    files = sorted(aside.iterdir())
    for file in files:
        _check_replaceable(place / file.name)
    for file in files:
        file.replace(place / file.name)


def _hidden_name(suffix: str = "") -> str:
    # The suffix stays, because some writers choose the format by it.
    return f".annotruth-{secrets.token_hex(8)}{suffix}"


def _check_replaceable(place: Path) -> None:
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
    if place.exists() and not place.is_file():
        # A rename would put a plain file where a device or a pipe was.
        raise OSError(errno.EINVAL, "not a regular file", str(place))


@contextmanager
def _parents_made(folder: Path) -> Iterator[None]:
    made = [part for part in (folder, *folder.parents) if not part.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for part in made:
            with suppress(OSError):  # not made after all, or in use by someone else
                part.rmdir()
        raise


@contextmanager
def _told(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system says into one line with the next step."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        text = f"cannot write {os.fspath(path)}: {reason}; {_next_step(error.errno)}"
        raise OutputError(" ".join(text.split())) from error


def _next_step(code: int | None) -> str:
    if code in _FULL:
        return "free some space or write to another disk"
    if code in _FORBIDDEN:
        return "choose a place that you may write to"
    if code in _NO_FOLDER:
        return "a folder is needed where a file stands, so choose another path"
    if code == errno.EISDIR:
        return "a folder stands there, so choose another name"
    if code == errno.ENAMETOOLONG:
        return "choose a shorter path"
    return "choose another path"
