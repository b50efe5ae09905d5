"""The tables of the report: those of the fit, with small charts and the advice for every row.

A table is a list of columns, each a dictionary that the page's script reads: ``kind`` says how a
cell is drawn, and texts are stored once, as codes into ``names``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.advice.advice import Advice
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels.frames import as_arrow
from annotruth.labels.scale import to_plain
from annotruth.models.base_fit import READOUTS, SPAMMER_BELOW, Readout
from annotruth.models.result import Fit
from annotruth.report.consensus import CategoryBins, Consensus

PageColumn: TypeAlias = dict[str, Any]

MAX_ANNOTATORS = 20_000
MAX_LABELS = 2_000

# Headings of the tables' columns, and the tips on them.
_TITLES = {
    "annotator": ("Annotator", ""),
    "item": ("Item", ""),
    "n_labels": ("Labels", "number of labels"),
    "reliability": ("Reliability", "probability that a label of theirs is serious (or right), with its 95% interval"),
    "low": ("Reliability from", "lower end of the 95% interval"),
    "high": ("Reliability to", "upper end of the 95% interval"),
    "spammer": ("Spammer", f"reliability below {SPAMMER_BELOW}"),
    "behavior": ("Behavior", "what they do when they are not serious, or serious"),
    "p_spammer": ("P spammer", "probability of being serious less than half of the time"),
    "evidence": ("Evidence", "log10 of how much their labels raised the odds of a spammer: 2 is a hundred to one for it, -3 a thousand to one against"),
    "bias": ("Bias", "how far their labels lie above the others', in steps of the scale"),
    "matches": ("Matches", "share of their labels that are the recovered label"),
    "verdict": ("Verdict", "see What to do next"),
    "ask": ("Ask", "whether to give them more items"),
    "reason": ("Reason", "the reason for the verdict"),
    "label": ("Label", "the recovered label: the most likely category"),
    "expectation": ("Score", "the recovered score, with its 95% interval where the model gives one"),
    "confidence": ("Confidence", ""),
    "entropy": ("Difficulty", "entropy of the recovered distribution: 0 when one category has it all"),
    "score_low": ("Score from", "lower end of the score's 95% interval"),
    "score_high": ("Score to", "upper end of the score's 95% interval"),
    "p_leads": ("P top label", "probability that the label is the true top label"),
    "may_lead": ("May lead", "the fewest categories that hold the top label with 95% probability"),
    "status": ("Status", "see What to do next"),
    "add": ("Add", "number of labels to add in the next round"),
    "why": ("Why", "the reason for the status"),
    "p_serious": ("P serious", "probability that this label was serious"),
    "support": ("Support", ""),
}  # fmt: skip
# Tips on columns that depend on what the items' probabilities are.
_READOUT_TIPS: dict[Readout, dict[str, str]] = {
    "right": {
        "confidence": "probability that the recovered label is the right one",
        "support": "probability that this label is the right one for this item",
    },
    "opinion": {
        "confidence": "share of opinion of the recovered label",
        "support": "share of opinion of this label for this item",
    },
}
# Small screens show these only.
_MAIN = {"annotator", "item", "reliability", "expectation", "label", "p_serious"}
_HIDDEN = {"low", "high", "score_low", "score_high"}
_INTERVALS = {"reliability": ("low", "high"), "expectation": ("score_low", "score_high")}
_PERCENTAGES = {"confidence", "matches", "support"}
_MAX_JAVASCRIPT_INTEGER = 2**53


@dataclass(frozen=True, eq=False)
class PageTable:
    """One table of the page; ``rows`` of ``total`` are in it.

    It opens sorted by a column, or, where ``sort_by`` is empty, in the order of its rows.

    Examples
    --------
    >>> PageTable([text_column("item", ["a", "b"])], rows=2, total=2).total
    2
    """

    columns: list[PageColumn]
    rows: int
    total: int
    sort_by: str = ""
    descending: bool = False


def annotator_table(
    fit: Fit, consensus: Consensus, advice: Advice, bins: CategoryBins
) -> PageTable:
    """Return the table of annotators, least reliable first."""
    people = advice.of_annotators
    by = consensus.match_rate if fit.reliability is None else fit.reliability
    rows = np.sort(np.argsort(by, kind="stable")[:MAX_ANNOTATORS])
    columns = columns_of(fit.annotator_table(), rows)
    for column in columns:
        if column["key"] == "reliability":
            column["domain"] = [0, 1]
            if fit.spammer is not None:
                column["limit"] = SPAMMER_BELOW
    confusion = {
        "key": "confusion",
        "title": "Confusion",
        "help": "confusion matrix: rows are recovered labels, columns the labels given; darker = "
        "more often; the diagonal is agreement",
        "kind": "matrix",
        "size": len(bins),
        "values": consensus.confusion(bins)[rows].ravel().tolist(),
        "main": True,
    }
    columns[1:1] = [confusion]
    after = 1 + max(_place(columns, key) for key in ("n_labels", "reliability", "behavior"))
    columns[after:after] = [
        number_column("matches", consensus.match_rate[rows]) | {"main": fit.reliability is None},
        text_column("verdict", people.verdict[rows].tolist()),
        flag_column("ask", people.ask[rows].tolist()),
    ]
    columns.append(text_column("reason", [people.reason[s] for s in rows]))
    sort_by = "matches" if fit.reliability is None else "reliability"
    return PageTable(columns, len(rows), fit.data.n_annotators, sort_by)


def item_table(fit: Fit, consensus: Consensus, advice: Advice, max_rows: int) -> PageTable:
    """Return the table of items, most difficult first; of more than ``max_rows`` the first."""
    data, theta = fit.data, fit.distribution
    rows = np.sort(np.argsort(-consensus.difficulty, kind="stable")[:max_rows])
    columns = columns_of(_without_distribution(fit), rows)
    for column in columns:
        if column["key"] == "expectation":
            column["domain"] = [data.scale.values[0], data.scale.values[-1]]
        if column["key"] == "label" and fit.label is not None:
            column |= {"names": data.scale.names, "values": fit.label[rows].tolist()}
            column |= {"colored": True, "main": fit.expectation is None}
        if column["key"] == "confidence":
            column["help"] = _READOUT_TIPS[fit.readout]["confidence"]
    given = _bar_column(data.item_ptr, data.cell_category, np.diff(data.cell_ptr), rows) | {
        "key": "given",
        "title": "Given",
        "help": "the labels as given",
        "hidden": theta is not None,
        "main": True,
    }
    if theta is None:
        tip = {"help": "entropy of its labels"}
        columns.append(number_column("entropy", consensus.difficulty[rows]) | tip)
        columns[1:1] = [given]
    else:
        percent = np.round(100.0 * theta.probability)
        distribution = _bar_column(theta.ptr, theta.category, percent, rows) | {
            "key": "distribution",
            "title": "Distribution",
            "help": f"recovered distribution over the categories: {READOUTS[fit.readout]}",
            "main": True,
        }
        columns[1:1] = [distribution]
        columns.append(given)
    after = 1 + max(_place(columns, key) for key in ("n_labels", "entropy"))
    columns[after:after] = [
        text_column("status", advice.of_items.status[rows].tolist()),
        number_column("add", advice.add[rows]),
        text_column("why", advice.of_items.why.take(as_arrow(rows)).to_pylist()),
    ]
    return PageTable(columns, len(rows), data.n_items, "entropy", descending=True)


def label_table(fit: Fit, consensus: Consensus) -> PageTable | None:
    """Return the table of labels that are probably not serious, the least likely first.

    Of equally unlikely ones, those with the lowest probability for their item come first.
    """
    if fit.p_serious is None:
        return None
    data, p_serious = fit.data, fit.p_serious
    doubtful = np.flatnonzero(p_serious < SPAMMER_BELOW)
    support = _probability_of(fit, consensus.item[doubtful], consensus.category[doubtful])
    order = np.lexsort((support, p_serious[doubtful]))[:MAX_LABELS]
    rows, support = doubtful[order], support[order]
    item, category, who = consensus.item[rows], consensus.category[rows], data.annotator[rows]
    given = {"key": "label", "title": "Given", "help": "the label this annotator gave"}
    recovered = {"key": "recovered", "title": "Recovered", "help": "the item's recovered label"}
    named = {"kind": "word", "colored": True, "names": data.scale.names}
    columns = [
        *columns_of(pa.table({"item": data.items}), item),
        *columns_of(pa.table({"annotator": data.annotators}), who),
        given | named | {"values": category.tolist(), "main": True},
        recovered | named | {"values": consensus.recovered[item].tolist()},
        *columns_of(pa.table({"p_serious": p_serious}), rows),
        number_column("support", support) | {"help": _READOUT_TIPS[fit.readout]["support"]},
    ]
    if fit.reliability is not None:
        tip = {"help": "of the annotator"}
        columns.append(number_column("reliability", fit.reliability[who]) | tip)
    return PageTable(columns, len(rows), len(doubtful))


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
        columns.append(column | {"hidden": name in _HIDDEN, "main": name in _MAIN})
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
    digits = 3 if largest <= 10 else 2 if largest <= 1000 else 0
    if largest > 1 and (finite == np.round(finite)).all():
        digits = 0
    listed = [
        None if not np.isfinite(v) else (int(v) if digits == 0 else v)
        for v in np.round(values, digits).tolist()
    ]
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
    """Return the key of a column, its heading and the tip on it."""
    text = name.replace("_", " ").strip()
    title, tip = _TITLES.get(name, (text[:1].upper() + text[1:], "from the model"))
    return {"key": name, "title": title, "help": tip}


def _without_distribution(fit: Fit) -> pa.Table:
    """Return the table of items without the columns of categories, which the bar chart shows."""
    table = fit.item_table()
    if fit.distribution is None:
        return table
    shares = set(fit.share_names())
    return table.select([name for name in table.column_names if name not in shares])


def _probability_of(fit: Fit, item: Codes, category: Any) -> Floats:
    """Return the probability of one category per item."""
    theta, n = fit.distribution, fit.data.n_categories
    assert theta is not None  # a model that gives p_serious has distributions
    keys, wanted = theta.item() * n + theta.category, item * n + category
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, theta.probability[place], 0.0)


def _place(columns: Sequence[PageColumn], key: str) -> int:
    return next((k for k, column in enumerate(columns) if column["key"] == key), 0)
