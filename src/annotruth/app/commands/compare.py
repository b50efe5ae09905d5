"""`annotruth compare`: all models on one file of labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from annotruth.app import named_files, options
from annotruth.app.named_files import check_existing, check_out
from annotruth.app.output_flags import ForceOption
from annotruth.app.outputs import write_out
from annotruth.app.pair_advice import choose_path, refuse_label_flags
from annotruth.errors import InputError
from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.models.registry import MODELS

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.observations.options import ReadOptions
    from annotruth.selection.compare import Comparison

# Where a name is too long for a table of 80 characters.
_HEADINGS = {
    "behind_error": "error",
    "iterations": "steps",
    "accuracy_low": "low",
    "accuracy_high": "high",
}


@options.takes_read_options(without=("memory",))
def compare(
    *,
    labels: options.FitOrLabels,
    truth: options.TruthOption = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help=f"Some of {', '.join(MODELS)}; of comparisons, some of {', '.join(PAIR_MODELS)}.",
            show_default="all",
        ),
    ] = None,
    read: ReadOptions,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page with charts here, and the report of each model to the folder "
            "FILE-reports beside it, without .html: models-reports for models.html.",
        ),
    ] = None,
    no_model_reports: Annotated[
        bool,
        typer.Option("--no-model-reports", help="Write the page of --report only."),
    ] = False,
    out: Annotated[
        Path | None, options.out_option("models and their agreement", first="models")
    ] = None,
    force: ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Compare models on labels or comparisons, or those of a saved fit.

    Shows how well each model predicts labels it was not fitted to, how far models agree, how long
    they take, how many spammers they find and, with `--truth`, how close they come to the truth.

    **Examples**

        annotruth compare labels.csv --report models.html

        annotruth compare labels.csv --truth truth.csv --models robust-gpm,majority

        annotruth compare votes.csv --models pair-gpm,bradley-terry
    """
    names = options.parse_list(models)
    if no_model_reports and report is None:
        raise InputError("--no-model-reports needs --report FILE")
    flags = {"--report": report, "--truth": truth, "--out": out}

    def of_labels() -> None:
        _compare_labels(
            labels,
            names,
            truth,
            read,
            ComparisonOutputs(report, out, model_reports=not no_model_reports, force=force),
            as_json=as_json,
            quiet=quiet,
        )

    def of_comparisons() -> None:
        _compare_rankings(labels, names, read, as_json=as_json, quiet=quiet)

    if named_files.is_ranking(labels):
        refuse_label_flags(flags)
        of_comparisons()
        return
    pair_model = next((name for name in names or () if name in PAIR_MODELS), None)
    choose_path(read, pair_model, flags, of_labels, of_comparisons)


class ComparisonOutputs(NamedTuple):
    """The files that ``compare`` writes."""

    report: Path | None
    out: Path | None
    model_reports: bool
    force: bool


def _compare_labels(
    labels: list[str],
    models: Sequence[str] | None,
    truth: str | None,
    read: ReadOptions,
    outputs: ComparisonOutputs,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare models on labels, write what is asked for, and print the tables."""
    from annotruth.app import console

    report, out, model_reports, force = outputs
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        from annotruth.selection.compare import compare as compare_models
        from annotruth.selection.compare import reports_folder

        pages = [] if report is None else [report]
        if report is not None and model_reports:
            pages += [reports_folder(report) / f"{name}.html" for name in MODELS]
        named_files.check_outputs(
            {"FIT|LABELS": named_files.input_files(labels), "--truth": [truth]},
            {
                "--out": named_files.table_files(out, names=("models", "agreement")),
                "--report": pages,
            },
        )
        check_out(out, force=force)
        for page in pages:
            check_existing("--report", page, "page", force=force)
        comparison = compare_models(
            named_files.one_or_several(labels),
            models,
            truth=truth,
            scores=read.scale == "ordinal",
            progress=progress,
            read=read,
        )
        if out is not None:
            tables = {
                "models": comparison.model_table(),
                "agreement": comparison.agreement_table(),
            }
            write_out(tables, out, extra={}, safe_cells=False)
        if report is not None:
            source = named_files.heading(labels)
            comparison.report(report, source=source, model_reports=model_reports, progress=progress)
    if as_json:
        typer.echo(json.dumps(comparison.to_dict()))
    elif not quiet:
        _show_comparison(comparison)
        if out is not None:
            console.show_lines(f"results written to {out}")
        if report is not None:
            console.show_lines(f"report written to {report}")
            if model_reports:
                console.show_lines(f"reports of models written to {reports_folder(report)}")


def _compare_rankings(
    votes: list[str],
    models: Sequence[str] | None,
    read: ReadOptions,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare models on comparisons or a saved ranking, and print their held-out scores."""
    import pyarrow as pa

    from annotruth.app import console

    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        from annotruth.ranking import compare_rankings

        choice = compare_rankings(
            named_files.one_or_several(votes), models, progress=progress, read=read
        )
    if as_json:
        typer.echo(json.dumps(choice.to_dict()))
    elif not quiet:
        console.show_lines(f"finding: {choice.why}")
        rows = [{"model": name, **each} for name, each in choice.to_dict()["scores"].items()]
        table = pa.Table.from_pylist(rows)
        console.show_table("Models", table, max_rows=len(table), digits=4)


def _show_comparison(comparison: Comparison) -> None:
    """Print the tables of a comparison, and the models that were not compared."""
    from annotruth.app import console

    console.show_lines([comparison.data.describe(), f"finding: {comparison.finding}"])
    table = comparison.model_table()
    table = table.filter(table["refused"].is_null())
    _show_columns(
        "Models",
        table,
        ("held_out", "behind", "behind_error", "spammers", "iterations", "converged", "seconds"),
    )
    _show_columns(
        "Against the truth",
        table,
        ("accuracy", "accuracy_low", "accuracy_high", "f1_macro", "plcc", "srocc", "rmse"),
    )
    pairs = comparison.agreement_table()
    with_first = pairs.slice(0, len(comparison.fits) - 1).drop_columns("model")
    with_first = with_first.rename_columns({"other": "model"})
    first = next(iter(comparison.fits))
    _show_columns(f"Agreement with {first}", with_first, with_first.column_names[1:])
    if comparison.refused:
        console.show_lines("")
    by_reason: dict[str, list[str]] = {}
    for name, reason in comparison.refused.items():
        by_reason.setdefault(reason.removeprefix(f"{name} "), []).append(name)
    for reason, names in by_reason.items():
        console.show_lines(f"not compared: {', '.join(names)} ({reason})")


def _show_columns(title: str, table: pa.Table, columns: Sequence[str]) -> None:
    """Print some columns of a table of models, without those that are empty."""
    from annotruth.app import console

    shown = [name for name in columns if table[name].null_count < len(table)]
    if shown:
        selected = table.select(["model", *shown]).rename_columns(
            ["model", *(_HEADINGS.get(name, name) for name in shown)]
        )
        console.show_lines("")
        console.show_table(title, selected, max_rows=len(selected), digits=4)
