"""Compare models with few labels or irregular annotators; prints Markdown tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from annotruth.errors import InputError
from annotruth.models.registry import get_model
from benchmarks.panel import intervals, real, simulated
from benchmarks.panel.tables import FIRST_SEED, to_markdown

MODELS = (
    "robust-gpm",
    "gpm",
    "majority",
    "mean",
    "dawid-skene",
    "glad",
    "ordinal-binary",
    "ordinal-mixture",
    "subject-bias",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel", description=__doc__)
    parser.add_argument("--runs", type=positive, default=20, help="seeds per figure (default: 20)")
    parser.add_argument("--data-dir", type=Path, help="folder of real labels, to include them")
    parser.add_argument(
        "--models", type=known_models, default=MODELS, help="names, separated by commas"
    )
    options = parser.parse_args()

    last = FIRST_SEED + options.runs - 1
    print(
        f"Means over seeds {FIRST_SEED} to {last} ± standard errors, unless stated otherwise. "
        "Empty cell: the model does not estimate the quantity, or it has no value."
    )
    tables = simulated.tables() + intervals.tables()
    tables += real.tables(options.data_dir) if options.data_dir else []
    for table in tables:
        text = to_markdown(table, options.models, options.runs)
        print(f"\n## {table.title}\n\n{table.description}\n\n{text}", flush=True)
    return 0


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give a whole number of at least 1")
    return number


def known_models(text: str) -> tuple[str, ...]:
    """Parse the names of models; refuse unknown ones."""
    names = tuple(text.split(","))
    for name in names:
        try:
            get_model(name)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return names


if __name__ == "__main__":
    sys.exit(main())
