"""`annotruth fit` with and without a bound on its memory: peak, time, and the same answer.

Every run is a process of its own. The time of a pass is that of more iterations over less.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from annotruth.labels.on_disk.disk import in_words, size_of
from benchmarks import machine
from benchmarks.way import COMMAND, LABELS_PER_ITEM, Run, apart, run

ANNOTATORS = 20_000
AT_ONCE = 10_000_000
AGREE_TO = 1e-6
MORE = 400_000_000  # bytes that Python, its libraries and what cannot be let go of may take on top


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--labels", type=int, default=10_000_000, help="default: 10,000,000")
    parser.add_argument("--memory", default="500MB", help="default: 500MB")
    parser.add_argument("--model", default="gpm", help="default: gpm")
    parser.add_argument("--iterations", type=int, default=20, help="EM steps (default: 20)")
    parser.add_argument("--form", default="parquet", choices=["parquet", "csv"])
    parser.add_argument("--alone", action="store_true", help="do not run without the bound")
    options = parser.parse_args()

    print(f"{machine.describe(('annotruth', 'numpy', 'numba', 'pyarrow'))}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"labels.{options.form}"
        apart(write, path, options.labels)
        print(f"{options.labels:,} labels, {in_words(path.stat().st_size)} of {options.form}\n")
        print("| fit | seconds | on processors | seconds a pass | peak GB |\n|---|--:|--:|--:|--:|")

        def fitted(name: str, *words: str) -> Run:
            out = Path(folder) / name
            of_model = ["--model", options.model, "--quiet", "--format", "parquet"]
            few, many = (
                run([*COMMAND, str(path), "--out", str(out), *of_model, *words, *settings(n)])
                for n in (1, 1 + options.iterations)
            )
            each = (many.wall - few.wall) / options.iterations
            print(
                f"| {name} | {many.wall:.1f} | {many.processor:.1f} | {each:.2f} "
                f"| {many.peak:.2f} |",
                flush=True,
            )
            return many

        bound = size_of(options.memory)
        within = fitted(f"within {options.memory}", "--memory", options.memory)
        met = within.peak * 1e9 <= bound + MORE
        if not options.alone:
            fitted("in memory")
        print(f"\npeak at most {in_words(bound + MORE)}: {'met' if met else 'NOT met'}")
        if options.alone:
            return 0 if met else 1
        differences = {
            table: difference(
                Path(folder) / f"within {options.memory}" / f"{table}.parquet",
                Path(folder) / "in memory" / f"{table}.parquet",
            )
            for table in ("items", "annotators", "labels")
        }
        agrees = all(value <= AGREE_TO for value in differences.values())
        print(f"answers {'agree' if agrees else 'DISAGREE'} to {AGREE_TO:g}:", end=" ")
        print(", ".join(f"{name} {value:.1e}" for name, value in differences.items()))
        return 0 if met and agrees else 1


def settings(n: int) -> list[str]:
    return ["--set", f"max_iter={n},tol=0"]


def write(path: Path, n: int, annotators: int = ANNOTATORS) -> None:
    """Write labels 1 to 5 of items and people named by text, some at a time."""
    with open_writer(path) as file:
        for start in range(0, n, AT_ONCE):
            some = min(AT_ONCE, n - start)
            file.write_table(labels(some, start // LABELS_PER_ITEM, annotators))


def open_writer(path: Path) -> pa.parquet.ParquetWriter | pa.csv.CSVWriter:
    names = pa.schema([("item", pa.string()), ("annotator", pa.string()), ("label", pa.int64())])
    kind = pa.parquet.ParquetWriter if path.suffix == ".parquet" else pa.csv.CSVWriter
    return kind(path, names)


def labels(n: int, first_item: int, annotators: int) -> pa.Table:
    """Labels in any order; nobody labels an item twice."""
    rng = np.random.default_rng(first_item)
    n_items = n // LABELS_PER_ITEM
    first = rng.integers(annotators, size=(n_items, 1))
    step = rng.integers(1, annotators // LABELS_PER_ITEM + 1, size=(n_items, 1))
    annotator = ((first + step * np.arange(LABELS_PER_ITEM)) % annotators).ravel()
    label = np.repeat(rng.integers(1, 6, size=n_items), LABELS_PER_ITEM)
    guessed = rng.random(len(label)) < np.where(annotator % 10 == 0, 0.9, 0.3)
    label[guessed] = rng.integers(1, 6, size=np.count_nonzero(guessed))
    order = rng.permutation(len(label))
    items = pa.array([f"item-{e:08}" for e in range(first_item, first_item + n_items)])
    return pa.table(
        {
            "item": items.take(pa.array(np.repeat(np.arange(n_items), LABELS_PER_ITEM)[order])),
            "annotator": named("worker", annotator[order]),
            "label": pa.array(label[order]),
        }
    )


def named(what: str, codes: NDArray[np.int64]) -> pa.Array:
    """Make text ids of codes."""
    digits = pc.utf8_lpad(pa.array(codes).cast(pa.string()), width=5, padding="0")
    return pc.binary_join_element_wise(what, digits, "-")


def difference(one: Path, other: Path) -> float:
    """The largest difference of two tables, infinite where they differ in more than numbers."""
    files = [pyarrow.parquet.ParquetFile(path) for path in (one, other)]
    if not files[0].schema_arrow.equals(files[1].schema_arrow):
        return np.inf
    largest = 0.0
    for pair in itertools.zip_longest(*(file.iter_batches(1 << 20) for file in files)):
        if None in pair or pair[0].num_rows != pair[1].num_rows:
            return np.inf
        for mine, theirs in zip(*(batch.columns for batch in pair), strict=True):
            if pa.types.is_floating(mine.type):
                apart = np.abs(np.asarray(mine) - np.asarray(theirs))
                largest = max(largest, float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0)))
            elif not mine.equals(theirs):
                return np.inf
    return largest


if __name__ == "__main__":
    sys.exit(main())
