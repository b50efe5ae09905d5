"""`annotruth fit`: from a file of labels to an answer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annotruth.app import options
from annotruth.app.options import DuplicatesChoice, FormatChoice, ScaleChoice
from annotruth.models.registry import DEFAULT_MODEL, MODELS

if TYPE_CHECKING:
    from annotruth.models.result import Fit


def fit(
    labels: options.LabelsFile,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=f"One of {', '.join(MODELS)}.", show_default=DEFAULT_MODEL
        ),
    ] = None,
    scale: options.Scale = ScaleChoice.auto,
    categories: options.Categories = None,
    columns: options.Columns = None,
    duplicates: options.Duplicates = DuplicatesChoice.refuse,
    gold: options.Gold = None,
    record: options.Record = None,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Known truths (item, label) to measure the fit against."),
    ] = None,
    settings: options.Settings = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write items, annotators, labels and fit.json here."),
    ] = None,
    format_: Annotated[
        FormatChoice, typer.Option("--format", help="How to write the tables.")
    ] = FormatChoice.csv,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a model to a file of labels and say what it found.

    Prints a summary; with `--out` writes the distribution of every item, the reliability of every
    annotator, and how likely every label was serious.

    **Examples**

        annotruth fit labels.csv --out result

        annotruth fit votes.csv --scale ordinal --truth mos.csv --json

        annotruth fit ratings.csv --columns item=film,annotator=user,label=stars

        annotruth fit words.csv --categories "bad,fair,good" --set tol=1e-8
    """
    from annotruth import fitting
    from annotruth.app import console

    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        found = fitting.fit(
            labels,
            model,
            progress=progress,
            **options.reading(
                gold=gold,
                record=record,
                columns=columns,
                scale=scale,
                categories=categories,
                duplicates=duplicates,
                settings=settings,
            ),
        )
    scores = scale is ScaleChoice.ordinal
    metrics = None if truth is None else fitting.evaluate(found, truth, scores=scores)
    if out is not None:
        from annotruth.io.writers import write_tables
        from annotruth.models import storage

        write_tables(
            found.tables(), out, format=format_.value, extra={"fit.json": storage.record(found)}
        )

    if as_json:
        told = _told(found)
        if metrics is not None:
            told["metrics"] = {name: _number(value) for name, value in metrics.items()}
        typer.echo(json.dumps(told))
    elif not quiet:
        console.show_lines(found.summary())
        if metrics is not None:
            figures = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
            console.show_lines(f"against the truth: {figures}")
        if out is not None:
            console.show_lines(f"written to {out}")


def _told(found: Fit) -> dict[str, Any]:
    """Return what ``fit --json`` prints."""
    return {
        "model": found.model,
        "n_items": found.data.n_items,
        "n_annotators": found.data.n_annotators,
        "n_labels": found.data.n_labels,
        "n_categories": found.data.n_categories,
        "n_iter": found.n_iter,
        "converged": found.converged,
        "stop_reason": found.stop_reason,
        "log_likelihood": _number(found.log_likelihood),
        "spammers": found.n_spammers,
    }


def _number(value: float | None) -> float | None:
    """Return a number that JSON has: what is not finite is null."""
    return value if value is not None and math.isfinite(value) else None
