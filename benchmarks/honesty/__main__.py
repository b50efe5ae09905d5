"""Measure whether a model claims more than its labels hold; prints Markdown tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from annotruth.errors import InputError
from annotruth.models.registry import DEFAULT_MODEL
from benchmarks.honesty.calibration import calibration, misspecified
from benchmarks.honesty.chance import chance, half_chance
from benchmarks.honesty.coverage import coverage
from benchmarks.honesty.nobody_gave import nobody_gave
from benchmarks.honesty.opinions import opinions
from benchmarks.honesty.options import PartOptions, PartTable
from benchmarks.honesty.speed import speed
from benchmarks.honesty.symmetry import symmetry
from benchmarks.panel.__main__ import positive

PARTS: dict[str, Callable[[PartOptions], list[PartTable]]] = {
    "chance": chance,
    "half-chance": half_chance,
    "calibration": calibration,
    "misspecified": misspecified,
    "opinions": opinions,
    "coverage": coverage,
    "symmetry": symmetry,
    "nobody-gave": nobody_gave,
    "speed": speed,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.honesty", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--model", default=DEFAULT_MODEL, help=f"(default: {DEFAULT_MODEL})")
    parser.add_argument("--runs", type=positive, help="runs per figure (default: by part)")
    parser.add_argument("--data-dir", type=Path, help="folder of real labels")
    parser.add_argument("--seed", type=int, default=PartOptions.seed, help="(default: %(default)s)")
    given = parser.parse_args()
    options = PartOptions(
        model=given.model, runs=given.runs, seed=given.seed, data_dir=given.data_dir
    )
    for part in given.parts:
        start = perf_counter()
        try:
            tables = PARTS[part](options)
        except InputError as error:
            parser.error(f"{part}: {error}")
        for table in tables:
            print(f"\n{table.to_markdown()}", flush=True)
        print(f"\n{part}: {perf_counter() - start:.0f} s, first seed {options.seed}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
