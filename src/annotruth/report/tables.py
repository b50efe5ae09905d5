"""The tables of the report: those of the fit, with small charts and the advice for every row.

A table is a list of columns, each a dictionary that the page's script reads: ``kind`` says how a
cell is drawn, and texts are stored once, as codes into ``names``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import Advice
from annotruth.analyses.advice.annotators import has_flags
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import READOUTS, SPAMMER_BELOW
from annotruth.models.fits.tables import share_names
from annotruth.models.result import Fit
from annotruth.observations.frames import as_arrow
from annotruth.observations.scale import to_plain
from annotruth.report.consensus import CategoryBins, Consensus
from annotruth.report.headings import ACCURACY_TIPS, HEADINGS, READOUT_TIPS, THRESHOLD_HEADINGS

PageColumn: TypeAlias = dict[str, Any]

MAX_ANNOTATORS = 20_000

# Which columns a small screen or a sheet of paper shows: the first of these that have room.
_RANKS = (
    *("annotator", "item", "accuracy", "reliability", "label", "expectation", "verdict"),
    *("doubtful", "share", "status", "confidence", "most_common", "n_labels", "behavior"),
    *("matches", "distribution", "given", "reason", "why", "confusion"),
)
# Columns that only a row's dialog and CSV files show.
_HIDDEN = {
    *("low", "high", "score_low", "score_high", "confidence_low", "confidence_high"),
    *("accuracy_low", "accuracy_high", "p_spammer", "evidence", "agreement", "p_leads"),
    *("may_lead", "bias_std", "inconsistency_std"),
}
_INTERVALS = {
    "accuracy": ("accuracy_low", "accuracy_high"),
    "reliability": ("low", "high"),
    "expectation": ("score_low", "score_high"),
}
_PERCENTAGES = {"confidence", "matches", "share"}
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
    """How tables of another kind than labels are shown: headings, and where columns stand."""

    headings: Mapping[str, tuple[str, str]]  # the heading and the tip of a column
    first: Sequence[str]  # the columns that a small screen shows first
    hidden: frozenset[str]  # those that only dialogs and CSV files show
    shares: frozenset[str]  # numbers that are shown in percent

    def apply(self, columns: list[PageColumn]) -> list[PageColumn]:
        """Return columns in this style."""
        for column in columns:
            key = column["key"]
            if key in self.headings:
                column["title"], column["help"] = self.headings[key]
            if key in self.shares and column["kind"] == "number":
                column["kind"] = "share"
            column["hidden"] = key in self.hidden
            column["rank"] = self.first.index(key) if key in self.first else len(self.first)
        return columns


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
    table = fit.annotator_table()
    if fit.spammer is not None:  # the verdict says it better: it considers the interval
        table = table.drop_columns("spammer")
    columns = columns_of(table, rows)
    for column in columns:
        if column["key"] in ("accuracy", "reliability"):
            column["domain"] = [0, 1]
            if has_flags(fit):
                column["warn"] = (people.verdict[rows] == "drop").astype(int).tolist()
            elif fit.spammer is not None:
                column["limit"] = SPAMMER_BELOW
        if column["key"] == "accuracy":
            column["help"] = ACCURACY_TIPS[fit.readout]
        if column["key"] == "reliability" and fit.accuracy is not None:
            # The dialog has its interval.
            column |= {"kind": "number", "rank": _RANKS.index("matches")}
    confusion = {
        **_heading("confusion"),
        "kind": "matrix",
        "size": len(bins),
        "values": consensus.confusion(bins)[rows].ravel().tolist(),
    }
    columns[1:1] = [confusion]
    after = 1 + max(_place(columns, key) for key in ("n_labels", "reliability", "behavior"))
    columns[after:after] = [
        number_column("matches", consensus.match_rate[rows]) | {"hidden": fit.accuracy is not None},
        text_column("verdict", people.verdict[rows].tolist()),
        flag_column("ask", people.ask[rows].tolist()),
    ]
    columns.append(text_column("reason", [people.reason[s] for s in rows]))
    return PageTable(columns, len(rows), fit.data.n_annotators, leading_estimate(fit))


def item_rows(consensus: Consensus, max_rows: int) -> Codes:
    """Return the codes of the items on the page: of too many, the most difficult."""
    return np.sort(np.argsort(-consensus.difficulty, kind="stable")[:max_rows])


def item_table(fit: Fit, consensus: Consensus, advice: Advice, max_rows: int) -> PageTable:
    """Return the table of items, most difficult first; of more than ``max_rows`` the first."""
    data, theta, rows = fit.data, fit.distribution, item_rows(consensus, max_rows)
    columns = columns_of(_without_distribution(fit), rows)
    for column in columns:
        if column["key"] == "expectation":
            column["domain"] = [data.scale.values[0], data.scale.values[-1]]
        if column["key"] == "label" and fit.label is not None:
            column |= {"names": data.scale.names, "values": fit.label[rows].tolist()}
            column["colored"] = True
        if column["key"] == "disputed":
            column["hidden"] = not any(column["values"])
        if column["key"] == "confidence":
            column["help"] = READOUT_TIPS[fit.readout]
    given = {
        **_heading("given"),
        **_bar_column(data.item_ptr, data.cell_category, np.diff(data.cell_ptr), rows),
        "hidden": theta is not None,
    }
    if theta is None:
        tip = {"help": "entropy of its labels: 0 when all are the same"}
        columns.append(number_column("entropy", consensus.difficulty[rows]) | tip)
        columns[1:1] = [given]
    else:
        percent = np.round(100.0 * theta.probability)
        tip = {"help": f"recovered distribution over the categories: {READOUTS[fit.readout]}"}
        bars = _bar_column(theta.ptr, theta.category, percent, rows)
        columns[1:1] = [{**_heading("distribution"), **bars, **tip}]
        columns.append(given)
    after = 1 + max(_place(columns, key) for key in ("n_labels", "entropy"))
    columns[after:after] = [
        text_column("status", advice.of_items.status[rows].tolist()),
        number_column("add", advice.add[rows]),
        text_column("why", advice.of_items.why.take(as_arrow(rows)).to_pylist()),
    ]
    return PageTable(columns, len(rows), data.n_items, "entropy", descending=True)


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
    columns = [
        *columns_of(pa.table({"annotator": data.annotators}), rows),
        number_column("doubtful", counts[rows]),
        number_column("share", counts[rows] / data.labels_per_annotator[rows]),
        text_column("most_common", pairs),
    ]
    if (name := leading_estimate(fit)) != "matches":
        columns.append(number_column(name, getattr(fit, name)[rows]))
    columns.append(text_column("verdict", advice.of_annotators.verdict[rows].tolist()))
    opens = np.searchsorted(on_page, rows).tolist()
    table = PageTable(columns, len(rows), len(people), "doubtful", descending=True, opens=opens)
    left_out = dropped & (counts > 0)
    return DoubtfulLabels(len(doubtful), int(left_out.sum()), int(counts[left_out].sum()), table)


def columns_of(table: pa.Table, rows: NDArray[np.integer[Any]]) -> list[PageColumn]:
    """Return some rows of a fit's table as columns of the page."""
    columns = []
    for name in table.column_names:
        values = table[name].combine_chunks().take(as_arrow(rows))
        if name in ("item", "annotator"):
            column = _id_column(name, values)
        elif pa.types.is_boolean(values.type):
            column = flag_column(name, values.to_pylist())
        elif name != "label" and (
            pa.types.is_floating(values.type) or pa.types.is_integer(values.type)
        ):
            column = number_column(name, values.to_numpy(zero_copy_only=False))
        else:
            texts = [None if v is None else str(v) for v in values.to_pylist()]
            column = text_column(name, texts)
        ends = _INTERVALS.get(name, ())
        if ends and set(ends) <= set(table.column_names):
            column |= {"kind": "range", "ends": ends}
        columns.append(column)
    return columns


