"""Measure the service; prints Markdown tables, with missed targets in bold."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from time import perf_counter

from benchmarks import machine
from benchmarks.honesty.options import PartTable
from benchmarks.panel.__main__ import positive
from benchmarks.serve.crashes import crashes
from benchmarks.serve.ingestion import ingestion
from benchmarks.serve.latency import latency
from benchmarks.serve.load import load

PARTS: dict[str, Callable[[argparse.Namespace], list[PartTable]]] = {
    "ingestion": lambda given: ingestion(seconds=given.seconds),
    "load": lambda given: load(seconds=given.seconds, n_labels=given.labels, seed=given.seed),
    "latency": lambda given: latency(n_labels=given.labels, seed=given.seed),
    "crashes": lambda given: crashes(kills=given.kills, seed=given.seed),
}
PACKAGES = ("annotruth", "fastapi", "uvicorn", "sqlalchemy", "psycopg")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="can be repeated (default: all)"
    )
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement of load")
    parser.add_argument(
        "--labels",
        type=positive,
        default=1_000_000,
        help="of the project of `load` and `latency`",
    )
    parser.add_argument("--kills", type=positive, default=100, help="of processes under load")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    given = parser.parse_args(arguments)
    print(machine.describe(PACKAGES))
    for part in given.part or PARTS:
        start = perf_counter()
        for table in PARTS[part](given):
            print(f"\n{table.to_markdown()}", flush=True)
        print(f"\n{part}: {perf_counter() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
