"""Results of a fit beyond items, annotators and labels: of pairs and groups of annotators, over time, of machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from annotruth.observations.scale import is_text

ColumnKind: TypeAlias = Literal["id", "number", "count", "flag", "text"]
"""What a column of a table holds."""

_INTERVAL = "reliability low high"

FURTHER_TABLES: Mapping[str, Mapping[str, Mapping[ColumnKind, str]]] = {
    "dependent_annotators": {
        "dependent_annotators": {
            "id": "annotator other",
            "count": "n_items",
            "number": "agreement expected correlation p_value",
        }
    },
    "groups": {
        "groups": {"id": "item label", "text": "group", "count": "n_labels", "number": "low high"},
        "group_differences": {
            "id": "item",
            "text": "group other",
            "number": "p_value q_value distance",
            "flag": "differs",
        },
        "group_summary": {
            "text": "group",
            "count": "n_annotators n_labels n_spammers",
            "number": "reliability p_value q_value",
            "flag": "differs",
        },
    },
    "over_time": {
        "over_time": {"id": "annotator from to", "count": "n_labels", "number": _INTERVAL},
        "changes_over_time": {
            "id": "annotator at",
            "count": "n_before",
            "number": "probability before after",
        },
        "crowd_over_time": {"text": "by from to", "count": "n_labels", "number": _INTERVAL},
    },
    "boards": {
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
    "both_bad": {
        "both_bad": {
            "id": "item",
            "count": "n_comparisons n_both_bad",
            "number": "p_both_bad low high",
        }
    },
    "beside": {
        "beside": {"id": "item", "number": "score value", "count": "n_values", "flag": "on_front"}
    },
    "machines": {
        "machines": {
            "id": "machine",
            "count": "n_labels n_people",
            "text": "may_replace",
            "number": "agreement agreement_low agreement_high people_agreement accuracy accuracy_low "
            "accuracy_high weight winning_rate advantage p_value",
        },
        "dependence": {
            "id": "annotator other",
            "count": "n_items",
            "number": "agreement expected correlation low high p_value",
            "flag": "dependent",
        },
        "machine_confusion": {"id": "machine", "text": "consensus label", "number": "n share"},
    },
}
"""The tables of each kind of further results, with the columns, by what they hold, that a saved fit must have."""

HOW_TO_GET: Mapping[str, str] = {
    "dependent_annotators": "fit robust-gpm in memory, without machines and groups, to labels of at most 400 annotators, "
    "two of whom have 10 items in common, that agree better than chance",
    "groups": "fit with traits of annotators and a column of them (`--annotators FILE --by COLUMN`)",
    "both_bad": "rank comparisons whose winners may be `both bad`",
    "beside": "rank with columns of both items (`--beside NAME`)",
    "boards": "rank with a column of the comparisons (`--by COLUMN`)",
    "over_time": "fit labels with a column time, order or seconds",
    "machines": "fit with the names of machines (`--machine NAME`)",
}
"""What to do for further results of each kind."""

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

    tables: Mapping[str, pa.Table]  # by name, as in `FURTHER_TABLES`
    facts: Mapping[str, Any] = field(default_factory=dict)  # figures by name, of JSON types
    lines: Sequence[str] = ()  # what the summary says


def make_further_results(
    kind: str, entries: Mapping[str, Any], tables: Mapping[str, pa.Table]
) -> FurtherResults:
    """Return saved further results; raise a ValueError if a column is missing or of a wrong type."""
    for name, columns in FURTHER_TABLES[kind].items():
        for holds, listed in columns.items():
            for column in listed.split():
                found = tables[name].schema.field(column).type
                if not _IS_KIND[holds](found):
                    raise ValueError(f"{column} in {name} is of type {found}")
    return FurtherResults(tables, entries["facts"], entries["lines"])
