"""The table of coefficients of agreement of labels, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from annotruth.analyses.agreement.counts import (
    Jackknife,
    Units,
    coefficients,
    cohens_kappa,
    pair_weights,
)
from annotruth.analyses.agreement.intraclass import intraclass_correlations
from annotruth.analyses.agreement.jackknife import Variances, interval
from annotruth.errors import InputError, function, option
from annotruth.io.readers import load_labels
from annotruth.models.result import Fit, is_fit
from annotruth.models.storage import load
from annotruth.observations import Labels
from annotruth.observations.frames import from_arrow
from annotruth.observations.keywords import ReadKeywords
from annotruth.observations.options import ReadOptions, names_keywords
from annotruth.observations.scale import parse_numbers

_MAX_CATEGORIES = 256

_COLUMNS = {
    "coefficient": pa.string(),
    "weights": pa.string(),
    "value": pa.float64(),
    "low": pa.float64(),
    "high": pa.float64(),
    "n_labels": pa.int64(),
    "n_items": pa.int64(),
    "n_annotators": pa.int64(),
    "interval_over": pa.string(),
}


@dataclass(frozen=True, eq=False)
class AgreementTable:
    """How far annotators agree. Returned by `agreement`.

    Attributes
    ----------
    data
        The labels.
    table
        One row per coefficient and weights: its value, the 95% interval, and how many labels,
        items and annotators it is of.
    notes
        What was left out, and why, one sentence each.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, who, item % 3) for item in range(9) for who in "abc"]
    >>> at.agreement([*labels, (0, "d", 1)]).value("Gwet's AC2", "linear")[0] > 0.9
    True
    """

    data: Labels
    table: pa.Table
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"AgreementTable({self.data.describe()})"

    def coefficients(self) -> Any:
        """Return one row per coefficient and weights, as a frame of the caller's library."""
        return from_arrow(self.table, self.data.frame)

    def value(self, coefficient: str, weights: str = "") -> tuple[float, float, float]:
        """Return a coefficient and its interval, with the first weights unless they are named."""
        for row in self.table.to_pylist():
            if row["coefficient"] == coefficient and weights in ("", row["weights"]):
                return tuple(
                    float("nan") if row[name] is None else row[name]
                    for name in ("value", "low", "high")
                )  # type: ignore[return-value]
        known = ", ".join(dict.fromkeys(self.table["coefficient"].to_pylist()))
        raise InputError(f"there is no coefficient {coefficient!r} here: choose one of {known}")

    def to_dict(self) -> dict[str, Any]:
        """Return what `annotruth agreement --json` prints."""
        data = self.data
        return {
            "n_items": data.n_items,
            "n_annotators": data.n_annotators,
            "n_labels": data.n_labels,
            "coefficients": self.table.to_pylist(),
            "notes": list(self.notes),
        }


@names_keywords(ReadKeywords)
def agreement(
    labels: Any,
    *,
    same_people: bool = False,
    read: ReadOptions | None = None,
    **options: Unpack[ReadKeywords],
) -> AgreementTable:
    """Return how far annotators agree: coefficients with 95% intervals over items and people.

    Parameters
    ----------
    labels
        What `annotruth.fit` takes, or a fit.
    same_people
        Whether intervals are for other items labelled by the same people; by default, for other
        people, too, which makes them wide where there are few.
    read, **options
        How to read it: `ReadOptions`, or its fields as keywords. With ``duplicates="keep"``, labels that
        an annotator repeats show whether annotators agree with themselves.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(i, who, i % 3 if who != "cy" or i % 4 else 0) for i in range(12) for who in ("al", "bo", "cy")]
    >>> found = at.agreement(labels)
    >>> round(found.value("Krippendorff's alpha")[0], 3)
    0.8
    """
    read = ReadOptions.of(read, options)
    if is_fit(labels):
        read.refuse_options_of_data("labels")
        data = labels.data if isinstance(labels, Fit) else load(labels).data
    else:
        data = load_labels(labels, read)
    if data.kind != "labels":
        pairs = data.kind == "comparisons"
        what, command = ("comparisons", "rank") if pairs else ("sets of labels", "fit")
        raise InputError(
            f"these are {what}, and agreement is of one label per answer: use {function(command)}"
        )
    if data.on_disk:
        raise InputError(
            f"agreement is of labels in memory, and these are on disk: leave out {option('memory')}"
        )
    return agreement_of(data, same_people=same_people)


