"""`annotruth update`: add labels to a saved fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotruth.app import options
from annotruth.app.commands.fit import json_entries

if TYPE_CHECKING:
    from annotruth.io.options import ReadOptions


@options.takes_read_options(without=("scale", "categories", "bins", "memory"))
def update(
    *,
    fit: Annotated[
        Path, typer.Argument(metavar="FIT", help="A folder that `annotruth fit --save` wrote.")
    ],
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS",
            help="The new labels only, in any format that `annotruth fit` reads.",
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
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Add labels to a saved fit, fit all of them, and show what changed.

    The fit starts from the parameters of the saved one.

    **Examples**

        annotruth update fit monday.csv

        annotruth update fit monday.csv --out fit-monday --gold gold.csv

        annotruth update fit corrections.csv --duplicates last --refit
    """
    from annotruth import api
    from annotruth.advice.changes import changes
    from annotruth.app import console
    from annotruth.models.storage import load, locked

    folder = fit if out is None else out
    options.check_outputs(
        {"LABELS": [labels], "--gold": [gold]},
        {"FIT" if out is None else "--out": options.saved_files(folder)},
    )
    # In place, nobody else may save between loading and saving, or one of the updates is lost.
    with locked(folder, on_wait=console.waiting_line(folder, quiet=quiet)):
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
        changed = changes(before, after)
        after.save(folder)
    if as_json:
        typer.echo(json.dumps({**json_entries(after), **changed.to_dict()}, default=str))
    elif not quiet:
        console.show_lines(changed.summary())
        console.show_lines(after.summary())
        console.show_lines(f"written to {folder}")
