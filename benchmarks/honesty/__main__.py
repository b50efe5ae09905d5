"""Measure whether a model claims more than its labels hold; prints Markdown tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from annotruth.models.registry import DEFAULT_MODEL
from benchmarks.honesty.calibration import calibration, misspecified
from benchmarks.honesty.chance import chance, half_chance
from benchmarks.honesty.coverage import coverage
from benchmarks.honesty.nobody_gave import nobody_gave
from benchmarks.honesty.opinions import opinions
from benchmarks.honesty.options import PartOptions, Parts, run_parts
from benchmarks.honesty.speed import speed
from benchmarks.honesty.symmetry import symmetry
from benchmarks.panel.__main__ import positive

PARTS: Parts = {
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
    run_parts(PARTS, given.parts, options, parser)
    return 0


if __name__ == "__main__":
    sys.exit(main())
