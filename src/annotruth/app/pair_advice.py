"""`annotruth next` and `annotruth plan` for pair comparisons."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from annotruth.app import console
from annotruth.errors import ComparisonsError, InputError, LabelsError, counted
from annotruth.models.pairs.registry import PAIR_MODELS

if TYPE_CHECKING:
    from annotruth.analyses.advice.pairs.advice import PairAdvice
    from annotruth.observations.options import ReadOptions

A = TypeVar("A")
B = TypeVar("B")

_MAX_ROWS = 10
_PAIR_COLUMNS = {"left", "right", "winner", "loser"}


def choose_path(
    read: ReadOptions,
    model: str | None,
    label_flags: Mapping[str, object],
    of_labels: Callable[[], A],
    of_comparisons: Callable[[], B],
) -> A | B:
    """Call the function for what the input is; refuse flags for labels if it is comparisons.

    Comparisons are known by ``--columns`` or ``--model``, or because they are refused where labels
    are read. Labels with an option for comparisons are refused because of that option.
    """
    refusal: InputError | None = None
    if not (_PAIR_COLUMNS & (read.columns or {}).keys() or model in PAIR_MODELS):
        try:
            return of_labels()
        except ComparisonsError as error:
            refusal = error
    refuse_label_flags(label_flags)
    try:
        return of_comparisons()
    except LabelsError as error:
        if model in PAIR_MODELS:
            refusal = InputError(f"{model} ranks comparisons, and these are labels: leave it out")
        raise refusal or error from None


def refuse_label_flags(flags: Mapping[str, object]) -> None:
    """Refuse flags for labels where there are comparisons."""
    for flag, value in flags.items():
        if value is not None:
            raise InputError(f"{flag} is for labels, and these are comparisons: leave it out")


def check_assign_format(name: str | None) -> None:
    """Refuse tasks for labelling tools."""
    if name not in (None, "csv", "parquet"):
        raise InputError(
            "comparisons are assigned in a table: name a .csv or .parquet file (`--assign`), and leave "
            "out --assign-format"
        )


def write_pair_advice(
    advice: PairAdvice, *, out: Path | None, keep: Path | None, assign: Path | None
) -> None:
    """Write the tables of the advice to the files that were named."""
    from annotruth.app.outputs import write_out
    from annotruth.io.writers import format_of, write_table

    if out is not None:
        write_out(advice.tables(), out, extra={}, safe_cells=True)
    if keep is not None:
        table = advice.of_annotators.table(advice.fit)
        write_table(table, keep, format_of(keep), safe_cells=True)
    if assign is not None:
        table = advice.comparison_table().drop_columns(["gain", "why"])
        write_table(table, assign, format_of(assign), safe_cells=True)


def show_pair_advice(advice: PairAdvice, *, as_json: bool) -> None:
    """Print the summary and the first comparisons, or one JSON object."""
    table = advice.comparison_table()
    missing = table["annotator"].null_count
    if as_json:
        typer.echo(json.dumps(advice.to_dict() | {"unassigned": missing}))
        return
    console.show_lines(advice.summary())
    if len(table):
        console.show_lines("")
        first = table.slice(0, _MAX_ROWS)
        # Tables are printed with two digits, which are too few for gains.
        gain = [f"{value:.4f}" for value in first["gain"].to_pylist()]
        first = first.set_column(first.column_names.index("gain"), "gain", [gain])
        console.show_table("Comparisons with the highest gain", first, max_rows=_MAX_ROWS)
        if more := len(table) - len(first):
            console.show_lines(f"{more:,} more")
        if missing:
            where = "" if advice.context is None else " in this context"
            why = advice.of_annotators.why_nobody(f"compared the two items{where}")
            console.show_lines(f"{counted(missing, 'comparison')} without an annotator: {why}")
    console.show_lines("")
    people = advice.annotator_table().sort_by([("information", "ascending")])
    shown = people.select([*people.column_names[:4], "information"])  # reasons are too long
    console.show_table("Annotators, least informative first", shown, max_rows=_MAX_ROWS)
