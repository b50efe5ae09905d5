"""Generated tables, written to files, whose counts are computed here by plain Python."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet
from tests.fuzz.checks import Failed, expect_counts, refused_or, run_command

import annotruth as at

Row = tuple[str, str, str]

IDS: tuple[Callable[[int], str], ...] = (
    lambda n: f"i{n}",
    str,
    lambda n: f"{n:05d}",
    lambda n: f"-{n}",
    lambda n: f"{n}.0",
    lambda n: f'row {n}, "quoted"',
    lambda n: f"línea\n{n}",
    lambda n: f"日本{n}",
    lambda n: f"👍🏽{n}",
    lambda n: f"=1+{n}",
    lambda n: f"\x1b[31m{n}",
    lambda n: f"{'x' * 300}{n}",
    lambda n: f" {n} ",
    lambda n: f"a\tb{n}",
    lambda n: f"e\u0301{n}" if n % 2 else f"é{n - 1}",
    lambda n: f"nan{n}",
    lambda n: f"{n}e3",
    lambda n: f"{10**20 + n}",
)
LABELS: tuple[tuple[str, ...], ...] = (
    ("cat", "dog", "bird"),
    ("1", "2", "3", "4", "5"),
    ("-1", "0", "1"),
    ("0.5", "1.5", "2.5"),
    ("yes", "no"),
    ("true", "false"),
    ("bad", "fair", "good", "=SUM(A1)", "é"),
)
EMPTY = ("", " ", "nan", "NaN", "  ")


def draw_rows(rng: np.random.Generator) -> list[Row]:
    """Return rows, some without a label, some that repeat an item and annotator."""
    item, annotator = (IDS[rng.integers(len(IDS))] for _ in range(2))
    labels = LABELS[rng.integers(len(LABELS))]
    n_items, n_annotators = int(rng.integers(1, 30)), int(rng.integers(1, 12))
    share_empty = rng.choice([0.0, 0.0, 0.1, 0.9])
    may_repeat = rng.random() < 0.3
    rows, seen = [], set()
    for _ in range(int(rng.integers(1, 120))):
        e, s = int(rng.integers(n_items)), int(rng.integers(n_annotators))
        if (e, s) in seen and not may_repeat:
            continue
        seen.add((e, s))
        label = labels[rng.integers(len(labels))]
        if rng.random() < share_empty:
            label = EMPTY[rng.integers(len(EMPTY))]
        rows.append((item(e), annotator(s), label))
    return rows


def count(rows: list[Row], duplicates: str) -> dict[str, int] | None:
    """Return the numbers that a reader must find; None if it must refuse the rows."""
    kept = [row for row in rows if row[2].strip().lower() not in ("", "nan")]
    pairs = [(item, annotator) for item, annotator, _ in kept]
    n_labels = len(kept) if duplicates == "keep" else len(set(pairs))
    if not kept or (duplicates == "refuse" and len(set(pairs)) < len(set(kept))):
        return None
    return {
        "n_items": len({item for item, _ in pairs}),
        "n_annotators": len({annotator for _, annotator in pairs}),
        "n_labels": n_labels,
        "n_dropped": len(rows) - len(kept),
    }


def counted_table(rng: np.random.Generator, folder: Path) -> str:
    """Fit a generated table and compare its counts."""
    rows = draw_rows(rng)
    names = NAMES[rng.integers(len(NAMES))]
    write = WRITERS[rng.integers(len(WRITERS))]
    path = write(rows, names, folder, rng)
    duplicates = str(rng.choice(["refuse", "keep", "last"]))
    expected = count(rows, duplicates)
    what = f"{path.name} of {len(rows)} rows as {names}, duplicates {duplicates}"
    options = ["--duplicates", duplicates]
    if names not in NAMES[:3]:
        roles = ("item", "annotator", "label")
        options += ["--columns", ",".join(f"{r}={n}" for r, n in zip(roles, names, strict=True))]
    model = str(rng.choice(["majority"] * 8 + ["gpm", "robust-gpm"]))
    done = run_command("fit", str(path), "--model", model, "--json", *options)
    if expected is None:
        if done.code != 2:
            raise Failed(f"{what}: exit code {done.code}, not refused")
        return what
    if done.code:
        raise Failed(f"{what}: refused: {done.err}")
    found = json.loads(done.out)
    n_dropped = expected.pop("n_dropped")
    expect_counts(found, expected)
    read = refused_or(
        lambda: at.read_labels(
            path,
            duplicates=duplicates,
            columns=None if names in NAMES[:3] else dict(zip(NAMES[0], names, strict=True)),
        )
    )
    expect_counts({"n_dropped": read.n_dropped}, {"n_dropped": n_dropped})
    check_ids(read, rows)
    return what


_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)(\.0+)?")


def check_ids(labels: Any, rows: list[Row]) -> None:
    """Raise unless the ids are those that were written, in order of first appearance."""
    kept = [row for row in rows if row[2].strip().lower() not in ("", "nan")]
    for role, ids in enumerate((labels.items, labels.annotators)):
        expected = list(dict.fromkeys(row[role] for row in kept))
        whole = expected
        if all(_WHOLE.fullmatch(value) for value in expected):  # in a CSV, 1.0 is 1
            whole = list(dict.fromkeys(value.partition(".")[0] for value in expected))
        found = [str(value) for value in ids.to_pylist()]
        if found not in (expected, whole) and not pa.types.is_floating(ids.type):
            raise Failed(f"wrong ids: {found[:5]} instead of {expected[:5]}")


NAMES: tuple[tuple[str, str, str], ...] = (
    ("item", "annotator", "label"),
    ("task", "worker", "label"),
    ("item", "annotator", "label"),
    ("Ding", "Wer wo", "Wért"),
)


def _csv(separator: str) -> Callable[[list[Row], tuple[str, str, str]], str]:
    def make(rows: list[Row], names: tuple[str, str, str]) -> str:
        text = io.StringIO()
        writer = csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL)
        writer.writerow(names)
        writer.writerows(rows)
        return text.getvalue()

    return make


def _write_csv(rows: list[Row], names: Any, folder: Path, rng: np.random.Generator) -> Path:
    separator, suffix = ((",", "csv"), ("\t", "tsv"), (";", "csv"))[rng.integers(3)]
    content = _csv(separator)(rows, names).encode()
    if rng.random() < 0.2:
        content = b"\xef\xbb\xbf" + content
    path = folder / f"labels.{suffix}"
    if rng.random() < 0.2:
        path, content = folder / f"labels.{suffix}.gz", gzip.compress(content)
    path.write_bytes(content)
    return path


def _write_lines(rows: list[Row], names: Any, folder: Path, rng: np.random.Generator) -> Path:
    path = folder / "labels.jsonl"
    records = [dict(zip(names, row, strict=True)) for row in rows]
    ascii_only = bool(rng.integers(2))
    lines = [json.dumps(entry, ensure_ascii=ascii_only) for entry in records]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _table(rows: list[Row], names: Any, rng: np.random.Generator) -> pa.Table:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    for place in range(3):
        kind = rng.integers(4)
        if kind == 1:
            columns[place] = columns[place].dictionary_encode()
        elif kind == 2:
            columns[place] = columns[place].cast(pa.large_string())
    return pa.table(columns, names=list(names))


def _write_parquet(rows: list[Row], names: Any, folder: Path, rng: np.random.Generator) -> Path:
    path = folder / "labels.parquet"
    parquet.write_table(_table(rows, names, rng), path, row_group_size=int(rng.integers(1, 60)))
    return path


def _write_arrow(rows: list[Row], names: Any, folder: Path, rng: np.random.Generator) -> Path:
    path = folder / ("labels.feather" if rng.integers(2) else "labels.arrow")
    feather.write_feather(_table(rows, names, rng), str(path), chunksize=int(rng.integers(1, 60)))
    return path


WRITERS = (_write_csv, _write_csv, _write_lines, _write_parquet, _write_arrow)
