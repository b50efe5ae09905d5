"""Options that several commands share, and their words turned into Python values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from annotruth.errors import InputError


class ScaleChoice(StrEnum):
    """What kind of scale the labels are on."""

    auto = "auto"
    nominal = "nominal"
    ordinal = "ordinal"


class FormatChoice(StrEnum):
    """How tables are written."""

    csv = "csv"
    parquet = "parquet"


class DuplicatesChoice(StrEnum):
    """What to do when a person labelled an item twice."""

    refuse = "refuse"
    keep = "keep"
    last = "last"


LabelsFile = Annotated[
    Path,
    typer.Argument(
        metavar="LABELS",
        help="CSV, TSV, Parquet, Arrow or JSON lines, also compressed, "
        "with columns item, annotator, label.",
    ),
]
Scale = Annotated[
    ScaleChoice,
    typer.Option(help="auto: numbers and listed categories are ordinal, words nominal."),
]
Categories = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C", help="All categories, lowest first; those nobody chose count too."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="item=..,annotator=..,label=..",
        help="Which column is which, where the names do not say.",
    ),
]
Duplicates = Annotated[
    DuplicatesChoice,
    typer.Option(help="When a person labelled an item twice: refuse, two votes, or the last."),
]
Gold = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Known truths (item, label) that the fit may use."),
]
Record = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="What is known of annotators: their table from an earlier fit (robust-gpm).",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the model, such as tol=1e-6."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]


def reading(
    *,
    gold: Path | None,
    record: Path | None,
    columns: str | None,
    scale: ScaleChoice,
    categories: str | None,
    duplicates: DuplicatesChoice,
    settings: list[str] | None,
) -> dict[str, Any]:
    """Turn the options of reading labels, and the model's own, into what `fit` takes."""
    return {
        "gold": gold,
        "record": record,
        "columns": parse_pairs(columns, "--columns"),
        "scale": scale.value,
        "categories": parse_list(categories),
        "duplicates": duplicates.value,
        **parse_settings(settings),
    }


def parse_pairs(text: str | None, option: str) -> dict[str, str]:
    """Read ``a=x,b=y``."""
    pairs = {}
    for part in (text or "").split(",") if text else []:
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"{option} takes NAME=VALUE pairs, not {part!r}")
        pairs[name.strip()] = value.strip()
    return pairs


def parse_list(text: str | None) -> list[str] | None:
    """Read ``A,B,C``."""
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_bins(text: str | None) -> int | list[float] | None:
    """Read how many bins, ``10``, or their edges, ``0,20,50,100``."""
    if text is None:
        return None
    try:
        return int(text) if "," not in text else [float(edge) for edge in text.split(",")]
    except ValueError:
        raise InputError(
            f"--bins takes a number of bins or edges such as 0,20,50,100, not {text!r}"
        ) from None


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Read the model's own options, ``tol=1e-6`` and the like, as numbers where they are."""
    found: dict[str, Any] = {}
    for setting in settings or []:
        for name, value in parse_pairs(setting, "--set").items():
            found[name.replace("-", "_")] = _value(value)
    return found


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
