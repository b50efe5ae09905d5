"""`annotruth next`: which items need another label, how many, and whom to ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annotruth.app import options
from annotruth.app import read_options as reading

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.advice import Advice
    from annotruth.io.options import ReadOptions

_MOST_SHOWN = 10


@reading.takes_read_options(without=("memory",))
def next_(
    *,
    labels: reading.LabelsFile,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many labels to spend.", show_default="all that are worth it"
        ),
    ] = None,
    read: ReadOptions,
    gold: reading.GoldOption = None,
    annotator_prior: reading.AnnotatorPriorOption = None,
    settings: reading.SettingsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write every item here (item, n_labels, add, uncertainty, gain, why): .csv, "
            ".parquet or .json.",
        ),
    ] = None,
    as_json: reading.JsonOption = False,
    quiet: reading.QuietOption = False,
) -> None:
    """Say which items need more labels, which have enough, and whom to ask.

    A label is worth what it is expected to bring an item's distribution closer to the truth. So an
    item on which people are divided, and are known to be, needs no more of them. Ask in rounds:
    new labels change what is known of items and of annotators.

    **Examples**

        annotruth next labels.csv

        annotruth next labels.csv --budget 500 --out next.csv

        annotruth next answers.csv --scale nominal --gold known.csv --json
    """
    from annotruth import api
    from annotruth.app import console
    from annotruth.io import writers

    if out is not None:
        writers.format_of(out)
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        advice = api.next_labels(
            labels,
            budget,
            progress=progress,
            gold=gold,
            annotator_prior=annotator_prior,
            read=read,
            **options.parse_settings(settings),
        )
    items = advice.item_table()
    if out is not None:
        writers.write_table(items, out, writers.format_of(out))

    if as_json:
        typer.echo(json.dumps(_told(advice)))
    elif not quiet:
        console.show_lines(advice.summary())
        if advice.n_add:
            console.show_lines("")
            console.show_table("Items that gain most", _urgent(items), max_rows=_MOST_SHOWN)
        console.show_lines("")
        people = advice.crowd.table().sort_by([("worth", "ascending")])
        shown = people.select(["annotator", "reliability", "worth", "ask", "why"])
        console.show_table("Annotators, least telling first", shown, max_rows=_MOST_SHOWN)
        if out is not None:
            console.show_lines(f"written to {out}")


def _urgent(items: pa.Table) -> pa.Table:
    """Keep the items that get labels, those that gain most first."""
    import pyarrow.compute as pc

    some = items.filter(pc.greater(items["add"], 0)).sort_by([("gain", "descending")])
    # Two digits, as tables here have them, are too few for gains.
    gain = [f"{value:.3f}" for value in some["gain"].slice(0, _MOST_SHOWN).to_pylist()]
    gain += [""] * (some.num_rows - len(gain))
    return some.set_column(some.column_names.index("gain"), "gain", [gain]).drop_columns(
        ["uncertainty"]
    )


def _told(advice: Advice) -> dict[str, Any]:
    """Return what ``next --json`` prints."""
    import numpy as np

    data, crowd = advice.fit.data, advice.crowd
    return {
        "n_items": data.n_items,
        "n_annotators": data.n_annotators,
        "n_labels": data.n_labels,
        "budget": advice.budget,
        "add": advice.n_add,
        "items_to_label": int(np.count_nonzero(advice.add)),
        "items_to_stop": int(np.count_nonzero(advice.done)),
        "items_divided": int(np.count_nonzero(advice.done & advice.divided)),
        "annotators_to_ask": int(np.count_nonzero(crowd.may_ask)),
        "annotators_unclear": int(np.count_nonzero(crowd.unclear)),
    }
