"""Compare models where labels are few or annotators misbehave: one Markdown table a part."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from annotruth.errors import InputError
from annotruth.models.registry import get_model
from benchmarks.panel import intervals, real, simulated
from benchmarks.panel.parts import FIRST_SEED, to_markdown

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
    parser.add_argument("--runs", type=count, default=20, help="seeds a figure (default: 20)")
    parser.add_argument("--data-dir", type=Path, help="folder of real labels, to add their parts")
    parser.add_argument(
        "--models", type=known_models, default=MODELS, help="names with commas between"
    )
    options = parser.parse_args()

    last = FIRST_SEED + options.runs - 1
    print(
        f"Means over seeds {FIRST_SEED} to {last} ± standard errors, unless a part says otherwise. "
        "An empty cell: the model does not give the quantity, or it has no value."
    )
    parts = simulated.parts() + intervals.parts()
    parts += real.parts(options.data_dir) if options.data_dir else []
    for part in parts:
        table = to_markdown(part, options.models, options.runs)
        print(f"\n## {part.title}\n\n{part.about}\n\n{table}", flush=True)
    return 0


def count(text: str) -> int:
    """Read a whole number from 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give a whole number from 1")
    return number


def known_models(text: str) -> tuple[str, ...]:
    """Read the names of models, refusing those there are not."""
    names = tuple(text.split(","))
    for name in names:
        try:
            get_model(name)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return names


if __name__ == "__main__":
    sys.exit(main())
