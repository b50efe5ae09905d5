"""`annotruth update`: more labels for a saved fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotruth.app import read_options as reading
from annotruth.app.commands.fit import told_of

if TYPE_CHECKING:
    from annotruth.io.options import ReadOptions


@reading.takes_read_options(without=("scale", "categories", "bins", "memory"))
def update(
    *,
    fit: Annotated[
        Path, typer.Argument(metavar="FIT", help="A folder that `annotruth fit --save` wrote.")
    ],
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS", help="The new labels alone, in any format that fit reads."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save the new fit here.", show_default="FIT itself"),
    ] = None,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit",
            help="Fit all labels from scratch instead of starting from the saved fit.",
        ),
    ] = False,
    read: ReadOptions,
    gold: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Known truths (item, label) of new or old items."),
    ] = None,
    as_json: reading.JsonOption = False,
    quiet: reading.QuietOption = False,
) -> None:
    """Add labels to a saved fit, update it, and show what changed.

    Fits all labels, starting from the parameters of the saved fit.

    **Examples**

        annotruth update fit monday.csv

        annotruth update fit monday.csv --out fit-monday --gold gold.csv

        annotruth update fit corrections.csv --duplicates last --refit
    """
    from annotruth import api
    from annotruth.advice.changes import changes
    from annotruth.app import console
    from annotruth.models.storage import load

    before = load(fit)
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        after = api.update(
            before,
            labels,
            gold=gold,
            read=read,
            refit=refit,
            progress=progress,
        )
    different = changes(before, after)
    place = fit if out is None else out
    after.save(place)
    if as_json:
        typer.echo(json.dumps({**told_of(after), **different.record()}, default=str))
    elif not quiet:
        console.show_lines(different.summary())
        console.show_lines(after.summary())
        console.show_lines(f"written to {place}")
