"""`annotruth report`: the report of a saved fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annotruth.app import options


def report(
    fit: Annotated[
        Path, typer.Argument(metavar="FIT", help="A folder that `annotruth fit --save` wrote.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Write the report here: one HTML file.")
    ] = Path("report.html"),
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The name of the labels in the heading.",
            show_default="the folder's name",
        ),
    ] = None,
    quiet: options.QuietOption = False,
) -> None:
    """Write the report of a saved fit, without fitting again.

    **Examples**

        annotruth fit labels.csv --save fit && annotruth report fit --out report.html
    """
    from annotruth.app import console
    from annotruth.models.storage import load

    options.check_outputs({"FIT": options.saved_files(fit)}, {"--out": [out]})
    load(fit).report(out, source=source or fit.resolve().name)
    if not quiet:
        console.show_lines(f"report written to {out}")
