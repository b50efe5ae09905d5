"""Measure what models say about people against what is known of them; prints Markdown tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from annotruth.errors import InputError
from benchmarks import machine
from benchmarks.honesty.options import PartTable
from benchmarks.panel.__main__ import known_models, positive
from benchmarks.people.genuine import genuine
from benchmarks.people.injected import injected
from benchmarks.people.options import PeopleOptions, records
from benchmarks.people.stability import stability
from benchmarks.people.truth import truth
from benchmarks.truth.__main__ import names

PARTS: dict[str, Callable[[PeopleOptions], list[PartTable]]] = {
    "truth": truth,
    "genuine": genuine,
    "injected": injected,
    "stability": stability,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of label sets")
    parser.add_argument(
        "--part", choices=PARTS, action="append", help="may be repeated (default: all)"
    )
    parser.add_argument("--models", type=known_models, help="separated by commas")
    parser.add_argument("--sets", type=names, help="separated by commas (default: by part)")
    parser.add_argument("--runs", type=positive, help="runs per figure (default: by part)")
    parser.add_argument(
        "--seed", type=int, default=PeopleOptions.seed, help="(default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="file for all figures")
    given = parser.parse_args(arguments)
    options = PeopleOptions(
        data_dir=given.data_dir,
        models=given.models,
        sets=given.sets,
        runs=given.runs,
        seed=given.seed,
    )
    if not given.data_dir.is_dir():
        parser.error(f"no folder {given.data_dir}")
    print(machine.describe())
    written = {}
    for name in given.part or PARTS:
        start = perf_counter()
        try:
            tables = PARTS[name](options)
        except InputError as error:
            parser.error(f"{name}: {error}")
        for table in tables:
            print(f"\n{table.to_markdown()}", flush=True)
            written[table.title] = list(records(table))
        print(f"\n{name}: {perf_counter() - start:.0f} s, first seed {options.seed}", flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
