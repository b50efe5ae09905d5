"""Measure fits with groups of annotators; prints Markdown tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from annotruth.errors import InputError
from benchmarks.groups.real import false_discoveries, held_out_labels, real_groups
from benchmarks.groups.simulated import group_accuracy, minority
from benchmarks.panel.__main__ import positive


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument(
        "--runs", type=positive, default=5, help="simulated crowds per row (default: 5)"
    )
    parser.add_argument(
        "--permutations", type=positive, default=100, help="permuted traits (default: 100)"
    )
    parser.add_argument("--data-dir", type=Path, help="folder with groups-offensiveness in it")
    given = parser.parse_args()
    start = perf_counter()
    parts = [group_accuracy(given.runs), minority(given.runs)]
    for part in parts:
        print(f"\n{part}", flush=True)
    if given.data_dir is not None:
        folder = given.data_dir / "groups-offensiveness"
        if not folder.is_dir():
            raise InputError(f"{folder} is not there: name the folder that holds it (`--data-dir`)")
        for text in (
            real_groups(folder),
            held_out_labels(folder),
            false_discoveries(folder, given.permutations),
        ):
            print(f"\n{text}", flush=True)
    print(f"\n{perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
