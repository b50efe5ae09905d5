"""`annotruth fit`: fit a model to a file of labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from annotruth.app import options
from annotruth.errors import AnnotruthError, InputError, OutputError

if TYPE_CHECKING:
    from annotruth.io.options import ReadOptions
    from annotruth.models.base_fit import BaseFit
    from annotruth.models.distributed_fit import DistributedFit
    from annotruth.models.result import Fit


class FormatChoice(StrEnum):
    """File formats of the tables.

    Examples
    --------
    >>> FormatChoice("parquet").value
    'parquet'
    """

    csv = "csv"
    parquet = "parquet"
    json = "json"


class EngineChoice(StrEnum):
    """Where passes over the labels run.

    Examples
    --------
    >>> [choice.value for choice in EngineChoice]
    ['memory', 'spark']
    """

    memory = "memory"
    spark = "spark"


class ReadoutChoice(StrEnum):
    """What soft labels are: probabilities of the right label, or shares of opinion.

    Examples
    --------
    >>> [choice.value for choice in ReadoutChoice]
    ['right', 'opinion']
    """

    right = "right"
    opinion = "opinion"


@options.takes_read_options()
def fit(
    *,
    labels: Annotated[
        str,
        typer.Argument(
            metavar="LABELS",
            help=f"{options.LABELS_HELP} With --engine spark also a folder, or a table by name.",
        ),
    ],
    model: options.ModelOption = None,
    read: ReadOptions,
    gold: options.GoldOption = None,
    annotator_prior: options.AnnotatorPriorOption = None,
    truth: options.TruthOption = None,
    settings: options.SettingsOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Write the tables of items, annotators and labels, and fit.json, to this folder.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Save the fit to this folder, for `annotruth update` and annotruth.load.",
        ),
    ] = None,
    format_: Annotated[
        FormatChoice, typer.Option("--format", help="The file format of the tables.")
    ] = FormatChoice.csv,
    safe_cells: Annotated[
        bool,
        typer.Option(
            "--safe-cells",
            help="Put ' before text in the CSV of --out and --soft that a spreadsheet would run as a "
            "formula.",
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report with tables and charts: one HTML file."),
    ] = None,
    soft: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write soft labels for training, one row per item, one column per class: "
            ".csv, .parquet, .json or .npz.",
        ),
    ] = None,
    soft_readout: Annotated[
        ReadoutChoice | None,
        typer.Option(
            help="What the soft labels are: right, the probabilities of the right label, or "
            "opinion, the shares of serious opinion.",
            show_default="as in the table of items, which the summary says",
        ),
    ] = None,
    keep: options.KeepOption = None,
    engine: Annotated[
        EngineChoice, typer.Option(help="Where the passes over the labels run.")
    ] = EngineChoice.memory,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Spark runs: local[4], spark://host:7077, yarn, or sc://host for Connect.",
            show_default="as Spark is configured, else this machine",
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A folder that all of Spark's machines can reach."),
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Fit a model to a file of labels and print a summary.

    With `--out`, write tables: the distribution of every item, the reliability of every annotator,
    and the probability that each label was serious.

    **Examples**

        annotruth fit labels.csv --out result --report report.html

        annotruth fit labels.csv --model auto

        annotruth fit votes.csv --scale ordinal --truth mos.csv --json

        annotruth fit ratings.csv --columns item=film,annotator=user,label=stars

        annotruth fit words.csv --categories "bad,fair,good" --set tol=1e-8

        annotruth fit label-studio.json --question sentiment --soft targets.npz --keep people.csv

        annotruth fit labels.csv --soft targets.csv --soft-readout opinion

        annotruth fit sliders.csv --bins 10

        annotruth fit huge.parquet --memory 1GB --out result --format parquet

        annotruth fit labels.csv --model gpm --save fit

        annotruth fit crowd.labels --engine spark --master yarn --storage hdfs:///tmp --out result
    """
    from annotruth.api import evaluate
    from annotruth.api import fit as fit_labels
    from annotruth.app import console
    from annotruth.io.soft_labels import check_suffix, write_soft_labels
    from annotruth.io.writers import format_of, write_table, write_tables

    model_options = options.parse_settings(settings)
    if engine is EngineChoice.spark:
        from annotruth.app import on_spark

        on_spark.check_options(
            {"--truth": truth, "--save": save, "--report": report, "--soft": soft, "--keep": keep},
            format_.value,
        )
        if safe_cells:
            raise InputError("--safe-cells is not for tables that Spark writes: leave it out")
        model_options["engine"] = on_spark.make_engine(master, storage)
    elif master is not None or storage is not None:
        raise InputError("--master and --storage need --engine spark")
    if soft_readout is not None and soft is None:
        raise InputError("--soft-readout needs --soft FILE")
    for path, check in ((soft, check_suffix), (keep, format_of)):
        if path is not None:
            check(path)
    options.check_outputs(
        {
            "LABELS": [labels],
            "--gold": [gold],
            "--truth": [truth],
            "--annotator-prior": [annotator_prior],
        },
        {
            "--out": options.table_files(out, format_.value),
            "--save": options.saved_files(save),
            "--report": [report],
            "--soft": [soft],
            "--keep": [keep],
        },
    )
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        result = fit_labels(
            labels,
            model,
            gold=gold,
            annotator_prior=annotator_prior,
            read=read,
            progress=progress,
            **model_options,
        )
    if engine is EngineChoice.spark:
        with closing(cast("DistributedFit", result)) as distributed:
            if out is not None:
                on_spark.write_tables(distributed, out, format_.value)
            written: list[object] = [] if out is None else [out]
            _print_result(distributed, None, written, as_json=as_json, quiet=quiet)
        return
    scores = read.scale == "ordinal"
    metrics = (
        None if truth is None else evaluate(result, truth, scores=scores, max_size=read.max_size)
    )
    written = []
    failures: list[str] = []  # of outputs that this model does not have; the others are written
    if out is not None:
        write_tables(
            result.tables(),
            Path(out),
            format=format_.value,
            extra={"fit.json": result.to_json()},
            safe_cells=safe_cells,
        )
        written.append(out)
    if save is not None:
        from annotruth.models.storage import locked

        with locked(save, on_wait=console.waiting_line(save, quiet=quiet)):
            result.save(save)
        written.append(save)
    if report is not None:
        result.report(report, source=Path(labels).name)
    if soft is not None:
        with _failure_noted(f"--soft {soft}", failures):
            readout = None if soft_readout is None else soft_readout.value
            targets = result.soft_label_table(readout)
            classes = result.data.scale.categories
            write_soft_labels(targets, classes, soft, safe_cells=safe_cells)
            written.append(soft)
    if keep is not None:
        with _failure_noted(f"--keep {keep}", failures):
            write_table(result.verdict_table(), keep, format_of(keep), safe_cells=True)
            written.append(keep)

    _print_result(result, metrics, written, report, as_json=as_json, quiet=quiet)
    if failures:
        raise InputError("; ".join(failures))


