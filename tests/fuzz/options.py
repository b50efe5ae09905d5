"""Hostile values of every option of every command."""

from __future__ import annotations

import shutil
import typing
from functools import cache
from pathlib import Path

import numpy as np
from tests.fuzz.checks import run_command
from tests.fuzz.samples import SAMPLES
from tests.fuzz.saved_fits import saved_fit

from annotruth.app import cli

VALUES = (
    "", " ", "0", "-1", "1", "2", "3.5", "1e9", "1e400", "nan", "inf", "-inf", "99999999999999999999",
    "x", "=", "a=b", "a=b=c", ",", ",,", "a,b", "item=", "=item", "item=item", "item=x,label=y",
    "tol=-1", "tol=x", "max_iter=0", "max_iter=1", "engine=memory", "seed=1", "truth=class",
    "acceleration=maybe", "nominal", "ordinal", "auto", "refuse", "keep", "last", "right", "opinion",
    "csv", "parquet", "json", "memory", "0B", "1MB", "1XB", "-5GB", "1e3GB", "10", "0:10:2",
    "labels.csv", "fit", "out", "no/such/file.csv", ".", "..", "/", "/dev/null", "/dev/full",
    "/proc/self/mem", "-", "~", "a\nb", "\x1b[31m", "é", "日本", "👍🏽", "'", '"', "$(true)", "%s",
    "{0}", "\\", "*", "a" * 5000, "a/" * 200, "\udcff", "http://127.0.0.1:9/x.csv", "s3://x/y",
    "gpm", "majority", "robust-gpm", "dawid-skene", "subject-bias", "long", "wide", "1,2,3,4,5",
    "cat,dog", "r.html", "o.csv", "o.parquet", "o.json", "labels.csv/x", "fit/fit.json", "--help",
)  # fmt: skip
SLOW = {"reproduce", "demo"}
"""Commands that are run with options that they refuse, or with --help."""


@cache
def flags() -> dict[str, tuple[str, ...]]:
    """Return the options of every command."""
    import typer.main

    group = typing.cast(typing.Any, typer.main.get_command(cli.app))
    return {
        name: tuple(
            flag
            for parameter in command.params
            for flag in parameter.opts
            if flag.startswith("--") and flag != "--help"
        )
        for name, command in group.commands.items()
    }


def hostile_options(rng: np.random.Generator, folder: Path) -> str:
    """Run a command with one to four options of any value."""
    (folder / "labels.csv").write_bytes(SAMPLES["long.csv"])
    commands = [*flags(), "fit", "fit", "next", "plan", "compare", "update"]
    command = str(rng.choice(commands))
    arguments = [command]
    if command in ("update", "report", "next", "plan"):
        shutil.copytree(saved_fit("gpm"), folder / "fit")
        arguments.append("fit" if rng.random() < 0.9 else _value(rng))
    if command in ("fit", "compare", "update"):
        arguments.append("labels.csv" if rng.random() < 0.8 else _value(rng))
    small = {
        "simulate": ["--items", "5", "--annotators", "3"],
        "compare": ["--models", "majority,gpm"],
    }
    arguments += small.get(command, [])
    for _ in range(int(rng.integers(1, 5))):
        flag = str(rng.choice(flags()[command]))
        if flag in ("--engine", "--spark-master") and rng.random() < 0.9:
            continue
        arguments.append(flag)
        if rng.random() < 0.9:
            arguments.append(_value(rng))
    if command in SLOW:
        arguments.append("--no-such-option")
    if "spark" in " ".join(arguments):
        return "nothing: it would start Spark"
    done = run_command(*arguments)
    return f"{' '.join(arguments)[:300]!r}: {done.code}"


def _value(rng: np.random.Generator) -> str:
    return VALUES[rng.integers(len(VALUES))]
