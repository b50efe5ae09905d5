"""Measure what models say about people against what is known of them; prints Markdown tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from annotruth.errors import InputError
from annotruth.models.registry import DEFAULT_MODEL
from benchmarks import machine
from benchmarks.honesty.options import PartTable
from benchmarks.pages import replace_tables
from benchmarks.panel.__main__ import known_models, positive
from benchmarks.people.genuine import genuine
from benchmarks.people.injected import injected
from benchmarks.people.options import PeopleOptions, records
from benchmarks.people.stability import N_WEEKS, REMOVED, stability
from benchmarks.people.truth import truth
from benchmarks.truth.__main__ import names

PARTS: dict[str, Callable[[PeopleOptions], list[PartTable]]] = {
    "truth": truth,
    "genuine": genuine,
    "injected": injected,
    "stability": stability,
}

DOCS = {
    "ranks": "Rank correlation with real accuracy",
    "flags": f"Flags: {DEFAULT_MODEL}",
    "intervals": f"Interval of the accuracy: {DEFAULT_MODEL}",
    "genuine": "Genuine raters",
    "added": f"Added people: {DEFAULT_MODEL}",
    "removed": f"{REMOVED:.0%} of the labels removed: {DEFAULT_MODEL}",
    "campaign": f"A campaign of {N_WEEKS} weeks: {DEFAULT_MODEL}",
}
"""The tables of docs/fairness.md by place, and their titles."""


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
    parser.add_argument(
        "--docs", type=Path, help="docs folder whose fairness.md is brought up to date"
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
    measured: dict[str, PartTable] = {}
    for name in given.part or PARTS:
        start = perf_counter()
        try:
            tables = PARTS[name](options)
        except InputError as error:
            parser.error(f"{name}: {error}")
        for table in tables:
            print(f"\n{table.to_markdown()}", flush=True)
            measured[table.title] = table
        print(f"\n{name}: {perf_counter() - start:.0f} s, first seed {options.seed}", flush=True)
    if given.json is not None:
        figures = {title: list(records(table)) for title, table in measured.items()}
        given.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    if given.docs is not None:
        places = {
            name: measured[title].table() for name, title in DOCS.items() if title in measured
        }
        replace_tables(given.docs / "fairness.md", places)
    return 0


if __name__ == "__main__":
    sys.exit(main())
