"""`annotruth fit` from file to files, compared with libraries that only read and encode the file.

The libraries read the file and turn its three text columns into codes and distinct values; the
command does the same, fits, and writes three tables. The start-up of the command is compared with
the import of pandas. Every run is a separate process. Wall time is shown with processor time,
which depends less on other load.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks import machine
from benchmarks.encoding import LIBRARIES

ANNOTATORS = 20_000
LABELS_PER_ITEM = 10
CATEGORIES = ["awful", "bad", "fair", "good", "great"]
N_SMALL = 5_000
PACKAGES = ("annotruth", "numpy", "pyarrow", "polars", "duckdb", "pandas")
MAX_RATIO = 2.5  # to the fastest library, and of the start-up to the import of pandas

COMMAND = [sys.executable, "-c", "from annotruth.app.cli import main; main()", "fit"]


@dataclass(frozen=True)
class ProcessUsage:
    """Time and memory of a process, and what it printed."""

    wall: float
    processor: float
    peak: float  # gigabytes
    stdout: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.end_to_end", description=__doc__)
    parser.add_argument("--labels", type=int, default=10_000_000, help="default: 10,000,000")
    parser.add_argument("--rounds", type=int, default=3, help="runs per contender (default: 3)")
    parser.add_argument("--iterations", type=int, default=20, help="EM steps (default: 20)")
    options = parser.parse_args()

    print(f"{machine.describe(PACKAGES)}\n")
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        call_in_process(write, small, N_SMALL)
        print_start_up(small.with_suffix(".csv"), options.rounds)
        call_in_process(write, large, options.labels)
        for form in ("parquet", "csv"):
            path = large.with_suffix(f".{form}")
            print_comparison(path, options.labels, options.rounds, options.iterations)
    return 0


def call_in_process(function: Callable[..., None], *arguments: object) -> None:
    """Call a function in a separate process, such as one that writes labels to files.

    The peak memory of a process starts at that of its parent, so this process has to stay small.
    """
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{function.__name__} failed")


def write(path: Path, n_labels: int) -> None:
    table = labels(n_labels)
    pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
    pyarrow.csv.write_csv(table, path.with_suffix(".csv"))


def labels(n: int, seed: int = 0) -> pa.Table:
    """Return labels with text ids in random order, at most one per item and annotator."""
    rng = np.random.default_rng(seed)
    n_items = max(1, n // LABELS_PER_ITEM)
    n_annotators = min(ANNOTATORS, max(LABELS_PER_ITEM, n // 50))
    first = rng.integers(n_annotators, size=(n_items, 1))
    step = rng.integers(1, n_annotators // LABELS_PER_ITEM + 1, size=(n_items, 1))
    annotator = ((first + step * np.arange(LABELS_PER_ITEM)) % n_annotators).ravel()
    item = np.repeat(np.arange(n_items), LABELS_PER_ITEM)
    label = np.repeat(rng.integers(len(CATEGORIES), size=n_items), LABELS_PER_ITEM)
    is_guess = rng.random(len(label)) < 0.3
    label[is_guess] = rng.integers(len(CATEGORIES), size=np.count_nonzero(is_guess))
    order = rng.permutation(len(item))
    columns = {
        "item": (pa.array([f"item-{e:07}" for e in range(n_items)]), item),
        "annotator": (pa.array([f"worker-{s:05}" for s in range(n_annotators)]), annotator),
        "label": (pa.array(CATEGORIES), label),
    }
    return pa.table(
        {name: ids.take(pa.array(codes[order])) for name, (ids, codes) in columns.items()}
    )


def print_start_up(small: Path, rounds: int) -> None:
    """Print the time to fit a small file, compared with the import of pandas."""
    compile_package()
    fit, gpm, pandas = measure_in_turn(
        rounds,
        lambda: run_command([*COMMAND, str(small)]),
        lambda: run_command([*COMMAND, str(small), "--model", "gpm"]),
        lambda: run_command([sys.executable, "-c", "import pandas"]),
    )
    print(f"A file of {N_SMALL:,} labels, and the import of pandas\n")
    print("| command | seconds | on processors | of pandas | peak GB |\n|---|--:|--:|--:|--:|")
    for name, usage in (
        ("fit", fit),
        ("fit --model gpm", gpm),
        ("import pandas", pandas),
    ):
        print(
            f"| {name} | {usage.wall:.2f} | {usage.processor:.2f} "
            f"| {usage.wall / pandas.wall:.2f} | {usage.peak:.2f} |"
        )
    is_met = fit.wall <= MAX_RATIO * pandas.wall
    print(f"\nfit / import pandas at most {MAX_RATIO}: {'met' if is_met else 'NOT met'}\n")


def compile_package() -> None:
    """Compile annotruth to bytecode, as installing it does; pandas is compiled already."""
    spec = importlib.util.find_spec("annotruth")
    assert spec is not None
    for folder in spec.submodule_search_locations or ():
        compileall.compile_dir(folder, quiet=1)


def print_comparison(path: Path, n_labels: int, rounds: int, iterations: int) -> None:
    """Print the time of the command and of the libraries, and that of the iterations."""
    formats = ("parquet", "csv")

    def command(format_: str, max_iter: int) -> Callable[[], ProcessUsage]:
        out = path.parent / f"{format_}-{max_iter}"
        options = [
            "--model",
            "gpm",
            "--set",
            f"max_iter={max_iter},tol=0",
            "--out",
            str(out),
            "--format",
            format_,
        ]
        return lambda: run_command([*COMMAND, str(path), "--quiet", *options])

    best = measure_in_turn(
        rounds,
        *(library(name, path) for name in LIBRARIES),
        *(command(format_, count) for format_ in formats for count in (1, 1 + iterations)),
    )
    libraries = dict(zip(LIBRARIES, best, strict=False))
    fits = best[len(LIBRARIES) :]
    fastest = min(libraries.values(), key=lambda usage: usage.wall)

    print(f"{n_labels:,} labels in {path.name}\n")
    print("| command | seconds | on processors | of the fastest library | peak GB |")
    print("|---|--:|--:|--:|--:|")
    for name, usage in libraries.items():
        print(table_row(f"{name}: read and encode", usage, fastest))
    for format_, short, long in zip(formats, fits[::2], fits[1::2], strict=True):
        name = f"annotruth fit, {format_} out"
        print(table_row(f"{name}, 1 + {iterations} iterations", long, fastest))
        print(table_row(f"{name}, 1 iteration", short, fastest))
        print(
            f"| {iterations} iterations | {long.wall - short.wall:.2f} "
            f"| {long.processor - short.processor:.2f} | | |"
        )
    ratio = fits[0].wall / fastest.wall
    on_processors = fits[0].processor / min(usage.processor for usage in libraries.values())
    print(f"\nWithout the iterations, Parquet out: {ratio:.2f} of the fastest library", end=", ")
    print(f"on processors {on_processors:.2f}", end="; ")
    print(f"at most {MAX_RATIO}: {'met' if ratio <= MAX_RATIO else 'NOT met'}\n")


def library(name: str, path: Path) -> Callable[[], ProcessUsage]:
    """Return a measurement of reading and encoding a file with a library."""

    def sample() -> ProcessUsage:
        usage = run_command([sys.executable, "-m", "benchmarks.encoding", name, str(path)])
        wall, processor = map(float, usage.stdout.split())
        return ProcessUsage(wall, processor, usage.peak)

    return sample


def table_row(name: str, usage: ProcessUsage, fastest: ProcessUsage) -> str:
    return (
        f"| {name} | {usage.wall:.2f} | {usage.processor:.2f} "
        f"| {usage.wall / fastest.wall:.2f} | {usage.peak:.2f} |"
    )


def measure_in_turn(rounds: int, *samples: Callable[[], ProcessUsage]) -> list[ProcessUsage]:
    """Measure all in turn, after one round to warm up; return the shortest times of each."""
    measured = [[sample() for sample in samples] for _ in range(1 + rounds)][1:]
    return [
        ProcessUsage(
            min(usage.wall for usage in runs),
            min(usage.processor for usage in runs),
            max(usage.peak for usage in runs),
        )
        for runs in zip(*measured, strict=True)
    ]


def run_command(command: Sequence[str]) -> ProcessUsage:
    """Run a command and return its time, peak memory and output."""
    start_time = perf_counter()
    with tempfile.TemporaryFile() as stdout:
        process = subprocess.Popen(
            command,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        error = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = perf_counter() - start_time
        if process.returncode:
            raise SystemExit(error.decode())
        stdout.seek(0)
        text = stdout.read().decode()
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return ProcessUsage(wall, used.ru_utime + used.ru_stime, kilobytes / 1e6, text)


if __name__ == "__main__":
    sys.exit(main())
