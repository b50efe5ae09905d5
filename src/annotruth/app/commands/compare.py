"""`annotruth compare`: all models on one file of labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.app import console, named_files, values
from annotruth.app.outputs import write_out
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


def compare(
    *,
    labels: list[str],
    truth: str | None = None,
    models: str | None = None,
    read: ReadOptions,
    report: Path | None = None,
    no_model_reports: bool = False,
    out: Path | None = None,
    force: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Compare models on labels or comparisons, or those of a saved fit.

    Shows how well each model predicts labels it was not fitted to, how far models agree, how long
    they take, how many spammers they find and, with `--truth`, how close they come to the truth.

    **Examples**

        annotruth compare labels.csv --report models.html

        annotruth compare labels.csv --truth truth.csv --models robust-gpm,majority

        annotruth compare votes.csv --models pair-gpm,bradley-terry
    """
    names = None if models is None else values.parse_list(models)
    if no_model_reports and report is None:
        raise InputError("--no-model-reports needs --report FILE")
    flags = {"--report": report, "--truth": truth, "--out": out}
    of_comparisons = partial(_compare_rankings, labels, names, read, as_json=as_json, quiet=quiet)
    if named_files.is_ranking(labels):
        named_files.refuse_label_flags(flags)
        of_comparisons()
        return
    of_labels = partial(
        _compare_labels,
        labels,
        names,
        truth,
        read,
        report=report,
        out=out,
        model_reports=not no_model_reports,
        force=force,
        as_json=as_json,
        quiet=quiet,
    )
    pair_model = next((name for name in names or () if name in PAIR_MODELS), None)
    named_files.choose_path(read, pair_model, flags, of_labels, of_comparisons)


def _compare_labels(
    labels: list[str],
    models: Sequence[str] | None,
    truth: str | None,
    read: ReadOptions,
    *,
    report: Path | None,
    out: Path | None,
    model_reports: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare models on labels, write what is asked for, and print the tables."""
    with console.running(quiet=quiet, as_json=as_json) as progress:
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
        named_files.check_out(out, force=force)
        for page in pages:
            named_files.check_existing("--report", page, "page", force=force)
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
        console.show_json(comparison.to_dict())
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

    with console.running(quiet=quiet, as_json=as_json) as progress:
        from annotruth.ranking import compare_rankings

        choice = compare_rankings(
            named_files.one_or_several(votes), models, progress=progress, read=read
        )
    if as_json:
        console.show_json(choice.to_dict())
    elif not quiet:
        console.show_lines(f"finding: {choice.why}")
        rows = [{"model": name, **each} for name, each in choice.to_dict()["scores"].items()]
        table = pa.Table.from_pylist(rows)
        console.show_table("Models", table, max_rows=len(table), digits=4)


def _show_comparison(comparison: Comparison) -> None:
    """Print the tables of a comparison, and the models that were not compared."""
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
    shown = [name for name in columns if table[name].null_count < len(table)]
    if shown:
        selected = table.select(["model", *shown]).rename_columns(
            ["model", *(_HEADINGS.get(name, name) for name in shown)]
        )
        console.show_lines("")
        console.show_table(title, selected, max_rows=len(selected), digits=4)
