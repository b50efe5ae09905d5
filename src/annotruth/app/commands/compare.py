"""`annotruth compare`: all models on one file of labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from annotruth.app import console, named_files, values
from annotruth.app.outputs import advice_arguments, write_out
from annotruth.bindings import bound
from annotruth.errors import InputError
from annotruth.models.pairs.registry import PAIR_MODELS

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.observations.options import ReadOptions
    from annotruth.selection.choose import Choice
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
    context: typer.Context,
    labels: list[str],
    truth: str | None = None,
    models: str | None = None,
    read: ReadOptions,
    report: Path | None = None,
    title: str | None = None,
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
    flags = {"--report": report, "--title": title, "--truth": truth, "--out": out}
    if title is not None and report is None:
        raise InputError("--title needs --report FILE")
    pair_model = next((name for name in names or () if name in PAIR_MODELS), None)
    with console.running(quiet=quiet, as_json=as_json) as progress:
        from annotruth.selection.choose import Choice
        from annotruth.selection.compare import compare as compare_models

        source = named_files.one_or_several(labels)

        def of_labels() -> Comparison:
            tables = named_files.table_files(out, names=("models", "agreement"))
            named_files.check_outputs(
                {"FIT|LABELS": named_files.input_files(labels), "--truth": [truth]},
                {"--out": tables, "--report": [report]},
            )
            named_files.check_out(out, force=force)
            if named_files.is_workbook(out):
                from annotruth.io.workbook import check_workbook

                check_workbook(str(out))
            named_files.check_existing("--report", report, "page", force=force)
            scores = read.scale == "ordinal"
            comparison = compare_models(
                source, names, truth=truth, scores=scores, progress=progress, read=read
            )
            if named_files.is_workbook(out):
                bound("Comparison.write")(comparison, out, source=named_files.heading(labels))
            elif out is not None:
                made = {
                    "models": comparison.model_table(),
                    "agreement": comparison.agreement_table(),
                }
                write_out(made, out, extra={}, safe_cells=False)
            if report is not None:
                progress.start("writing report")
                comparison.report(report, source=named_files.heading(labels), title=title)
            return comparison

        def of_comparisons() -> Choice:
            from annotruth.ranking import compare_rankings

            return compare_rankings(source, names, progress=progress, read=read)

        if named_files.is_ranking(labels):
            named_files.refuse_label_flags(flags)
            compared: Comparison | Choice = of_comparisons()
        else:
            compared = named_files.choose_path(read, pair_model, flags, of_labels, of_comparisons)
    if as_json:
        console.show_json(compared.to_dict())
    elif isinstance(compared, Choice):
        if not quiet:
            _show_choice(compared)
    elif not quiet:
        _show_comparison(compared, advice_arguments(labels, context))
        if out is not None:
            console.show_lines(f"results written to {out}")
        if report is not None:
            console.show_lines(f"report written to {report}")


def _show_choice(choice: Choice) -> None:
    import pyarrow as pa

    console.show_lines(f"finding: {choice.why}")
    rows = [{"model": name, **each} for name, each in choice.to_dict()["scores"].items()]
    console.show_table("Models", pa.Table.from_pylist(rows), max_rows=len(rows), digits=4)


def _show_comparison(comparison: Comparison, arguments: str) -> None:
    """Print the tables of a comparison, and the models that were not compared."""
    console.show_lines(f"finding: {comparison.finding}")
    if comparison.recommended is not None:
        console.show_lines(f"Next: annotruth fit {arguments} --model {comparison.recommended}")
    console.show_lines(comparison.data.describe())
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
