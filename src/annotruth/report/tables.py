"""The tables of the report: those of the fit, with small charts and the advice for every row.

A table is a list of columns, each a dictionary that the page's script reads: ``kind`` says how a
cell is drawn, and texts are stored once, as codes into ``names``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from annotruth.analyses.advice.advice import Advice
from annotruth.analyses.advice.annotators import has_flags
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import READOUTS, SPAMMER_BELOW, table_of
from annotruth.models.fits.tables import share_names
from annotruth.models.result import Fit
from annotruth.observations.frames import as_arrow
from annotruth.observations.scale import to_plain
from annotruth.report.consensus import CategoryBins, Consensus
from annotruth.report.headings import ACCURACY_TIPS, HEADINGS, READOUT_TIPS, THRESHOLD_HEADINGS

PageColumn: TypeAlias = dict[str, Any]

MAX_ANNOTATORS = 20_000

_MAX_JAVASCRIPT_INTEGER = 2**53


@dataclass(frozen=True, eq=False)
class PageTable:
    """One table of the page; ``rows`` of ``total`` are in it.

    It is first sorted by the column ``sort_by``. ``opens`` has the row of the table ``opens_in``
    that each row opens, where it is not its own.
    """

    columns: list[PageColumn]
    rows: int
    total: int
    sort_by: str = ""
    descending: bool = False
    opens: list[int] | None = None
    opens_in: str = "annotators"


@dataclass(frozen=True)
class TableStyle:
    """How the tables of a kind of fits are shown."""

    headings: Mapping[str, tuple[str, str]]  # the heading and the tip of a column
    first: Sequence[str]  # the columns that a small screen or a sheet of paper shows first
    hidden: Collection[str]  # those that only a row's dialog and CSV files show
    shares: Collection[str]  # numbers that are shown in percent
    intervals: Mapping[str, tuple[str, str]]  # the columns with the ends of a column's intervals

    def columns(self, table: pa.Table | Mapping[str, Any], rows: Any = None) -> list[PageColumn]:
        """Return a table, or some rows of it, as columns of the page."""
        table = table if isinstance(table, pa.Table) else table_of(table)
        table = table if rows is None else table.take(as_arrow(rows))
        columns = []
        for name in table.column_names:
            column = self.heading(name) | _cells(name, table[name].combine_chunks())
            if name in self.shares and column["kind"] == "number":
                column["kind"] = "share"
            ends = self.intervals.get(name, ())
            if ends and set(ends) <= set(table.column_names):
                column |= {"kind": "range", "ends": ends}
            columns.append(column)
        return columns

    def heading(self, name: str) -> PageColumn:
        """Return the key of a column, its heading, the tip on it, and where it is shown."""
        text = name.replace("_", " ").strip()
        unknown = (text[:1].upper() + text[1:], "")
        title, tip = self.headings.get(name) or HEADINGS.get(name, unknown)
        for start, sentence in THRESHOLD_HEADINGS.items():
            if name.startswith(start):
                threshold = name.removeprefix(start)
                title = f"{title.partition(' ')[0]} {threshold}"
                tip = sentence.format(threshold, threshold)
        rank = self.first.index(name) if name in self.first else len(self.first)
        hidden = name in self.hidden or name.startswith(tuple(THRESHOLD_HEADINGS))
        return {"key": name, "title": title, "help": tip, "rank": rank, "hidden": hidden}


def leading_estimate(fit: Fit) -> str:
    """Return by what the report judges annotators first: accuracy, reliability or matches."""
    if fit.accuracy is not None:
        return "accuracy"
    return "matches" if fit.reliability is None else "reliability"


def annotator_rows(fit: Fit, consensus: Consensus) -> Codes:
    """Return the codes of the annotators on the page: of too many, the lowest by `leading_estimate`."""
    name = leading_estimate(fit)
    by = consensus.match_rate if name == "matches" else getattr(fit, name)
    return np.sort(np.argsort(by, kind="stable")[:MAX_ANNOTATORS])


def annotator_table(
    fit: Fit, consensus: Consensus, advice: Advice, bins: CategoryBins
) -> PageTable:
    """Return the table of annotators, the lowest by `leading_estimate` first."""
    people, rows = advice.of_annotators, annotator_rows(fit, consensus)
    table = insert_columns(
        without_spammer(fit),
        {"matches": consensus.match_rate, "verdict": people.verdict.tolist(), "ask": people.ask},
        after=("n_labels", "reliability", "behavior"),
    ).append_column("reason", as_arrow(people.reason))
    columns = STYLE.columns(table, rows)
    for name in ("accuracy", "reliability"):
        amend(columns, name, domain=[0, 1])
        if has_flags(fit):
            amend(columns, name, warn=(people.verdict[rows] == "drop").astype(int).tolist())
        elif fit.spammer is not None:
            amend(columns, name, limit=SPAMMER_BELOW)
    amend(columns, "accuracy", help=ACCURACY_TIPS[fit.readout])
    amend(columns, "matches", hidden=fit.accuracy is not None)
    if fit.accuracy is not None:
        # The dialog has the interval of the reliability.
        amend(columns, "reliability", kind="number", rank=STYLE.first.index("matches"))
    counts = consensus.confusion(bins)[rows].ravel().tolist()
    confusion = {"kind": "matrix", "size": len(bins), "values": counts}
    columns.insert(1, STYLE.heading("confusion") | confusion)
    return PageTable(columns, len(rows), fit.data.n_annotators, leading_estimate(fit))


def item_rows(consensus: Consensus, max_rows: int) -> Codes:
    """Return the codes of the items on the page: of too many, the most difficult."""
    return np.sort(np.argsort(-consensus.difficulty, kind="stable")[:max_rows])


def item_table(fit: Fit, consensus: Consensus, advice: Advice, max_rows: int) -> PageTable:
    """Return the table of items, most difficult first; of more than ``max_rows`` the first."""
    data, theta, rows = fit.data, fit.distribution, item_rows(consensus, max_rows)
    table = fit.item_table()
    if theta is not None:  # the bar chart shows the columns of categories
        table = table.drop_columns(
            [name for name in share_names(fit) if name in table.column_names]
        )
    if "entropy" in table.column_names:
        table = table.drop_columns("entropy")
    of_items = advice.of_items
    said = {
        "spread": consensus.relative_difficulty,
        "status": of_items.status.tolist(),
        "add": advice.add,
        "why": of_items.why,
    }
    columns = STYLE.columns(insert_columns(table, said, after=("n_labels", "confidence")), rows)
    amend(columns, "expectation", domain=[data.scale.values[0], data.scale.values[-1]])
    amend(columns, "confidence", help=READOUT_TIPS[fit.readout])
    if fit.label is not None:
        codes = fit.label[rows].tolist()
        amend(columns, "label", names=data.scale.names, values=codes, colored=True)
    for column in columns:
        if column["key"] == "disputed":
            column["hidden"] = not any(column["values"])
    given = STYLE.heading("given") | _bars(
        data.item_ptr, data.cell_category, np.diff(data.cell_ptr), rows
    )
    if theta is None:
        amend(columns, "spread", help="how evenly its labels are spread: 0% when all are the same")
        columns.insert(1, given | {"hidden": False})
    else:
        bars = _bars(theta.ptr, theta.category, np.round(100.0 * theta.probability), rows)
        tip = f"recovered distribution over the categories: {READOUTS[fit.readout]}"
        columns.insert(1, STYLE.heading("distribution") | bars | {"help": tip})
        columns.append(given | {"hidden": True})
    return PageTable(columns, len(rows), data.n_items, "spread", descending=True)


@dataclass(frozen=True, eq=False)
class DoubtfulLabels:
    """The labels that are probably not serious, by person."""

    n_labels: int  # how many labels are doubtful
    # how many annotators to drop gave some of them, and how many: they are not in the table
    n_dropped: int
    n_dropped_labels: int
    table: PageTable  # one row per other annotator with doubtful labels


def doubtful_labels(fit: Fit, consensus: Consensus, advice: Advice) -> DoubtfulLabels | None:
    """Return the labels that are probably not serious, by person, those with most of them first.

    Annotators to drop are left out, as their labels go with them. None for models that do not
    say how likely labels are serious.
    """
    if fit.p_serious is None:
        return None
    data, n_categories = fit.data, fit.data.n_categories
    doubtful = np.flatnonzero(fit.p_serious < SPAMMER_BELOW)
    counts = np.bincount(data.annotator[doubtful], minlength=data.n_annotators)
    dropped = advice.of_annotators.verdict == "drop"
    on_page = annotator_rows(fit, consensus)
    people = np.flatnonzero((counts > 0) & ~dropped)
    rows = people[np.isin(people, on_page)]
    # The most common pair of each annotator: the last in the order of their counts.
    pair = (
        consensus.category[doubtful] * n_categories + consensus.recovered[consensus.item[doubtful]]
    )
    keys, n = np.unique(
        data.annotator[doubtful].astype(np.int64) * n_categories**2 + pair, return_counts=True
    )
    most = np.zeros(data.n_annotators, dtype=np.int64)
    order = np.argsort(n, kind="stable")
    most[keys[order] // n_categories**2] = order
    names = data.scale.names
    pairs = [
        f"{names[given]} → {names[recovered]} ({n[k]:,})"
        for k in most[rows]
        for given, recovered in [divmod(int(keys[k] % n_categories**2), n_categories)]
    ]
    table = {
        "annotator": data.annotators.take(as_arrow(rows)),
        "doubtful": counts[rows],
        "share": counts[rows] / data.labels_per_annotator[rows],
        "most_common": pairs,
    }
    if (name := leading_estimate(fit)) != "matches":
        table[name] = getattr(fit, name)[rows]
    table["verdict"] = advice.of_annotators.verdict[rows].tolist()
    opens = np.searchsorted(on_page, rows).tolist()
    page = PageTable(
        STYLE.columns(table), len(rows), len(people), "doubtful", descending=True, opens=opens
    )
    left_out = dropped & (counts > 0)
    return DoubtfulLabels(len(doubtful), int(left_out.sum()), int(counts[left_out].sum()), page)


def without_spammer(fit: Fit[Any]) -> pa.Table:
    """Return the table of annotators without the column that the verdict says better."""
    table = fit.annotator_table()
    return table if fit.spammer is None else table.drop_columns("spammer")


def insert_columns(table: pa.Table, columns: Mapping[str, Any], after: Collection[str]) -> pa.Table:
    """Return a table with further columns after the last of some of its columns."""
    names = table.column_names
    place = 1 + max((k for k, name in enumerate(names) if name in after), default=0)
    made = table_of(columns)
    for k, name in enumerate(made.column_names):
        table = table.add_column(place + k, name, made[name])
    return table


def amend(columns: Iterable[PageColumn], key: str, **entries: Any) -> None:
    """Change entries of the column of a key, if there is one."""
    for column in columns:
        if column["key"] == key:
            column |= entries


def number_cells(values: Any) -> PageColumn:
    """Return the cells of numbers, rounded to what one reads; what is not finite is null."""
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return {"kind": "count", "values": values.tolist()}
    finite = values[np.isfinite(values)]
    largest = float(np.abs(finite).max()) if len(finite) else 0.0
    # More than are shown, so that what is shown is rounded once.
    digits = 4 if largest <= 1 else 3 if largest <= 10 else 2 if largest <= 1000 else 0
    if largest > 1 and (finite == np.round(finite)).all():
        digits = 0
    listed = np.round(values, digits).tolist()
    if digits == 0 or len(finite) < len(values):
        listed = [None if not math.isfinite(v) else (int(v) if digits == 0 else v) for v in listed]
    return {"kind": "number", "digits": min(digits, 2), "values": listed}


def _cells(name: str, values: pa.Array) -> PageColumn:
    """Return the cells of a column: ids, numbers, truth values, or texts, each stored once."""
    if name in ("item", "annotator"):
        return _id_cells(values)
    if pa.types.is_boolean(values.type):
        return {"kind": "flag", "values": [int(value) for value in values.to_pylist()]}
    if name != "label" and (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        return number_cells(values.to_numpy(zero_copy_only=False))
    codes_of: dict[str, int] = {}
    texts = ("" if value is None else str(value) for value in values.to_pylist())
    codes = [codes_of.setdefault(text, len(codes_of)) for text in texts]
    return {"kind": "word", "names": list(codes_of), "values": codes}


def _id_cells(values: pa.Array) -> PageColumn:
    """Return the cells of ids; integers stay numbers, so that they sort, unless too large."""
    values = to_plain(values)
    listed = values.to_pylist()
    integers = pa.types.is_integer(values.type)
    if not (integers and all(abs(v) < _MAX_JAVASCRIPT_INTEGER for v in listed)):
        listed = [str(value) for value in listed]
    return {"kind": "id", "values": listed}


def _bars(ptr: Codes, category: Any, value: Any, rows: Codes) -> PageColumn:
    """Return small bar charts: what each row has of each category, without zeros."""
    n = np.diff(ptr)[rows]
    # The entries of the kept rows, one after the other.
    entries = np.repeat(ptr[rows] - np.concatenate([[0], np.cumsum(n)[:-1]]), n) + np.arange(
        n.sum()
    )
    row, value = np.repeat(np.arange(len(rows)), n), np.asarray(value)[entries]
    some = np.flatnonzero(value > 0)
    return {
        "kind": "bars",
        "lengths": np.bincount(row[some], minlength=len(rows)).tolist(),
        "categories": np.asarray(category)[entries][some].tolist(),
        "values": value[some].astype(int).tolist(),
    }


STYLE = TableStyle(
    headings=HEADINGS,
    first=(
        *("annotator", "item", "accuracy", "reliability", "label", "expectation", "verdict"),
        *("doubtful", "share", "status", "confidence", "most_common", "n_labels", "behavior"),
        *("matches", "distribution", "given", "reason", "why", "confusion"),
    ),
    hidden=(
        *("low", "high", "score_low", "score_high", "confidence_low", "confidence_high"),
        *("accuracy_low", "accuracy_high", "p_spammer", "evidence", "agreement", "p_leads"),
        *("may_lead", "bias_std", "inconsistency_std"),
    ),
    shares=("confidence", "spread", "matches", "share"),
    intervals={
        "accuracy": ("accuracy_low", "accuracy_high"),
        "reliability": ("low", "high"),
        "expectation": ("score_low", "score_high"),
    },
)
"""The style of the tables of labels."""
