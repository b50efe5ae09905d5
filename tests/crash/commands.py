"""The commands that are made to fail, what they start from, and what they may leave behind."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import annotruth as at

TEMPORARY = re.compile(r"\.annotruth-.*|data-[0-9a-f]{16}")
MINE = {"out/notes.txt": "mine", "out/mine/deep.txt": "mine", "fit/notes.txt": "mine"}


def _labels(seed: int, n_items: int) -> str:
    rows = [
        f"item {e},person {s},{'abc'[(e + (e * s + seed) % 7 // 5) % 3]}"
        for e in range(n_items)
        for s in range(6)
    ]
    return "\n".join(["item,annotator,label", *rows]) + "\n"


OLD_LABELS, NEW_LABELS = _labels(0, 8), _labels(3, 11)
MORE_LABELS = "item,annotator,label\n" + "".join(f"item {e},new,a\n" for e in range(9))

Digest = Callable[[Path], str]


def fit_digest(folder: Path) -> str:
    """Return a digest of what a saved fit holds."""
    fit = at.load(folder)
    tables = (fit.item_table(), fit.annotator_table(), fit.label_table())
    content = repr([table.to_pydict() for table in tables])
    return hashlib.sha256(content.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return a digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tables_digest(folder: Path) -> str:
    """Return a digest of the tables that ``--out`` writes."""
    names = ("annotators.csv", "fit.json", "items.csv", "labels.csv")
    return "".join(file_digest(folder / name) for name in names)


FIT: Mapping[str, Digest] = {"fit": fit_digest}
REPORT: Mapping[str, Digest] = {"report.html": file_digest}


@dataclass(frozen=True)
class Command:
    """A command, and the digest of each of its outputs."""

    words: tuple[str, ...]
    outputs: Mapping[str, Digest]


FIT_WORDS = (
    "fit", "new.csv", "--model", "gpm", "--out", "out", "--save", "fit", "--report", "report.html",
    "--soft", "soft.csv", "--keep", "keep.csv", "--force",
)  # fmt: skip

COMMANDS = {
    "update": Command(("update", "fit", "more.csv"), FIT),
    "fit": Command(
        FIT_WORDS,
        {
            "out": tables_digest,
            **FIT,
            **REPORT,
            "soft.csv": file_digest,
            "keep.csv": file_digest,
        },
    ),
    "next": Command(("next", "fit", "--out", "book.xlsx", "--force"), {"book.xlsx": file_digest}),
    "report": Command(("report", "fit", "--report", "report.html"), REPORT),
}
FIRST = ("fit", "old.csv", *FIT_WORDS[2:])
"""The command that makes what the others start from."""


def write_inputs(folder: Path) -> None:
    """Write the labels, and files of somebody else in the folders that commands write to."""
    inputs = {"old.csv": OLD_LABELS, "new.csv": NEW_LABELS, "more.csv": MORE_LABELS}
    for name, text in {**inputs, **MINE}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def digests(command: Command, folder: Path) -> dict[str, str]:
    """Return the digest of each output, or what is wrong with it."""
    found = {}
    for name, digest in command.outputs.items():
        try:
            found[name] = digest(folder / name)
        except (OSError, at.AnnotruthError) as error:
            found[name] = f"unusable: {error}"
    return found


def violations(command: Command, folder: Path, *allowed: Mapping[str, str]) -> list[str]:
    """Return the outputs that are none of the allowed ones, and others' files that changed."""
    found = [
        f"{name} is neither the old nor the new one ({digest[:200]})"
        for name, digest in digests(command, folder).items()
        if digest not in {each[name] for each in allowed}
    ]
    for name, text in MINE.items():
        if not (folder / name).is_file() or (folder / name).read_text() != text:
            found.append(f"{name} of somebody else is lost or changed")
    return found


def leftovers(folder: Path) -> list[str]:
    """Return the temporary files and folders, apart from the data of the saved fit."""
    paths = [path for path in folder.rglob("*") if TEMPORARY.fullmatch(path.name)]
    data = [path for path in paths if path.parent == folder / "fit"]
    extra = [path for path in paths if path not in data]
    return sorted(str(path.relative_to(folder)) for path in [*extra, *data[1:]])


def restore(template: Path, folder: Path) -> None:
    """Make a folder a copy of another one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder, symlinks=True)