@contextmanager
def _failure_noted(option: str, failures: list[str]) -> Iterator[None]:
    """Note that an output was not written because the model does not have it."""
    try:
        yield
    except OutputError:
        raise
    except AnnotruthError as error:
        failures.append(f"{option} was not written: {error}")


def _print_result(
    result: Fit | DistributedFit,
    metrics: Mapping[str, float] | None,
    written: Sequence[object],
    report: Path | None = None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the summary or the JSON object, the metrics, and the paths that were written."""
    from annotruth.app import console

    if as_json:
        entries = json_entries(result)
        if metrics is not None:
            entries["metrics"] = {name: _finite(value) for name, value in metrics.items()}
        typer.echo(json.dumps(entries))
    elif not quiet:
        console.show_lines(result.summary())
        if metrics is not None:
            figures = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
            console.show_lines(f"against the truth: {figures}")
        for path in written:
            console.show_lines(f"written to {path}")
        if report is not None:
            console.show_lines(f"report written to {report}")


def json_entries(result: BaseFit) -> dict[str, Any]:
    """Return the object that ``fit --json`` prints."""
    entries = {
        "model": result.model,
        "n_items": result.data.n_items,
        "n_annotators": result.data.n_annotators,
        "n_labels": result.data.n_labels,
        "n_categories": result.data.n_categories,
        "n_iter": result.n_iter,
        "converged": result.converged,
        "stop_reason": result.stop_reason,
        "log_likelihood": _finite(result.log_likelihood),
        "spammers": result.n_spammers,
        "readout": result.readout,
        "verdict": result.verdict,
    }
    return entries if result.chosen is None else {**entries, "chosen": dict(result.chosen)}


def _finite(value: float | None) -> float | None:
    """Return a finite number, or None, as JSON has no NaN."""
    return value if value is not None and math.isfinite(value) else None
