"""`annotruth fit` with and without `--memory`: peak memory, time, and equality of the results.

Every run is a separate process. The time per pass is the difference of a long and a short fit.
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

from annotruth.observations.disk import format_size, parse_size
from benchmarks import machine
from benchmarks.end_to_end import (
    COMMAND,
    LABELS_PER_ITEM,
    ProcessUsage,
    call_in_process,
    run_command,
)

ANNOTATORS = 20_000
LABELS_PER_WRITE = 10_000_000
AGREE_TO = 1e-6
OVERHEAD = 400_000_000  # bytes of Python, its libraries and annotators' parameters


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.out_of_core", description=__doc__)
    parser.add_argument("--labels", type=int, default=10_000_000, help="default: 10,000,000")
    parser.add_argument("--memory", default="500MB", help="default: 500MB")
    parser.add_argument("--model", default="gpm", help="default: gpm")
    parser.add_argument("--iterations", type=int, default=20, help="EM steps (default: 20)")
    parser.add_argument("--form", default="parquet", choices=["parquet", "csv"])
    parser.add_argument("--bounded-only", action="store_true", help="do not run without the bound")
    options = parser.parse_args()

    print(f"{machine.describe(('annotruth', 'numpy', 'pyarrow'))}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"labels.{options.form}"
        call_in_process(write, path, options.labels)
        print(f"{options.labels:,} labels, {format_size(path.stat().st_size)} of {options.form}\n")
        print(
            "| fit | seconds | on processors | seconds per pass | peak GB |\n|---|--:|--:|--:|--:|"
        )

        def print_row(name: str, *arguments: str) -> ProcessUsage:
            out = Path(folder) / name
            fixed = ["--model", options.model, "--quiet", "--format", "parquet"]
            few, many = (
                run_command(
                    [*COMMAND, str(path), "--out", str(out), *fixed, *arguments, *settings(n)]
                )
                for n in (1, 1 + options.iterations)
            )
            per_pass = (many.wall - few.wall) / options.iterations
            print(
                f"| {name} | {many.wall:.1f} | {many.processor:.1f} | {per_pass:.2f} "
                f"| {many.peak:.2f} |",
                flush=True,
            )
            return many

        bound = parse_size(options.memory)
        bounded = print_row(f"within {options.memory}", "--memory", options.memory)
        is_met = bounded.peak * 1e9 <= bound + OVERHEAD
        if not options.bounded_only:
            print_row("in memory")
        print(f"\npeak at most {format_size(bound + OVERHEAD)}: {'met' if is_met else 'NOT met'}")
        if options.bounded_only:
            return 0 if is_met else 1
        differences = {
            table: largest_difference(
                Path(folder) / f"within {options.memory}" / f"{table}.parquet",
                Path(folder) / "in memory" / f"{table}.parquet",
            )
            for table in ("items", "annotators", "labels")
        }
        is_equal = all(value <= AGREE_TO for value in differences.values())
        print(f"results {'agree' if is_equal else 'DISAGREE'} to {AGREE_TO:g}:", end=" ")
        print(", ".join(f"{name} {value:.1e}" for name, value in differences.items()))
        return 0 if is_met and is_equal else 1


def settings(n: int) -> list[str]:
    return ["--set", f"max_iter={n},tol=0"]


def write(path: Path, n: int, annotators: int = ANNOTATORS) -> None:
    """Write labels 1 to 5 of items and annotators with text ids, in several batches."""
    with open_writer(path) as file:
        for start in range(0, n, LABELS_PER_WRITE):
            size = min(LABELS_PER_WRITE, n - start)
            file.write_table(labels(size, start // LABELS_PER_ITEM, annotators))


def open_writer(path: Path) -> pa.parquet.ParquetWriter | pa.csv.CSVWriter:
    schema = pa.schema([("item", pa.string()), ("annotator", pa.string()), ("label", pa.int64())])
    writer = pa.parquet.ParquetWriter if path.suffix == ".parquet" else pa.csv.CSVWriter
    return writer(path, schema)


def labels(n: int, first_item: int, annotators: int) -> pa.Table:
    """Return labels in random order, at most one per item and annotator."""
    rng = np.random.default_rng(first_item)
    n_items = n // LABELS_PER_ITEM
    first = rng.integers(annotators, size=(n_items, 1))
    step = rng.integers(1, annotators // LABELS_PER_ITEM + 1, size=(n_items, 1))
    annotator = ((first + step * np.arange(LABELS_PER_ITEM)) % annotators).ravel()
    label = np.repeat(rng.integers(1, 6, size=n_items), LABELS_PER_ITEM)
    is_guess = rng.random(len(label)) < np.where(annotator % 10 == 0, 0.9, 0.3)
    label[is_guess] = rng.integers(1, 6, size=np.count_nonzero(is_guess))
    order = rng.permutation(len(label))
    items = pa.array([f"item-{e:08}" for e in range(first_item, first_item + n_items)])
    return pa.table(
        {
            "item": items.take(pa.array(np.repeat(np.arange(n_items), LABELS_PER_ITEM)[order])),
            "annotator": text_ids("worker", annotator[order]),
            "label": pa.array(label[order]),
        }
    )


def text_ids(prefix: str, codes: NDArray[np.int64]) -> pa.Array:
    """Return text ids of codes."""
    digits = pc.utf8_lpad(pa.array(codes).cast(pa.string()), width=5, padding="0")
    return pc.binary_join_element_wise(prefix, digits, "-")


def largest_difference(one: Path, other: Path) -> float:
    """Return the largest difference of two tables; infinity if they differ in more than numbers."""
    files = [pyarrow.parquet.ParquetFile(path) for path in (one, other)]
    if not files[0].schema_arrow.equals(files[1].schema_arrow):
        return np.inf
    largest = 0.0
    for pair in itertools.zip_longest(*(file.iter_batches(1 << 20) for file in files)):
        if None in pair or pair[0].num_rows != pair[1].num_rows:
            return np.inf
        for left, right in zip(*(batch.columns for batch in pair), strict=True):
            if pa.types.is_floating(left.type):
                gaps = np.abs(np.asarray(left) - np.asarray(right))
                largest = max(largest, float(np.nan_to_num(gaps, nan=np.inf).max(initial=0.0)))
            elif not left.equals(right):
                return np.inf
    return largest


if __name__ == "__main__":
    sys.exit(main())