def agreement_of(data: Labels, *, same_people: bool = False) -> AgreementTable:
    """Return how far the annotators of labels agree."""
    if data.n_categories > _MAX_CATEGORIES:
        raise InputError(
            f"the scale has {data.n_categories:,} values, and agreement is computed for at most "
            f"{_MAX_CATEGORIES}: put them into bins"
        )
    between, again = _split_repeats(data)
    rows = _coefficient_rows(data, between)
    numbers = parse_numbers(data.scale.categories) if data.scale.is_ordinal else None
    if numbers is not None and between.has_pairs:
        found = intraclass_correlations(between.item, between.person, numbers[between.category])
        rows += [_Row(name, "interval", *each, between.size()) for name, each in found.items()]
    if between.has_pairs and data.n_annotators == 2:
        rows += [
            _Row("Cohen's kappa", name, *cohens_kappa(data, between, w), between.size())
            for name, w in pair_weights(data)
        ]
    notes = []
    if not between.has_pairs:
        notes.append("no item has labels of two annotators: nothing can be compared")
    elif data.n_annotators > 2:
        notes.append("Cohen's kappa is of two annotators: Fleiss' kappa is of any number")
    if again is not None:
        rows += _coefficient_rows(data, again, "test-retest ")
        notes.append(
            f"{again.n_repeated:,} labels repeat one of the same annotator: the first of each counts "
            "between annotators"
        )
    chance = float(((np.bincount(between.category) / len(between.category)) ** 2).sum())
    chance = chance if chance < 1.0 else 0.0  # nothing but AC1 is defined then, whose chance is 0
    entries = [row.entry(chance, same_people=same_people) for row in rows]
    return AgreementTable(
        data, pa.Table.from_pylist(entries, pa.schema(_COLUMNS.items())), tuple(notes)
    )


class _Row(NamedTuple):
    """A row of the table."""

    name: str
    weights: str
    value: float
    variances: Variances
    size: Mapping[str, int]

    def entry(self, chance: float, *, same_people: bool) -> dict[str, Any]:
        """Return the row with its interval; ``chance`` is that two labels are equal."""
        variances = self.variances._replace(people=np.nan) if same_people else self.variances
        limits = (0.0, 0.0) if "percent" in self.name else (-1.0, chance)
        low, high, over = interval(self.value, variances, *limits)
        value = self.value if np.isfinite(self.value) else None
        columns = (self.name, self.weights, value, low, high)
        return dict(zip(_COLUMNS, columns, strict=False)) | {**self.size, "interval_over": over}


def _split_repeats(data: Labels) -> tuple[Units, Units | None]:
    """Return labels by item, one per person, and those that people repeated by item and person."""
    item, person = data.item_of_label().astype(np.int64), data.annotator.astype(np.int64)
    category = data.category_of_label().astype(np.int64)
    order = np.lexsort((data.row if len(data.row) else np.arange(len(item)), person, item))
    item, person, category = item[order], person[order], category[order]
    again = np.zeros(len(item), dtype=np.bool_)
    again[1:] = (item[1:] == item[:-1]) & (person[1:] == person[:-1])
    first = ~again
    between = Units(item[first], item[first], person[first], category[first])
    if not again.any():
        return between, None
    unit = np.cumsum(first) - 1
    kept = np.bincount(unit)[unit] > 1
    unit = np.unique(unit[kept], return_inverse=True)[1]
    unit = unit.astype(np.int64)
    return between, Units(item[kept], unit, person[kept], category[kept], int(again.sum()))


def _coefficient_rows(data: Labels, units: Units, prefix: str = "") -> list[_Row]:
    """Return the coefficients of labels of the same units."""
    if not units.has_pairs:
        return []
    functions = coefficients(data)
    if prefix:  # the others say nothing more of one person
        functions = {key: function for key, function in functions.items() if key[0][0] in "pK"}
    found = Jackknife(units, data.n_categories).run(list(functions.values()))
    return [
        _Row(prefix + name, weights, value, variances, units.size())
        for (name, weights), (value, variances) in zip(functions, found, strict=True)
    ]
