"""Files in which one bit is flipped: they are read as they were, or refused in one line.

What has checksums (workbooks, pages of Parquet files that have them, saved fits) never gives other
labels. The rest may: the flipped bit can be one of a label, or of the type of a column.
"""

from __future__ import annotations

import io
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet
from tests.fuzz.checks import Failed, refused_or
from tests.fuzz.samples import SAMPLES, VOTES, to_bytes
from tests.fuzz.saved_fits import saved_fit
from tests.fuzz.tampering import data_folder

import annotruth as at

_ITEM, _ANNOTATOR, _LABEL = (list(column) for column in zip(*VOTES, strict=True))
_TABLE = pa.table({"item": _ITEM, "annotator": _ANNOTATOR, "label": _LABEL})
_SETS = _TABLE.set_column(2, "label", pa.array([["cat", label] for label in _LABEL]))
KINDS = ("parquet", "arrow", "xlsx", "sqlite", "fit")


def flipped_bit(rng: np.random.Generator, folder: Path) -> str:
    """Flip one bit of a file and read it."""
    kind = KINDS[rng.integers(len(KINDS))]
    if kind == "fit":
        return _flip_fit(rng, folder)
    name = str(rng.choice([name for name in FILES if name.endswith(kind)]))
    content = FILES[name]
    start, end = _metadata(kind, content) if rng.random() < 0.7 else (0, len(content))
    place = int(rng.integers(8 * start, 8 * end))
    path = folder / f"labels.{kind}"
    path.write_bytes(_flip(content, place))
    what = f"{name}: bit {place}"
    labels = refused_or(lambda: at.read_labels(path))
    if labels is None:
        return f"{what}: refused"
    path.write_bytes(content)
    if labels.to_arrow().equals(at.read_labels(path).to_arrow()):
        return f"{what}: the same"
    described = range(*_metadata(kind, content))
    if kind == "xlsx" or (name == "checked.parquet" and place // 8 not in described):
        raise Failed(f"{what}: other labels")
    if place // 8 in described and labels.n_labels != len(VOTES):
        raise Failed(f"{what}: {labels.n_labels} labels")
    return f"{what}: other labels"


def _flip_fit(rng: np.random.Generator, folder: Path) -> str:
    """Flip one bit of a saved fit, which must be refused."""
    source = saved_fit("gpm")
    shutil.copytree(source, folder / "fit")
    files = [folder / "fit" / "fit.json", *sorted(data_folder(folder / "fit").iterdir())]
    path = files[rng.integers(len(files))]
    content = path.read_bytes()
    place = int(rng.integers(8 * len(content)))
    path.write_bytes(_flip(content, place))
    fit = refused_or(lambda: at.load(folder / "fit"))
    what = f"{path.name}: bit {place}"
    if fit is not None and fit.summary() != at.load(source).summary():
        raise Failed(f"{what}: another fit")
    return f"{what}: {'refused' if fit is None else 'the same'}"


def _flip(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place // 8] ^= 1 << (place % 8)
    return bytes(changed)


def _metadata(kind: str, content: bytes) -> tuple[int, int]:
    """Return the first and last byte of what describes the content, and has no checksum."""
    size = len(content)
    if kind == "parquet":
        return size - 8 - int.from_bytes(content[-8:-4], "little"), size
    if kind == "xlsx":
        return int.from_bytes(content[-6:-2], "little"), size  # the central directory
    if kind == "sqlite":
        return 0, 100
    return (size - 10 - int.from_bytes(content[-10:-6], "little", signed=True), size)


def _xlsx() -> bytes:
    from openpyxl import Workbook

    book, sink = Workbook(), io.BytesIO()
    for row in (("item", "annotator", "label"), *VOTES):
        book.active.append(row)
    book.save(sink)
    return sink.getvalue()


def _sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "labels.sqlite")
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE labels (item INTEGER, annotator TEXT, label TEXT)")
            connection.executemany("INSERT INTO labels VALUES (?, ?, ?)", VOTES)
        connection.close()
        return path.read_bytes()


FILES = {
    "plain.parquet": SAMPLES["long.parquet"],
    "checked.parquet": to_bytes(parquet.write_table, _TABLE, write_page_checksum=True),
    "sets.parquet": to_bytes(parquet.write_table, _SETS),
    "plain.arrow": to_bytes(feather.write_feather, _TABLE, compression="uncompressed"),
    "zstd.arrow": to_bytes(feather.write_feather, _TABLE, compression="zstd"),
    "plain.xlsx": _xlsx(),
    "plain.sqlite": _sqlite(),
}
