"""Results of a fit beyond items, annotators and labels: of pairs and groups of annotators, over time, of machines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from annotruth.bindings import bound
from annotruth.errors import option
from annotruth.observations.scale import is_text

ColumnKind: TypeAlias = Literal["id", "number", "count", "flag", "text"]
"""What a column of a table holds."""


class FurtherKind(NamedTuple):
    """A kind of further results."""

    # by name: the columns, by what they hold, that a saved fit must have
    tables: Mapping[str, Mapping[ColumnKind, str]]
    how_to_get: str  # with the names of options in braces
    # of the section that shows lines and tables, for kinds without a section of their own
    title: str = ""
    meaning: str = ""

    @property
    def remedy(self) -> str:
        """What to do to get such results."""
        return re.sub(r"\{(\w+)\}", lambda found: option(found[1]), self.how_to_get)


KINDS_OF_MODELS: Mapping[str, FurtherKind] = {
    "dependent_annotators": FurtherKind(
        {
            "dependent_annotators": {
                "id": "annotator other",
                "count": "n_items",
                "number": "agreement expected correlation p_value",
            }
        },
        "fit robust-gpm in memory, without machines and groups, to labels of at most 400 annotators, "
        "two of whom have 10 items in common, that agree better than chance",
    ),
    "boards": FurtherKind(
        {
            "boards": {
                "text": "board",
                "id": "item",
                "count": "n_comparisons rank",
                "number": "score low high difference",
                "flag": "compared",
            },
            "board_differences": {
                "text": "board",
                "id": "item other",
                "number": "difference low high overall q_value",
            },
        },
        "rank with a column of the comparisons ({by})",
    ),
    "both_bad": FurtherKind(
        {
            "both_bad": {
                "id": "item",
                "count": "n_comparisons n_both_bad",
                "number": "p_both_bad low high",
            }
        },
        "rank comparisons whose winners may be `both bad`",
        "Both bad",
        "P both bad: the probability that an item and an average one are both called bad. Votes count as ties.",
    ),
    "beside": FurtherKind(
        {
            "beside": {
                "id": "item",
                "number": "score value",
                "count": "n_values",
                "flag": "on_front",
            }
        },
        "rank with columns of both items ({beside})",
        "Beside the score",
        "Value: the mean over an item's comparisons. On front: no item with as low a value has a higher score.",
    ),
}
"""Further results that models make."""


def further_kinds() -> Mapping[str, FurtherKind]:
    """Return all kinds of further results by name, those of analyses last."""
    return {**KINDS_OF_MODELS, **bound("further_kinds")()}


_IS_KIND: Mapping[ColumnKind, Callable[[pa.DataType], bool]] = {
    "id": lambda type_: not (pa.types.is_nested(type_) or pa.types.is_null(type_)),
    "number": pa.types.is_float64,
    "count": pa.types.is_integer,
    "flag": pa.types.is_boolean,
    "text": is_text,
}


@dataclass(frozen=True, eq=False)
class FurtherResults:
    """Results of a fit beyond items, annotators and labels."""

    tables: Mapping[str, pa.Table]  # by name
    facts: Mapping[str, Any] = field(default_factory=dict)  # figures by name, of JSON types
    lines: Sequence[str] = ()  # what the summary says


def make_further_results(
    kind: str, entries: Mapping[str, Any], tables: Mapping[str, pa.Table]
) -> FurtherResults:
    """Return saved further results; raise a ValueError if a column is missing or of a wrong type."""
    for name, columns in further_kinds()[kind].tables.items():
        for holds, listed in columns.items():
            for column in listed.split():
                found = tables[name].schema.field(column).type
                if not _IS_KIND[holds](found):
                    raise ValueError(f"{column} in {name} is of type {found}")
    return FurtherResults(tables, entries["facts"], entries["lines"])
