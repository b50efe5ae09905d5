"""`annotruth next`: which items need labels, how many, whom to ask and whom to drop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotruth.app import options

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.io.options import ReadOptions

_MAX_ROWS = 10


@options.takes_read_options(without=("memory",))
def next_(
    *,
    data: options.FitOrLabels,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many labels to spend.",
            show_default="all that are worth it in this round",
        ),
    ] = None,
    model: options.ModelOption = None,
    read: ReadOptions,
    gold: options.GoldOption = None,
    annotator_prior: options.AnnotatorPriorOption = None,
    settings: options.SettingsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write one row per item here (item, n_labels, status, add, why, uncertainty, "
            "gain): .csv, .parquet or .json.",
        ),
    ] = None,
    keep: options.KeepOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """List which items need labels, whom to ask and whom to drop.

    Takes the folder of a saved fit, or labels, which it fits first. A label is worth as much as it
    is expected to bring an item's distribution closer to the truth; an item on which annotators
    are known to be divided needs no more labels. Ask in rounds: new labels change the advice.

    **Examples**

        annotruth next labels.csv

        annotruth next labels.csv --budget 500 --out next.csv --keep people.csv

        annotruth fit labels.csv --save fit && annotruth next fit

        annotruth next answers.csv --scale nominal --gold known.csv --json
    """
    from annotruth.app import console
    from annotruth.io import writers

    for path in (out, keep):
        if path is not None:
            writers.format_of(path)
    options.check_outputs(
        {
            "FIT|LABELS": options.saved_files(data),
            "--gold": [gold],
            "--annotator-prior": [annotator_prior],
        },
        {"--out": [out], "--keep": [keep]},
    )
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        from annotruth import api  # slow to load

        advice = api.next_labels(
            data,
            budget,
            model=model,
            progress=progress,
            gold=gold,
            annotator_prior=annotator_prior,
            read=read,
            **options.parse_settings(settings),
        )
    items, people = advice.item_table(), advice.annotator_table()
    if out is not None:
        writers.write_table(items, out, writers.format_of(out), safe_cells=True)
    if keep is not None:
        verdicts = advice.of_annotators.table(advice.fit)
        writers.write_table(verdicts, keep, writers.format_of(keep), safe_cells=True)

    if as_json:
        typer.echo(json.dumps(advice.to_dict()))
    elif not quiet:
        console.show_lines(advice.summary())
        if advice.n_add:
            console.show_lines("")
            console.show_table("Items with the highest gain", _to_label(items), max_rows=_MAX_ROWS)
        console.show_lines("")
        people = people.sort_by([("information", "ascending")])
        shown = people.select([*people.column_names[:4], "information"])  # reasons are too long
        console.show_table("Annotators, least informative first", shown, max_rows=_MAX_ROWS)
        for path in (out, keep):
            if path is not None:
                console.show_lines(f"written to {path}")


def _to_label(items: pa.Table) -> pa.Table:
    """Return the items that get labels, the highest gain first."""
    import pyarrow.compute as pc

    some = items.filter(pc.greater(items["add"], 0)).sort_by([("gain", "descending")])
    # Tables are printed with two digits, which are too few for gains.
    gain = [f"{value:.3f}" for value in some["gain"].slice(0, _MAX_ROWS).to_pylist()]
    gain += [""] * (some.num_rows - len(gain))
    return some.set_column(some.column_names.index("gain"), "gain", [gain]).select(
        ["item", "n_labels", "add", "gain", "why"]
    )
