"""The saved fits of several questions: a folder with ``questions.json`` and a saved fit per question.

The manifest names the folder of each question's fit: q1, q2, ..., never the question, which may be any
text. Saving writes the fits to new folders, replaces the manifest in one step and then removes the old
fits, so there is always one complete set. Each fit is a saved fit of its own, which can be loaded,
reported and updated.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from annotruth.errors import InputError, shown, system_errors_reported
from annotruth.io.atomic import atomic_write, folders_created, path_behind_links
from annotruth.io.system import exclusive
from annotruth.models.result import QUESTIONS_MANIFEST, Fit
from annotruth.models.storage import load
from annotruth.models.storage.folder import MANIFEST, WAIT_SECONDS
from annotruth.questions.result import KIND, QuestionFits
from annotruth.questions.sharing import Sharing

_FORMAT = 1
_LOCK = ".lock"
_FOLDER = re.compile(r"q[1-9][0-9]{0,8}")


def save_questions(fits: QuestionFits, path: str | os.PathLike[str]) -> None:
    """Write the fits of several questions to a folder; if that fails, it has the old ones."""
    folder = path_behind_links(path)
    if (folder / MANIFEST).exists():
        raise InputError(f"{path} holds a fit of one question, or tables: choose another folder")
    with (
        system_errors_reported(path),
        folders_created(folder),
        exclusive(folder / _LOCK, seconds=WAIT_SECONDS),
    ):
        try:
            _save(fits, folder)
        finally:
            _remove_unused(folder)


def _save(fits: QuestionFits, folder: Path) -> None:
    """Write the fits to new folders, and then the manifest that names them."""
    used = [int(name[1:]) for name in os.listdir(folder) if _FOLDER.fullmatch(name)]  # noqa: PTH208
    first = max(used, default=0) + 1
    names = {question: f"q{first + k}" for k, question in enumerate(fits)}
    for question, name in names.items():
        fits[question].save(folder / name)
    entries = {
        "format": _FORMAT,
        "kind": KIND,
        "questions": [{"question": each, "folder": name} for each, name in names.items()],
        "sharing": fits.sharing.to_dict(),
    }
    with atomic_write(folder / QUESTIONS_MANIFEST) as temporary:
        temporary.write_text(json.dumps(entries, indent=2) + "\n", "utf-8", newline="\n")


def _remove_unused(folder: Path) -> None:
    """Remove the fits that the manifest does not name."""
    with suppress(OSError, InputError):
        used = set(question_folders(folder).values()) if is_saved_questions(folder) else set()
        for path in folder.iterdir():
            if _FOLDER.fullmatch(path.name) and path not in used:
                shutil.rmtree(path, ignore_errors=True)


def is_saved_questions(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds the saved fits of several questions."""
    return (Path(path) / QUESTIONS_MANIFEST).is_file()


def load_questions(path: str | os.PathLike[str]) -> QuestionFits:
    """Read the fits of several questions that `QuestionFits.save` wrote."""
    folder = Path(path)
    entries = _read_manifest(folder)
    fits: dict[str, Fit] = {}
    for question, place in _folders_in(folder, entries).items():
        fit = load(place)
        if not isinstance(fit, Fit):
            raise _damaged(folder, "one of its fits is of comparisons")
        fits[question] = fit
    try:
        return QuestionFits(fits, _sharing(entries["sharing"]))
    except (LookupError, TypeError, ValueError) as error:
        raise _damaged(folder, str(error)) from None


def question_folders(path: str | os.PathLike[str]) -> dict[str, Path]:
    """Return the folder of each question's saved fit."""
    folder = Path(path)
    return _folders_in(folder, _read_manifest(folder))


def _read_manifest(folder: Path) -> Mapping[str, Any]:
    try:
        entries = json.loads((folder / QUESTIONS_MANIFEST).read_bytes())
    except FileNotFoundError:
        raise InputError(f"no saved fits of questions in {folder}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(folder, str(error)) from None
    if not isinstance(entries, dict) or entries.get("kind") != KIND:
        raise _damaged(folder, "it is no manifest of questions")
    if entries.get("format") != _FORMAT:
        raise InputError(
            f"the fits in {folder} were saved in format {shown(entries.get('format'))}, which this "
            "version of annotruth cannot read: fit the labels again and save the fits"
        )
    return entries


def _folders_in(folder: Path, entries: Mapping[str, Any]) -> dict[str, Path]:
    """Return the folder of each question; those outside of the folder are refused."""
    listed = entries.get("questions")
    if not isinstance(listed, list) or not listed:
        raise _damaged(folder, "it names no questions")
    folders: dict[str, Path] = {}
    for entry in listed:
        question = entry.get("question") if isinstance(entry, dict) else None
        name = entry.get("folder") if isinstance(entry, dict) else None
        if not isinstance(question, str) or question in folders:
            raise _damaged(folder, "a question has no name, or that of another one")
        if not isinstance(name, str) or not _FOLDER.fullmatch(name):
            raise _damaged(folder, "it names another folder than that of a question")
        folders[question] = folder / name
    return folders


def _sharing(entries: Mapping[str, Any]) -> Sharing:
    """Return what was shared, from its saved entries."""
    scores = {float(name): _number(value) for name, value in entries["scores"].items()}
    gain, error = entries["gain"], entries["error"]
    why = entries["why"]
    if not isinstance(why, str):
        raise TypeError("why is no text")
    return Sharing(
        _number(entries["strength"]),
        why,
        None if gain is None else _number(gain),
        None if error is None else _number(error),
        MappingProxyType(scores),
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{shown(value)} is no number")
    return float(value)


def _damaged(folder: Path, reason: str) -> InputError:
    return InputError(
        f"{folder / QUESTIONS_MANIFEST} cannot be read ({reason}): fit the labels again and save "
        "the fits"
    )
