"""`annotruth plan`: how many labels a target needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from annotruth.app import options
from annotruth.app import read_options as reading
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.io.options import ReadOptions


@reading.takes_read_options(without=("memory",))
def plan(
    *,
    labels: reading.LabelsFile,
    target: Annotated[
        str,
        typer.Option(
            metavar="NAME=VALUE",
            help="accuracy=0.9: the leading label is right. hellinger=0.15: how far distributions "
            "are from the truth. score=0.5: half the width of a score's 95% interval. "
            "Each in the mean over items.",
        ),
    ],
    read: ReadOptions,
    gold: reading.GoldOption = None,
    annotator_prior: reading.AnnotatorPriorOption = None,
    settings: reading.SettingsOption = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same plan.")] = 0,
    as_json: reading.JsonOption = False,
    quiet: reading.QuietOption = False,
) -> None:
    """Say how many labels a target needs, spent evenly or as `annotruth next` advises.

    Simulates more labels from what the labels so far say of items and annotators. The answer is the
    model's: where the crowd agrees on what is wrong, it cannot know.

    **Examples**

        annotruth plan labels.csv --target accuracy=0.9

        annotruth plan votes.csv --scale ordinal --target score=0.5 --json
    """
    from annotruth import api
    from annotruth.app import console

    name, value = _parsed(target)
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        found = api.plan_labels(
            labels,
            name,
            value,
            seed=seed,
            progress=progress,
            gold=gold,
            annotator_prior=annotator_prior,
            read=read,
            **options.parse_settings(settings),
        )
    if as_json:
        told = asdict(found)
        for way, need in (("evenly", found.evenly), ("advised", found.advised)):
            told[way]["in_all"] = found.in_all(need)
        typer.echo(json.dumps(told))
    elif not quiet:
        console.show_lines(found.summary())


def _parsed(target: str) -> tuple[str, float]:
    """Read ``accuracy=0.9``."""
    pairs = options.parse_pairs(target, "--target")
    try:
        ((name, value),) = pairs.items()
        return name, float(value)
    except ValueError:
        raise InputError(
            f"--target takes one NAME=NUMBER, such as accuracy=0.9, not {target!r}"
        ) from None
