"""Columns as the page holds them: short numbers, and words by their place in a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Codes
from annotruth.labels.scale import plain
from annotruth.models.base_fit import SPAMMER_BELOW

Column: TypeAlias = dict[str, Any]

# What the tables call them, and what the page says they are.
_TITLES = {
    "annotator": ("Annotator", ""),
    "item": ("Item", ""),
    "n_labels": ("Labels", "how many labels"),
    "reliability": ("Reliability", "how likely a label of theirs is serious (or right), with its 95% interval"),
    "low": ("Reliability from", "lower end of the 95% interval"),
    "high": ("Reliability to", "upper end of the 95% interval"),
    "spammer": ("Spammer", f"reliability below {SPAMMER_BELOW}"),
    "behavior": ("Behavior", "what they mostly do"),
    "p_spammer": ("P spammer", "probability of being serious less than half of the time"),
    "evidence": ("Evidence", "log10 of how much their labels raised the odds of a spammer: 2 is a hundred to one for it, -3 a thousand to one against"),
    "bias": ("Bias", "how far their labels lie above the others', in steps of the scale"),
    "label": ("Label", "the recovered label: the most likely category"),
    "expectation": ("Score", "the recovered score, with its 95% interval where the model gives one"),
    "confidence": ("Confidence", "probability of the recovered label"),
    "entropy": ("Difficulty", "entropy of the recovered distribution: 0 when one category has it all"),
    "score_low": ("Score from", "lower end of the score's 95% interval"),
    "score_high": ("Score to", "upper end of the score's 95% interval"),
    "p_leads": ("P leads", "probability that the label is the most likely category"),
    "may_lead": ("May lead", "the fewest categories that lead with 95%"),
    "p_serious": ("P serious", "how likely this label was serious"),
}  # fmt: skip
# On a small screen only these.
_MAIN = {"annotator", "item", "reliability", "expectation", "label", "p_serious"}
_HIDDEN = {"low", "high", "score_low", "score_high"}
_RANGES = {"reliability": ("low", "high"), "expectation": ("score_low", "score_high")}
_SHARES = {"confidence", "matches"}


def from_arrow(table: pa.Table, rows: Any) -> list[Column]:
    """Turn a table of the fit into columns, known ones and the model's own alike."""
    found = []
    names = set(table.column_names)
    for name in table.column_names:
        values = table[name].combine_chunks().take(pa.array(rows))
        if name in ("item", "annotator"):
            column = ids(name, values)
        elif pa.types.is_boolean(values.type):
            column = {"kind": "flag", "values": [int(bool(v)) for v in values.to_pylist()]}
        elif name != "label" and (
            pa.types.is_floating(values.type) or pa.types.is_integer(values.type)
        ):
            column = numbers(name, values.to_numpy(zero_copy_only=False))
        else:
            column = words(name, [None if v is None else str(v) for v in values.to_pylist()])
        title, told = _TITLES.get(name, (humanised(name), "from the model"))
        column |= {"key": name, "title": title, "help": told}
        ends = _RANGES.get(name, ())
        if name in _RANGES and names.issuperset(ends):
            column |= {"kind": "range", "ends": ends}
        column |= {"hidden": name in _HIDDEN, "main": name in _MAIN}
        found.append(column)
    return found


def humanised(name: str) -> str:
    """Write a column's name as words."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def ids(name: str, values: pa.Array) -> Column:
    """Keep whole numbers as such, so that they sort; everything else is text."""
    values = plain(values)
    listed = values.to_pylist()
    # JavaScript has no larger whole numbers.
    if not (pa.types.is_integer(values.type) and all(abs(v) < 2**53 for v in listed)):
        listed = [str(value) for value in listed]
    return {"key": name, "kind": "id", "values": listed}


def numbers(name: str, values: Any) -> Column:
    """Round numbers to what can be read; what is not finite is null."""
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return {"key": name, "kind": "count", "values": values.tolist()}
    there = values[np.isfinite(values)]
    largest = float(np.abs(there).max()) if len(there) else 0.0
    digits = 3 if largest <= 10 else 2 if largest <= 1000 else 0
    if largest > 1 and (there == np.round(there)).all():
        digits = 0
    short = np.round(values, digits)
    listed = [
        None if not np.isfinite(v) else (int(v) if digits == 0 else v) for v in short.tolist()
    ]
    kind = "share" if name in _SHARES else "number"
    return {"key": name, "kind": kind, "digits": min(digits, 2), "values": listed}


def words(name: str, values: Sequence[str | None]) -> Column:
    """Name each word once."""
    names: dict[str | None, int] = {}
    codes = [names.setdefault(value, len(names)) for value in values]
    listed = ["" if value is None else value for value in names]
    return {"key": name, "kind": "word", "names": listed, "values": codes}


def sparse(ptr: Codes, category: Any, value: Any, rows: Codes) -> Column:
    """Keep what each row has of each category, without zeros, as three flat lists."""
    n = np.diff(ptr)[rows]
    # The entries of the kept rows, one after the other.
    at = np.repeat(ptr[rows] - np.concatenate([[0], np.cumsum(n)[:-1]]), n) + np.arange(n.sum())
    row, value = np.repeat(np.arange(len(rows)), n), np.asarray(value)[at]
    some = np.flatnonzero(value > 0)
    return {
        "kind": "bars",
        "lengths": np.bincount(row[some], minlength=len(rows)).tolist(),
        "categories": np.asarray(category)[at][some].tolist(),
        "values": value[some].astype(int).tolist(),
    }
