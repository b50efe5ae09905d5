"""The folder that a server may read, and the fits of its files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

from annotruth.api import fit, load
from annotruth.errors import (
    AnnotruthError,
    AnnotruthWarning,
    ComparisonsError,
    InputError,
    check_path,
    describe_exhaustion,
    is_url,
    messages_for,
    shown,
)
from annotruth.models.result import Fit, is_fit
from annotruth.ranking import rank

MAX_FITS = 4
"""How many fits are kept in memory; the file that was not used for longest is fitted again."""


@dataclass
class Folder:
    """A folder whose files are read and fitted; nothing outside of it is read or written."""

    root: Path
    max_size: str | None = None  # how much memory reading a file may take
    _fits: dict[Path, tuple[object, Fit[Any]]] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)  # warnings are recorded for one call at a time

    @contextmanager
    def recorded(self) -> Iterator[list[str]]:
        """Collect the warnings of one call at a time; errors of all kinds are those of annotruth."""
        lines: list[str] = []
        with (
            self._lock,
            messages_for("python"),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", AnnotruthWarning)
            try:
                yield lines
            except (MemoryError, RecursionError) as error:
                raise AnnotruthError(describe_exhaustion(error)) from None
            except OSError as error:
                raise AnnotruthError(f"{error.filename or 'a file'}: {error.strerror}") from None
            lines += dict.fromkeys(str(each.message) for each in caught)

    def existing(self, path: str) -> Path:
        """Return a file, or the folder of a saved fit, in the folder; refuse others."""
        found = self._inside(path)
        if not found.exists():
            raise InputError(f"{path}: no such file in the folder {self.root}")
        if found.is_dir() and not is_fit(found):
            raise InputError(f"{path} is a folder: name a file in it, or the folder of a saved fit")
        return found

    def new(self, path: str, suffix: str) -> Path:
        """Return the path of a new file in the folder; refuse one that exists, and other suffixes."""
        found = self._inside(path)
        if found.suffix.lower() != suffix:
            raise InputError(f"{path}: give a name that ends in {suffix}")
        if found.exists():
            raise InputError(f"{path} exists: choose another name")
        return found

    def _inside(self, path: str) -> Path:
        if is_url(path):
            raise InputError(f"{shown(path)} is a URL: only files in {self.root} are read")
        check_path(path, "the path")
        found = Path(os.path.realpath(self.root / path))  # also where links lead
        if not found.is_relative_to(self.root):
            raise InputError(
                f"{shown(path)} is not in the folder {self.root}, which this server reads"
            )
        return found

    def fitted(self, path: str, kind: str | None = None, **options: Any) -> Fit[Any]:
        """Return the last fit of a file, or fit it: with options, or if the file has changed.

        ``kind`` is "labels" or "comparisons"; without it the content decides.
        """
        file = self.existing(path)
        state = _state(file)
        kept = self._fits.pop(file, None)
        if kept is None or kept[0] != state or options or kind not in (None, kept[1].kind):
            kept = (state, self._fit(file, kind, options))
        self._fits[file] = kept
        for oldest in list(self._fits)[:-MAX_FITS]:
            del self._fits[oldest]
        return kept[1]

    def _fit(self, file: Path, kind: str | None, options: dict[str, Any]) -> Fit[Any]:
        if is_fit(file) and not options:
            found = load(file)
            if not isinstance(found, Fit):
                raise InputError(
                    f"{file.name} has the fits of several questions: name one of its folders"
                )
            return found
        options = options if is_fit(file) else {"max_size": self.max_size, **options}
        if kind == "comparisons":
            return rank(file, **options)
        try:
            made: Fit[Any] = fit(file, **options)
        except ComparisonsError:
            if kind is not None:
                raise
            return rank(file, **options)
        return made


def _state(file: Path) -> object:
    """Return what changes when a file is written again."""
    stat = (file / "fit.json" if file.is_dir() else file).stat()
    return stat.st_mtime_ns, stat.st_size
