"""The flags for reading labels."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from annotruth.io.formats import INPUT_FORMATS


class ScaleChoice(StrEnum):
    """Values of ``--scale``."""

    auto = "auto"
    nominal = "nominal"
    ordinal = "ordinal"


class DuplicatesChoice(StrEnum):
    """Values of ``--duplicates``."""

    refuse = "refuse"
    keep = "keep"
    last = "last"


ScaleOption = Annotated[
    ScaleChoice,
    typer.Option(
        metavar="NAME",
        help="nominal, ordinal or auto: text is nominal, listed categories are ordinal, and for numbers "
        "the labels decide: on a scale, people who disagree choose neighbours.",
    ),
]
CategoriesOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="All categories, lowest first; those that no label names count too. Quote one that "
        "contains a comma.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Which columns are which, where they have other names, such as "
        "item=film,annotator=user,label=stars; also time, order, seconds of labels.",
    ),
]
DuplicatesOption = Annotated[
    DuplicatesChoice,
    typer.Option(
        metavar="RULE",
        help="Several labels of one annotator for one item: refuse them (identical rows count "
        "once), keep all of them, or count only the last: refuse, keep or last.",
    ),
]
BinsOption = Annotated[
    str | None,
    typer.Option(
        metavar="BINS",
        help="Put numbers of a continuous scale into bins: their number, such as 20, or their "
        "edges, such as 0,25,50,100.",
    ),
]
InputFormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help=f"The format of LABELS, where it is not recognised: {', '.join(INPUT_FORMATS)}.",
    ),
]
QuestionOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The question to take, where LABELS has several; `annotruth fit --question all` fits "
        "every one.",
    ),
]
QueryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SELECT",
        help="What to read from a database: one SELECT with the columns of labels or comparisons; "
        "of an Excel file, the name of a sheet.",
    ),
]
CovariatesOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", help="Further columns to keep with the labels, such as time,seconds."
    ),
]
ContentOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Columns that hold what the items are, for the report: text, or URLs or paths of images, "
        "audio or video.",
    ),
]
DropOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|A,B",
        help="Leave these annotators out: their ids, or a file with one id per line or a column "
        "annotator; of what --keep wrote, those with the verdict drop.",
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Fit within this much memory, such as 1GB; the labels stay on disk (TMPDIR).",
    ),
]
MaxSizeOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="How much memory reading a file may take, such as 20GB.",
        show_default="500MB, or 200 times its size",
    ),
]
SetsOption = Annotated[
    bool,
    typer.Option(
        "--sets",
        help="Answers are sets of labels: all rows of an item and annotator are one answer; lists and "
        "exports of several choices are sets without it.",
    ),
]
SeparatorOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Answers are sets of labels with this text between the labels of a cell, such as '|'; a "
        "cell with nothing else is the empty set.",
    ),
]

READ_FLAGS: Mapping[str, tuple[Any, Any]] = {
    "scale": (ScaleOption, ScaleChoice.auto),
    "categories": (CategoriesOption, None),
    "columns": (ColumnsOption, None),
    "duplicates": (DuplicatesOption, DuplicatesChoice.refuse),
    "bins": (BinsOption, None),
    "input_format": (InputFormatOption, None),
    "question": (QuestionOption, None),
    "query": (QueryOption, None),
    "sets": (SetsOption, False),
    "separator": (SeparatorOption, None),
    "covariates": (CovariatesOption, None),
    "content": (ContentOption, None),
    "drop": (DropOption, None),
    "memory": (MemoryOption, None),
    "max_size": (MaxSizeOption, None),
}
"""The flags for reading labels, in the order in which the help lists them: type and default."""

RankQuestionOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The question to take, where VOTES has several."),
]
RankColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Which columns are which, where they have other names, such as "
        "left=model_a,right=model_b,annotator=judge,winner=choice.",
    ),
]
RankCovariatesOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Columns of numbers whose influence is estimated and removed, such as "
        "length_difference.",
    ),
]
RankMemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Rank within this much memory, such as 1GB; the votes stay on disk (TMPDIR).",
    ),
]

RANK_READ_FLAGS: Mapping[str, tuple[Any, Any]] = {
    "columns": (RankColumnsOption, None),
    "question": (RankQuestionOption, None),
    "query": READ_FLAGS["query"],
    "covariates": (RankCovariatesOption, None),
    "drop": READ_FLAGS["drop"],
    "memory": (RankMemoryOption, None),
    "max_size": READ_FLAGS["max_size"],
}
"""The flags for reading comparisons: type and default."""