def text_column(name: str, values: Sequence[str | None]) -> PageColumn:
    """Return a column of texts, each stored once."""
    codes_of: dict[str | None, int] = {}
    codes = [codes_of.setdefault(value, len(codes_of)) for value in values]
    names = ["" if value is None else value for value in codes_of]
    return {**_heading(name), "kind": "word", "names": names, "values": codes}


def number_column(name: str, values: Any) -> PageColumn:
    """Return a column of numbers, rounded to what one reads; what is not finite is null."""
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return {**_heading(name), "kind": "count", "values": values.tolist()}
    finite = values[np.isfinite(values)]
    largest = float(np.abs(finite).max()) if len(finite) else 0.0
    # More than are shown, so that what is shown is rounded once.
    digits = 4 if largest <= 1 else 3 if largest <= 10 else 2 if largest <= 1000 else 0
    if largest > 1 and (finite == np.round(finite)).all():
        digits = 0
    listed = np.round(values, digits).tolist()
    if digits == 0 or len(finite) < len(values):
        listed = [None if not math.isfinite(v) else (int(v) if digits == 0 else v) for v in listed]
    kind = "share" if name in _PERCENTAGES else "number"
    return {**_heading(name), "kind": kind, "digits": min(digits, 2), "values": listed}


def flag_column(name: str, values: Sequence[bool]) -> PageColumn:
    """Return a column of truth values."""
    return {**_heading(name), "kind": "flag", "values": [int(value) for value in values]}


def _id_column(name: str, values: pa.Array) -> PageColumn:
    """Return a column of ids; integers stay numbers, so that they sort, unless too large."""
    values = to_plain(values)
    listed = values.to_pylist()
    integers = pa.types.is_integer(values.type)
    if not (integers and all(abs(v) < _MAX_JAVASCRIPT_INTEGER for v in listed)):
        listed = [str(value) for value in listed]
    return {**_heading(name), "kind": "id", "values": listed}


def _bar_column(ptr: Codes, category: Any, value: Any, rows: Codes) -> PageColumn:
    """Return a column of small bar charts: what each row has of each category, without zeros."""
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


def _heading(name: str) -> PageColumn:
    """Return the key of a column, its heading, the tip on it, and where it is shown."""
    text = name.replace("_", " ").strip()
    title, tip = HEADINGS.get(name, (text[:1].upper() + text[1:], ""))
    for start, sentence in THRESHOLD_HEADINGS.items():
        if name.startswith(start):
            threshold = name.removeprefix(start)
            title = f"{title.partition(' ')[0]} {threshold}"
            tip = sentence.format(threshold, threshold)
    rank = _RANKS.index(name) if name in _RANKS else len(_RANKS)
    hidden = name in _HIDDEN or name.startswith(tuple(THRESHOLD_HEADINGS))
    return {"key": name, "title": title, "help": tip, "rank": rank, "hidden": hidden}


def _without_distribution(fit: Fit) -> pa.Table:
    """Return the table of items without the columns of categories, which the bar chart shows."""
    table = fit.item_table()
    if fit.distribution is None:
        return table
    shares = set(share_names(fit))
    return table.select([name for name in table.column_names if name not in shares])


def _place(columns: Sequence[PageColumn], key: str) -> int:
    return next((k for k, column in enumerate(columns) if column["key"] == key), 0)
