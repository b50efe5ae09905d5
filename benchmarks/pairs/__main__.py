"""Measure models of pair comparisons; prints Markdown tables, with missed targets in bold."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from annotruth.models.pairs.registry import DEFAULT_PAIR_MODEL, PAIR_MODELS
from benchmarks import machine
from benchmarks.honesty.options import PartOptions, Parts, run_parts
from benchmarks.pairs.coverage import coverage
from benchmarks.pairs.held_out import held_out
from benchmarks.pairs.next_votes import next_votes
from benchmarks.pairs.passage import passage
from benchmarks.pairs.prompts import PROMPT_PARTS
from benchmarks.pairs.speed import speed
from benchmarks.panel.__main__ import positive

PARTS: Parts = {
    "passage": passage,
    "held-out": held_out,
    "coverage": coverage,
    "next": next_votes,
    **PROMPT_PARTS,
    "speed": speed,
}
PACKAGES = ("annotruth", "numpy", "evalica")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder of the public sets")
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="can be repeated (default: all)"
    )
    parser.add_argument("--model", default=DEFAULT_PAIR_MODEL, choices=PAIR_MODELS)
    parser.add_argument("--runs", type=positive, help="seeds per figure (default: by part)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    given = parser.parse_args(arguments)
    options = PartOptions(
        model=given.model, runs=given.runs, seed=given.seed, data_dir=given.data_dir
    )
    print(machine.describe(PACKAGES))
    run_parts(PARTS, given.part or PARTS, options, parser)
    return 0


if __name__ == "__main__":
    sys.exit(main())
