"""The flags for what commands write."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from annotruth.app import options


class FormatChoice(StrEnum):
    """File formats of the tables."""

    csv = "csv"
    parquet = "parquet"
    json = "json"


class ReadoutChoice(StrEnum):
    """What soft labels are: probabilities of the right label, or shares of opinion."""

    right = "right"
    opinion = "opinion"


OutOption = Annotated[
    str | None,
    options.out_option("items, annotators and labels or comparisons, and fit.json,", first="items"),
]
SaveOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Save the fit to this folder, for `annotruth update` and annotruth.load.",
    ),
]
FormatOption = Annotated[
    FormatChoice,
    typer.Option(
        "--format", metavar="NAME", help="The file format of the tables: csv, parquet or json."
    ),
]
SafeCellsOption = Annotated[
    bool,
    typer.Option(
        "--safe-cells",
        help="Put ' before text in the CSV of --out and --soft that a spreadsheet would run as a "
        "formula.",
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a report with tables and charts: one HTML file."),
]
EmbedOption = Annotated[
    bool,
    typer.Option(
        "--embed",
        help="Put the items' images, audio and video into the report, where --content names paths; "
        "paths are relative to the report.",
    ),
]
SoftOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write soft labels for training, one row per item, one column per class: "
        ".csv, .parquet, .json or .npz.",
    ),
]
SoftReadoutOption = Annotated[
    ReadoutChoice | None,
    typer.Option(
        metavar="NAME",
        help="What the soft labels are: right, the probabilities of the right label, or "
        "opinion, the shares of serious opinion.",
        show_default="as in the table of items, which the summary says",
    ),
]
PredictionsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the labels with their confidence as predictions for Label Studio: .json.",
    ),
]
LabelStudioOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="The tags of the Label Studio project: name is the one that takes the labels, to_name "
        "the one that shows the content; type is choices, rating or number.",
        show_default="name=label,to_name=text",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace existing files. Without it, only saved fits, folders of tables, simulated "
        "crowds and pages that annotruth wrote are replaced.",
    ),
]

PreferencesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the decided comparisons for training here, with the probability that each was "
        "serious as its weight (prompt, chosen, rejected, weight): .csv, .parquet or .json.",
    ),
]

RANK_FLAGS: Mapping[str, tuple[Any, Any]] = {"preferences": (PreferencesOption, None)}
"""Further flags of a command that ranks items."""

FLAGS: Mapping[str, tuple[Any, Any]] = {
    "out": (OutOption, None),
    "save": (SaveOption, None),
    "format_": (FormatOption, FormatChoice.csv),
    "safe_cells": (SafeCellsOption, False),
    "report": (ReportOption, None),
    "embed": (EmbedOption, False),
    "soft": (SoftOption, None),
    "soft_readout": (SoftReadoutOption, None),
    "keep": (options.KeepOption, None),
    "predictions": (PredictionsOption, None),
    "label_studio": (LabelStudioOption, None),
    "force": (ForceOption, False),
}
"""The flags of a command that takes `Outputs`, in the order in which the help lists them."""
