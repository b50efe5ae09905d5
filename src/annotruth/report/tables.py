"""The page's tables: the fit's own, with a picture and advice for every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.advice.advice import Advice
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.report.columns import Column, from_arrow, numbers, sparse, words
from annotruth.report.consensus import Bins, Consensus

MOST_ANNOTATORS = 20_000
MOST_LABELS = 2_000


@dataclass(frozen=True, eq=False)
class Table:
    """One table of the page; ``rows`` of ``total`` are in it.

    It opens in the order of a column, or, where ``order`` is empty, in the order of its rows.
    """

    columns: list[Column]
    rows: int
    total: int
    order: str = ""
    falling: bool = False


def annotator_table(fit: Fit, consensus: Consensus, advice: Advice, bins: Bins) -> Table:
    """Make the table of annotators, least reliable first."""
    by = consensus.matches if fit.reliability is None else fit.reliability
    rows = np.sort(np.argsort(by, kind="stable")[:MOST_ANNOTATORS])
    columns = from_arrow(fit.annotator_table(), rows)
    picture = {
        "key": "picture",
        "title": "Pattern",
        "help": "rows: recovered label, columns: label given, darker: more often; "
        "a diagonal is agreement",
        "kind": "matrix",
        "size": len(bins),
        "values": consensus.confusion(bins)[rows].ravel().tolist(),
        "main": True,
    }
    matches = numbers("matches", consensus.matches[rows]) | {
        "title": "Matches",
        "help": "share of their labels that are the recovered label",
        "main": fit.reliability is None,
    }
    for column in columns:
        if column["key"] == "reliability":
            column["domain"] = [0, 1]
            if fit.spammer is not None:
                column["limit"] = SPAMMER_BELOW
    columns[1:1] = [picture]
    after = 1 + max(_place(columns, key) for key in ("n_labels", "reliability", "behavior"))
    people = advice.of_annotators
    ask = [int(asked) for asked in people.ask[rows]]
    columns[after:after] = [
        matches,
        words("verdict", people.verdict[rows].tolist())
        | {"title": "Verdict", "help": "see What to do next", "main": False},
        {
            "key": "ask",
            "title": "Ask",
            "help": "whether to give them more items",
            "kind": "flag",
            "values": ask,
        },
    ]
    columns.append(
        words("reason", [people.reason[s] for s in rows])
        | {"title": "Reason", "help": "the reason for the verdict"}
    )
    order = "matches" if fit.reliability is None else "reliability"
    return Table(columns, len(rows), fit.data.n_annotators, order)


def item_table(fit: Fit, consensus: Consensus, advice: Advice, most: int) -> Table:
    """Make the table of items, most difficult first; of these ``most`` where there are more."""
    data, theta = fit.data, fit.distribution
    difficulty = consensus.difficulty()
    rows = np.sort(np.argsort(-difficulty, kind="stable")[:most])
    columns = from_arrow(_without_distribution(fit), rows)
    for column in columns:
        if column["key"] == "expectation":
            column["domain"] = [data.scale.values[0], data.scale.values[-1]]
        if column["key"] == "label" and fit.label is not None:
            column |= {"names": data.scale.names, "values": fit.label[rows].tolist()}
            column |= {"coloured": True, "main": fit.expectation is None}
    votes = sparse(data.item_ptr, data.cell_category, np.diff(data.cell_ptr), rows) | {
        "key": "votes",
        "title": "Votes",
        "help": "labels as they were given",
        "hidden": theta is not None,
        "main": True,
    }
    if theta is None:
        spread = {"title": "Difficulty", "help": "entropy of its votes"}
        columns.append(numbers("entropy", difficulty[rows]) | spread)
        columns[1:1] = [votes]
    else:
        share = np.round(100.0 * theta.probability)
        picture = {
            "key": "distribution",
            "title": "Distribution",
            "help": "recovered distribution over the categories",
            "main": True,
        }
        columns[1:1] = [sparse(theta.ptr, theta.category, share, rows) | picture]
        columns.append(votes)
    after = 1 + max(_place(columns, key) for key in ("n_labels", "entropy"))
    columns[after:after] = [
        words("status", advice.of_items.status[rows].tolist())
        | {"title": "Status", "help": "see What to do next", "main": False},
        numbers("add", advice.add[rows])
        | {"title": "Add", "help": "how many labels to add in the next round"},
        words("why", advice.of_items.why.take(pa.array(rows)).to_pylist())
        | {"title": "Why", "help": "the reason for the status"},
    ]
    if (data.known >= 0).any():
        known = [int(k) for k in data.known[rows] >= 0]
        columns.append({"key": "known", "title": "Known", "help": "its truth was given",
                        "kind": "flag", "values": known})  # fmt: skip
    return Table(columns, len(rows), data.n_items, "entropy", True)


def label_table(fit: Fit, consensus: Consensus) -> Table | None:
    """Make the table of labels that are probably not serious, the least likely first.

    Of equally unlikely ones, those whose item speaks most against them come first.
    """
    if fit.p_serious is None:
        return None
    data, p = fit.data, fit.p_serious
    doubtful = np.flatnonzero(p < SPAMMER_BELOW)
    support = _probability_of(fit, consensus.item[doubtful], consensus.category[doubtful])
    order = np.lexsort((support, p[doubtful]))[:MOST_LABELS]
    rows, support = doubtful[order], support[order]
    item, category, who = consensus.item[rows], consensus.category[rows], data.annotator[rows]
    given = {"key": "label", "title": "Given", "help": "the label this annotator gave"}
    recovered = {"key": "recovered", "title": "Recovered", "help": "the item's recovered label"}
    named = {"kind": "word", "coloured": True, "names": data.scale.names}
    columns = [
        *from_arrow(pa.table({"item": data.items}), item),
        *from_arrow(pa.table({"annotator": data.annotators}), who),
        given | named | {"values": category.tolist(), "main": True},
        recovered | named | {"values": consensus.truth[item].tolist()},
        *from_arrow(pa.table({"p_serious": p}), rows),
        numbers("support", support)
        | {"kind": "share", "title": "Support", "help": "probability of this label for this item"},
    ]
    if fit.reliability is not None:
        of_whom = {"title": "Reliability", "help": "of the annotator"}
        columns.append(numbers("reliability", fit.reliability[who]) | of_whom)
    return Table(columns, len(rows), len(doubtful))


def _without_distribution(fit: Fit) -> pa.Table:
    """Make the items' table without a column a category, which the picture shows."""
    table = fit.item_table()
    if fit.distribution is None:
        return table
    shares = set(fit.share_names())
    return table.select([name for name in table.column_names if name not in shares])


def _probability_of(fit: Fit, item: Codes, category: Any) -> Floats:
    """Look up each item's probability of a category."""
    theta, n = fit.distribution, fit.data.n_categories
    assert theta is not None  # a model that knows serious labels has distributions
    keys, wanted = theta.item() * n + theta.category, item * n + category
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, theta.probability[at], 0.0)


def _place(columns: Sequence[Column], key: str) -> int:
    return next((at for at, column in enumerate(columns) if column["key"] == key), 0)
