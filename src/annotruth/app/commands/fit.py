"""`annotruth fit`: from a file of labels to an answer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from annotruth.app import read_options as reading
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.io.options import ReadOptions
    from annotruth.models.base_fit import BaseFit
    from annotruth.models.result import Fit
    from annotruth.models.spark_fit import SparkFit


class FormatChoice(StrEnum):
    """How tables are written."""

    csv = "csv"
    parquet = "parquet"
    json = "json"


class EngineChoice(StrEnum):
    """Where passes over the labels run."""

    memory = "memory"
    spark = "spark"


@reading.takes_read_options()
def fit(
    *,
    labels: Annotated[
        str,
        typer.Argument(
            metavar="LABELS",
            help=f"{reading.LABELS_HELP} With --engine spark also a folder, or a table by name.",
        ),
    ],
    model: reading.ModelOption = None,
    read: ReadOptions,
    gold: reading.GoldOption = None,
    annotator_prior: reading.AnnotatorPriorOption = None,
    truth: reading.TruthOption = None,
    settings: reading.SettingsOption = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write items, annotators, labels and fit.json here."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save the fit here, for `annotruth update`."),
    ] = None,
    format_: Annotated[
        FormatChoice, typer.Option("--format", help="How to write the tables.")
    ] = FormatChoice.csv,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report here: one HTML file, read in a browser."),
    ] = None,
    soft: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write soft labels to train on, a row an item and a column a class: "
            ".csv, .parquet, .json or .npz.",
        ),
    ] = None,
    keep: reading.KeepOption = None,
    engine: Annotated[
        EngineChoice, typer.Option(help="Where the passes over the labels run.")
    ] = EngineChoice.memory,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Spark is: local[4], spark://host:7077, yarn, sc://host for Connect.",
            show_default="the session of the environment, or this machine",
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A folder that all of Spark's machines reach."),
    ] = None,
    as_json: reading.JsonOption = False,
    quiet: reading.QuietOption = False,
) -> None:
    """Fit a model to a file of labels and say what it found.

    Prints a summary; with `--out` writes the distribution of every item, the reliability of every
    annotator, and how likely every label was serious.

    **Examples**

        annotruth fit labels.csv --out result --report report.html

        annotruth fit labels.csv --model auto

        annotruth fit votes.csv --scale ordinal --truth mos.csv --json

        annotruth fit ratings.csv --columns item=film,annotator=user,label=stars

        annotruth fit words.csv --categories "bad,fair,good" --set tol=1e-8

        annotruth fit label-studio.json --question sentiment --soft targets.npz --keep people.csv

        annotruth fit sliders.csv --bins 10

        annotruth fit huge.parquet --memory 1GB --out result --format parquet

        annotruth fit labels.csv --model gpm --save fit

        annotruth fit crowd.labels --engine spark --master yarn --storage hdfs:///tmp --out result
    """
    from annotruth import api
    from annotruth.app import console, options
    from annotruth.io import soft_labels, writers

    own = options.parse_settings(settings)
    if engine is EngineChoice.spark:
        from annotruth.app import on_spark

        on_spark.check_options(
            {"--truth": truth, "--save": save, "--report": report, "--soft": soft, "--keep": keep},
            format_.value,
        )
        own["engine"] = on_spark.engine_of(master, storage)
    elif master is not None or storage is not None:
        raise InputError("--master and --storage are for Spark: add --engine spark")
    for path, check in ((soft, soft_labels.check_ending), (keep, writers.format_of)):
        if path is not None:
            check(path)
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        found = api.fit(
            labels,
            model,
            gold=gold,
            annotator_prior=annotator_prior,
            read=read,
            progress=progress,
            **own,
        )
    if engine is EngineChoice.spark:
        with cast("SparkFit", found) as on_frames:
            if out is not None:
                on_spark.write_tables(on_frames, out, format_.value)
            _tell(on_frames, None, [out], as_json=as_json, quiet=quiet)
        return
    scores = read.scale == "ordinal"
    metrics = None if truth is None else api.evaluate(found, truth, scores=scores)
    # Everything that a model may not have is made before anything is written.
    targets = None if soft is None else found.soft_label_table()
    verdicts = None if keep is None else found.verdict_table()
    if out is not None:
        from annotruth.models.storage import record as told_in_json

        writers.write_tables(
            found.tables(),
            Path(out),
            format=format_.value,
            extra={"fit.json": told_in_json(found)},
        )
    if save is not None:
        found.save(save)
    if report is not None:
        found.report(report, source=Path(labels).name)
    if soft is not None:
        soft_labels.write_soft_labels(targets, found.data.scale.categories, soft)
    if keep is not None:
        writers.write_table(verdicts, keep, writers.format_of(keep))

    _tell(found, metrics, [out, save, soft, keep], report, as_json=as_json, quiet=quiet)


def _tell(
    found: Fit | SparkFit,
    metrics: Mapping[str, float] | None,
    places: Sequence[object],
    report: Path | None = None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print what was found, how good it is, and what was written where."""
    from annotruth.app import console

    if as_json:
        told = told_of(found)
        if metrics is not None:
            told["metrics"] = {name: _number(value) for name, value in metrics.items()}
        typer.echo(json.dumps(told))
    elif not quiet:
        console.show_lines(found.summary())
        if metrics is not None:
            figures = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
            console.show_lines(f"against the truth: {figures}")
        for place in places:
            if place is not None:
                console.show_lines(f"written to {place}")
        if report is not None:
            console.show_lines(f"report written to {report}")


def told_of(found: BaseFit) -> dict[str, Any]:
    """Return what ``fit --json`` prints."""
    told = {
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
    return told if found.chosen is None else {**told, "chosen": dict(found.chosen)}


def _number(value: float | None) -> float | None:
    """Return a number that JSON has: what is not finite is null."""
    return value if value is not None and math.isfinite(value) else None
