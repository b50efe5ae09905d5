"""`annotruth compare`: every model on one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotruth.app import read_options as reading
from annotruth.models.registry import MODELS

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.io.options import ReadOptions


@reading.takes_read_options(without=("memory",))
def compare(
    *,
    labels: reading.LabelsFile,
    truth: reading.TruthOption = None,
    models: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help=f"Some of {', '.join(MODELS)}.", show_default="all"),
    ] = None,
    read: ReadOptions,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with pictures here: one HTML file."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the table of models here: .csv, .parquet or .json."
        ),
    ] = None,
    as_json: reading.JsonOption = False,
    quiet: reading.QuietOption = False,
) -> None:
    """Fit every model to a file of labels and say how they differ.

    Tells how well each predicts labels it has not seen, how far they agree, what they cost, whom
    they call spammers, and with `--truth` how near they come to it.

    **Examples**

        annotruth compare labels.csv --report models.html

        annotruth compare labels.csv --truth truth.csv --models robust-gpm,dawid-skene,majority
    """
    from annotruth.app import console, options
    from annotruth.io import writers
    from annotruth.selection import compare as comparing

    if out is not None:
        writers.format_of(out)
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        found = comparing.compare(
            labels,
            options.parse_list(models),
            truth=truth,
            scores=read.scale == "ordinal",
            progress=progress,
            read=read,
        )
    table = found.model_table()
    if out is not None:
        writers.write_table(table, out, writers.format_of(out))
    if report is not None:
        found.report(report, source=labels.name)
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
        return
    if quiet:
        return
    console.show_lines([found.data.describe(), found.why])
    told = table.filter(table["refused"].is_null())
    _show("Models", told, {
        "held_out": "held_out", "held_out_error": "error", "spammers": "spammers",
        "iterations": "iterations", "converged": "converged", "seconds": "seconds",
    })  # fmt: skip
    measures = ("accuracy", "f1_macro", "plcc", "srocc", "rmse")
    _show("Against the truth", told, {name: name for name in measures})
    first, pairs = next(iter(found.fits)), found.agreement_table()
    beside = pairs.slice(0, len(found.fits) - 1).drop_columns("model")
    beside = beside.rename_columns({"other": "model"})
    _show(f"Agreement with {first}", beside, {name: name for name in beside.column_names[1:]})
    if found.refused:
        console.show_lines("")
    for name, reason in found.refused.items():
        console.show_lines(f"not compared: {name} ({reason})")
    if out is not None:
        console.show_lines(f"written to {out}")
    if report is not None:
        console.show_lines(f"report written to {report}")


def _show(title: str, table: pa.Table, wanted: dict[str, str]) -> None:
    """Print a table of models, less the columns in which there is nothing."""
    from annotruth.app import console

    there = {name: told for name, told in wanted.items() if table[name].null_count < len(table)}
    if there:
        shown = table.select(["model", *there]).rename_columns(["model", *there.values()])
        console.show_lines("")
        console.show_table(title, shown, max_rows=len(shown), digits=4)
