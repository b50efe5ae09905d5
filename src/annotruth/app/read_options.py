"""The options that the commands which read labels share, and what they mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from annotruth.app import options
from annotruth.io.formats import INPUT_FORMATS


class ScaleChoice(StrEnum):
    """What kind of scale the labels are on."""

    auto = "auto"
    nominal = "nominal"
    ordinal = "ordinal"


class DuplicatesChoice(StrEnum):
    """What to do when a person labelled an item twice."""

    refuse = "refuse"
    keep = "keep"
    last = "last"


LABELS_HELP = (
    "CSV, TSV, Parquet, Arrow or JSON lines, also compressed, with columns item, annotator, label; "
    "or a matrix, or what a platform exports."
)
LabelsFile = Annotated[Path, typer.Argument(metavar="LABELS", help=LABELS_HELP)]
ScaleOption = Annotated[
    ScaleChoice,
    typer.Option(help="auto: numbers and listed categories are ordinal, words nominal."),
]
CategoriesOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="All categories, lowest first; those nobody chose count too. One with a comma in "
        "it stands in quotes.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="item=..,annotator=..,label=..",
        help="Which column is which, where the names do not say.",
    ),
]
DuplicatesOption = Annotated[
    DuplicatesChoice,
    typer.Option(help="When a person labelled an item twice: refuse, two votes, or the last."),
]
BinsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|E1,E2,..",
        help="Put numbers of a continuous scale into N bins of equal width, or by these edges.",
    ),
]
InputFormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help=f"What LABELS is, where it is taken for something else: {', '.join(INPUT_FORMATS)}.",
    ),
]
QuestionOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which question, where LABELS has answers to several."),
]
TruthOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Known truths (item, label) to measure the fit against."),
]
GoldOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Known truths (item, label) that the fit may use."),
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="What is known of annotators: their table from an earlier fit (robust-gpm).",
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the model, such as tol=1e-6."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]


def arguments(
    *,
    columns: str | None,
    scale: ScaleChoice,
    categories: str | None,
    duplicates: DuplicatesChoice,
    bins: str | None,
    input_format: str | None,
    question: str | None,
) -> dict[str, Any]:
    """Turn the words of these options into the arguments of `annotruth.fit` and its like."""
    return {
        "columns": options.parse_pairs(columns, "--columns"),
        "scale": scale.value,
        "categories": options.parse_list(categories),
        "duplicates": duplicates.value,
        "bins": options.parse_bins(bins),
        "input_format": input_format,
        "question": question,
    }
