"""The way in and out: `annotruth fit` on a large file beside the column libraries, and its start.

The libraries read the file and turn its three columns of text into codes and distinct values;
the command does that too, fits, and writes three tables. Every run is a process of its own.
Besides the time on the wall stands that on the processors, which other work on the machine
disturbs less.
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
WORDS = ["awful", "bad", "fair", "good", "great"]
SMALL = 5_000
PACKAGES = ("annotruth", "numpy", "numba", "pyarrow", "polars", "duckdb", "pandas")
MOST = 3  # the command may take so many times the fastest library, and its start pandas' own
FIRST_RUN = 10.0  # seconds, with nothing compiled yet

COMMAND = [sys.executable, "-c", "from annotruth.app.cli import main; main()", "fit"]


@dataclass(frozen=True)
class Run:
    """What a process took."""

    wall: float
    processor: float
    peak: float  # gigabytes
    said: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.way", description=__doc__)
    parser.add_argument("--labels", type=int, default=10_000_000, help="default: 10,000,000")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--iterations", type=int, default=20, help="EM steps (default: 20)")
    options = parser.parse_args()

    print(f"{machine.describe(PACKAGES)}\n")
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        apart(write, small, SMALL)
        start(small.with_suffix(".csv"), options.rounds)
        apart(write, large, options.labels)
        for form in ("parquet", "csv"):
            path = large.with_suffix(f".{form}")
            way(path, options.labels, options.rounds, options.iterations)
    return 0


def apart(do: Callable[..., None], *arguments: object) -> None:
    """Do something in a process of its own, such as writing labels to files.

    The peak of a process counts from that of the one it was forked from, so this one stays small.
    """
    process = multiprocessing.get_context("spawn").Process(target=do, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{do.__name__} failed")


def write(path: Path, n_labels: int) -> None:
    table = labels(n_labels)
    pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
    pyarrow.csv.write_csv(table, path.with_suffix(".csv"))


def labels(n: int, seed: int = 0) -> pa.Table:
    """Labels in any order, with text for ids; nobody labels an item twice."""
    rng = np.random.default_rng(seed)
    n_items = max(1, n // LABELS_PER_ITEM)
    people = min(ANNOTATORS, max(LABELS_PER_ITEM, n // 50))
    first = rng.integers(people, size=(n_items, 1))
    step = rng.integers(1, people // LABELS_PER_ITEM + 1, size=(n_items, 1))
    annotator = ((first + step * np.arange(LABELS_PER_ITEM)) % people).ravel()
    item = np.repeat(np.arange(n_items), LABELS_PER_ITEM)
    label = np.repeat(rng.integers(len(WORDS), size=n_items), LABELS_PER_ITEM)
    guessed = rng.random(len(label)) < 0.3
    label[guessed] = rng.integers(len(WORDS), size=np.count_nonzero(guessed))
    order = rng.permutation(len(item))
    ids = {
        "item": (pa.array([f"item-{e:07}" for e in range(n_items)]), item),
        "annotator": (pa.array([f"worker-{s:05}" for s in range(people)]), annotator),
        "label": (pa.array(WORDS), label),
    }
    return pa.table({name: words.take(pa.array(at[order])) for name, (words, at) in ids.items()})


def start(small: Path, rounds: int) -> None:
    """Print how soon a small file is fitted, beside the import of pandas."""
    compile_package()
    with tempfile.TemporaryDirectory() as cache:
        first = run([*COMMAND, str(small)], {"NUMBA_CACHE_DIR": cache})
    fit, gpm, pandas = alternately(
        rounds,
        lambda: run([*COMMAND, str(small)]),
        lambda: run([*COMMAND, str(small), "--model", "gpm"]),
        lambda: run([sys.executable, "-c", "import pandas"]),
    )
    print(f"A file of {SMALL:,} labels, and the import of pandas\n")
    print("| what | seconds | on processors | of pandas | peak GB |\n|---|--:|--:|--:|--:|")
    for name, one in (
        ("fit, nothing compiled yet", first),
        ("fit", fit),
        ("fit --model gpm", gpm),
        ("import pandas", pandas),
    ):
        ratio = one.wall / pandas.wall
        print(f"| {name} | {one.wall:.2f} | {one.processor:.2f} | {ratio:.2f} | {one.peak:.2f} |")
    met = fit.wall <= MOST * pandas.wall
    print(f"\nfit / import pandas at most {MOST}: {'met' if met else 'NOT met'};", end=" ")
    print(f"first run under {FIRST_RUN:g} s: {'met' if first.wall < FIRST_RUN else 'NOT met'}\n")


def compile_package() -> None:
    """Write our bytecode, as the installation of a package does: that of pandas is there too."""
    spec = importlib.util.find_spec("annotruth")
    assert spec is not None
    for folder in spec.submodule_search_locations or ():
        compileall.compile_dir(folder, quiet=1)


def way(path: Path, n_labels: int, rounds: int, iterations: int) -> None:
    """Print the whole command beside the libraries, with the passes over the labels apart."""
    forms = ("parquet", "csv")

    def command(form: str, max_iter: int) -> Callable[[], Run]:
        out = path.parent / f"{form}-{max_iter}"
        options = [
            "--model",
            "gpm",
            "--set",
            f"max_iter={max_iter},tol=0",
            "--out",
            str(out),
            "--format",
            form,
        ]
        return lambda: run([*COMMAND, str(path), "--quiet", *options])

    best = alternately(
        rounds,
        *(library(name, path) for name in LIBRARIES),
        *(command(form, count) for form in forms for count in (1, 1 + iterations)),
    )
    libraries = dict(zip(LIBRARIES, best, strict=False))
    fits = best[len(LIBRARIES) :]
    fastest = min(libraries.values(), key=lambda one: one.wall)

    print(f"{n_labels:,} labels in {path.name}\n")
    print("| what | seconds | on processors | of the fastest library | peak GB |")
    print("|---|--:|--:|--:|--:|")
    for name, one in libraries.items():
        print(line(f"{name}: read and encode", one, fastest))
    for form, one, more in zip(forms, fits[::2], fits[1::2], strict=True):
        print(line(f"annotruth fit, {form} out, 1 + {iterations} iterations", more, fastest))
        print(line(f"annotruth fit, {form} out, 1 iteration", one, fastest))
        print(
            f"| {iterations} iterations | {more.wall - one.wall:.2f} "
            f"| {more.processor - one.processor:.2f} | | |"
        )
    ratio = fits[0].wall / fastest.wall
    on_processors = fits[0].processor / min(one.processor for one in libraries.values())
    print(f"\nWithout the iterations, Parquet out: {ratio:.2f} of the fastest library", end=", ")
    print(f"on processors {on_processors:.2f}", end="; ")
    print(f"at most {MOST}: {'met' if ratio <= MOST else 'NOT met'}\n")


def library(name: str, path: Path) -> Callable[[], Run]:
    def sample() -> Run:
        whole = run([sys.executable, "-m", "benchmarks.encoding", name, str(path)])
        wall, processor = map(float, whole.said.split())
        return Run(wall, processor, whole.peak)

    return sample


def line(name: str, one: Run, fastest: Run) -> str:
    return (
        f"| {name} | {one.wall:.2f} | {one.processor:.2f} "
        f"| {one.wall / fastest.wall:.2f} | {one.peak:.2f} |"
    )


def alternately(rounds: int, *samples: Callable[[], Run]) -> list[Run]:
    """Measure all in turn, after one turn to warm up, and keep the least each has taken."""
    taken = [[sample() for sample in samples] for _ in range(1 + rounds)][1:]
    return [
        Run(
            min(one.wall for one in runs),
            min(one.processor for one in runs),
            max(one.peak for one in runs),
        )
        for runs in zip(*taken, strict=True)
    ]


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> Run:
    """Run a command to its end."""
    began = perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=subprocess.PIPE, env={**os.environ, **(environment or {})}
        )
        assert process.stderr is not None
        complaint = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = perf_counter() - began
        if process.returncode:
            raise SystemExit(complaint.decode())
        said.seek(0)
        text = said.read().decode()
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Run(wall, used.ru_utime + used.ru_stime, kilobytes / 1e6, text)


if __name__ == "__main__":
    sys.exit(main())
