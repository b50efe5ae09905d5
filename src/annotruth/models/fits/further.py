"""Results of a fit beyond items, annotators and labels: of pairs and groups of annotators, over time, of machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from annotruth.observations.scale import is_text

ColumnKind: TypeAlias = Literal["id", "number", "count", "flag", "text"]
"""What a column of a table holds."""

# Two annotators, and how often they gave the same label to the same item.
_PAIR: Mapping[str, ColumnKind] = {
    "annotator": "id",
    "other": "id",
    "n_items": "count",
    "agreement": "number",
    "expected": "number",
    "correlation": "number",
}

FURTHER_TABLES: Mapping[str, Mapping[str, Mapping[str, ColumnKind]]] = {
    "dependent_annotators": {"dependent_annotators": {**_PAIR, "p_value": "number"}},
    "groups": {
        "groups": {
            "item": "id",
            "group": "text",
            "n_labels": "count",
            "label": "id",
            "low": "number",
            "high": "number",
        },
        "group_differences": {
            "item": "id",
            "p_value": "number",
            "q_value": "number",
            "differs": "flag",
            "group": "text",
            "other": "text",
            "distance": "number",
        },
        "group_summary": {
            "group": "text",
            "n_annotators": "count",
            "n_labels": "count",
            "reliability": "number",
            "n_spammers": "count",
            "p_value": "number",
            "q_value": "number",
            "differs": "flag",
        },
    },
    "over_time": {
        "over_time": {
            "annotator": "id",
            "from": "id",
            "to": "id",
            "n_labels": "count",
            "reliability": "number",
            "low": "number",
            "high": "number",
        },
        "changes_over_time": {
            "annotator": "id",
            "at": "id",
            "n_before": "count",
            "probability": "number",
            "before": "number",
            "after": "number",
        },
        "crowd_over_time": {
            "by": "text",
            "from": "text",
            "to": "text",
            "n_labels": "count",
            "reliability": "number",
            "low": "number",
            "high": "number",
        },
    },
    "boards": {
        "boards": {
            "board": "text",
            "n_comparisons": "count",
            "item": "id",
            "rank": "count",
            "score": "number",
            "low": "number",
            "high": "number",
            "difference": "number",
            "compared": "flag",
        },
        "board_differences": {
            "board": "text",
            "item": "id",
            "other": "id",
            "difference": "number",
            "low": "number",
            "high": "number",
            "overall": "number",
            "q_value": "number",
        },
    },
    "both_bad": {
        "both_bad": {
            "item": "id",
            "n_comparisons": "count",
            "n_both_bad": "count",
            "p_both_bad": "number",
            "low": "number",
            "high": "number",
        },
    },
    "beside": {
        "beside": {
            "item": "id",
            "score": "number",
            "value": "number",
            "n_values": "count",
            "on_front": "flag",
        },
    },
    "machines": {
        "machines": {
            "machine": "id",
            "n_labels": "count",
            "agreement": "number",
            "agreement_low": "number",
            "agreement_high": "number",
            "people_agreement": "number",
            "accuracy": "number",
            "accuracy_low": "number",
            "accuracy_high": "number",
            "weight": "number",
            "may_replace": "text",
            "winning_rate": "number",
            "advantage": "number",
            "p_value": "number",
            "n_people": "count",
        },
        "dependence": {
            **_PAIR,
            "low": "number",
            "high": "number",
            "p_value": "number",
            "dependent": "flag",
        },
        "machine_confusion": {
            "machine": "id",
            "consensus": "text",
            "label": "text",
            "n": "number",
            "share": "number",
        },
    },
}
"""The tables of each kind of further results, with the columns that a saved fit must have."""

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
    """Results of a fit beyond items, annotators and labels.

    Attributes
    ----------
    tables
        Tables by name, as in `FURTHER_TABLES`.
    facts
        Figures by name, of JSON types.
    lines
        What the summary says.
    """

    tables: Mapping[str, pa.Table]
    facts: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the facts and lines, as JSON types."""
        return {"facts": dict(self.facts), "lines": list(self.lines)}


def make_further_results(
    kind: str, entries: Mapping[str, Any], tables: Mapping[str, pa.Table]
) -> FurtherResults:
    """Return saved further results; raise a ValueError if a column is missing or of a wrong type."""
    for name, columns in FURTHER_TABLES[kind].items():
        for column, column_kind in columns.items():
            found = tables[name].schema.field(column).type
            if not _IS_KIND[column_kind](found):
                raise ValueError(f"{column} in {name} is of type {found}")
    return FurtherResults(tables, entries["facts"], entries["lines"])
