"""One item or annotator of a fit, and why: what `Fit.item` and `Fit.annotator` return."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.errors import InputError, counted, did_you_mean, shorten, shown
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import READOUTS
from annotruth.models.fits.notes import DISPUTED_RULE
from annotruth.models.result import Fit
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.frames import as_arrow, from_arrow, make_column
from annotruth.report.consensus import Consensus, ItemVotes
from annotruth.report.tables import leading_estimate

MAX_SHOWN = 14
"""How many labels, comparisons or answers the text shows."""

_TABLES = {"labels": "labels", "comparisons": "comparisons", "sets": "answers"}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What a fit says of one item or annotator, and why; notebooks and terminals show it as text.

    Attributes
    ----------
    kind, id
        "item" or "annotator", and which one.
    sentences
        What was found and why, the result first.
    facts
        The row of the table of items or annotators, with status or verdict and the reason.
    distribution
        The probability of each label of an item, most likely first; empty where there is none.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [("a", "ann", "cat"), ("a", "bob", "cat"), ("a", "eve", "dog"), ("b", "ann", "dog")]
    >>> item = at.fit(labels, "majority").item("a")
    >>> item.sentences[0], item.facts["label"], round(item.distribution["cat"], 2)
    ('cat: 67% (shares of opinion)', 'cat', 0.67)
    """

    kind: str
    id: Any
    sentences: Sequence[str]
    facts: Mapping[str, Any]
    distribution: Mapping[Any, float]
    _table: pa.Table
    _frame: str

    def table(self) -> Any:
        """Return the labels, comparisons or answers concerned, in the caller's frame library.

        Of an item, those that count most come first; ``odds`` is by how much a label multiplies the odds
        of the item's label against the runner-up. Of an annotator, the most doubtful come first.
        """
        return from_arrow(self._table, self._frame)

    def to_dict(self, max_rows: int = MAX_SHOWN) -> dict[str, Any]:
        """Return all of it as JSON types, with some rows of the table."""
        rows = self._table.slice(0, max_rows)
        return {
            self.kind: to_json(self.id),
            "why": list(self.sentences),
            "facts": {name: to_json(value) for name, value in self.facts.items()},
            "distribution": {str(label): to_json(p) for label, p in self.distribution.items()},
            "rows": [{k: to_json(v) for k, v in row.items()} for row in rows.to_pylist()],
            "n_rows": self._table.num_rows,
        }

    def __repr__(self) -> str:
        table = self._table.slice(0, MAX_SHOWN)
        columns = [[name, *map(_cell, table[name].to_pylist())] for name in table.column_names]
        widths = [max(map(len, column)) for column in columns]
        lines = zip(*columns, strict=True)
        left = self._table.num_rows - table.num_rows
        return "\n".join(
            [
                f"{self.kind} {shorten(str(self.id))}: {self.sentences[0]}",
                *self.sentences[1:],
                *("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines),
                *([f"and {left:,} more"] if left else []),
            ]
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def explain_item(fit: Fit[Any], item: Any) -> Explanation:
    """Return what a fit says of an item, and who said what; raise if it has no such item."""
    data, e = fit.data, _code_of(item, fit, "item")
    if fit.kind == "comparisons":
        concerned = (data.left == e) | (data.right == e)
    else:
        concerned = data.item_of_label() == e
    facts = _row(fit, "items", e)
    rows, label = _rows(fit, concerned), None
    shares = np.empty(0)
    if fit.kind == "labels":
        advice, votes = _advice(fit), _votes(fit)
        facts |= {"status": str(advice.of_items.status[e]), "why": advice.of_items.why[e].as_py()}
        rows = _with_weights(rows, votes, np.flatnonzero(concerned))
        label = facts.get("label")
        if fit.distribution is not None:
            shares = fit.distribution.rows(np.array([e]), data.n_categories)[0]
            runner_up = int(votes.runner_up[e])
            facts["runner_up"] = _names(fit)[runner_up] if runner_up >= 0 else None
    elif fit.kind == "sets":
        shares = fit.probability[e]
    if fit.kind != "comparisons":
        rows = rows.drop_columns(["item"])
    names = _names(fit)
    order = np.argsort(-shares, kind="stable")
    distribution = {names[k]: float(shares[k]) for k in order if shares[k] > 0}
    rows = _sorted(rows, label, descending=True)
    sentences = _WHY_ITEM[fit.kind](fit, facts, rows, distribution)
    return _explanation(fit, "item", data.items[e].as_py(), sentences, facts, distribution, rows)


def explain_annotator(fit: Fit[Any], annotator: Any) -> Explanation:
    """Return what a fit says of an annotator, and what they gave; raise if it has no such annotator."""
    data, s = fit.data, _code_of(annotator, fit, "annotator")
    is_pairs = fit.kind == "comparisons"
    concerned = (data.annotator_of_comparison() if is_pairs else data.annotator) == s
    verdict = fit.verdict_table().slice(s, 1).to_pylist()[0]
    facts = _row(fit, "annotators", s) | verdict
    rows = _rows(fit, concerned)
    if fit.kind == "labels":
        recovered = Consensus(fit).recovered[data.item_of_label()]
        codes = data.in_row_order(recovered)[data.in_row_order(concerned)]
        column = data.scale.categories.take(as_arrow(np.ascontiguousarray(codes)))
        rows = rows.add_column(rows.column_names.index("label") + 1, "recovered", column)
    rows = _sorted(rows.drop_columns(["annotator"]), None, descending=False)
    sentences = [f"{facts['verdict']}: {facts['reason']}"]
    return _explanation(fit, "annotator", facts["annotator"], sentences, facts, {}, rows)


def _explanation(
    fit: Fit[Any],
    kind: str,
    name: Any,
    sentences: list[str],
    facts: Mapping[str, Any],
    distribution: Mapping[Any, float],
    rows: pa.Table,
) -> Explanation:
    if fit.notice():
        sentences.insert(1, f"WARNING: {fit.notice()}")
    return Explanation(kind, name, sentences, facts, distribution, rows, fit.data.frame)


def _code_of(name: Any, fit: Fit[Any], role: str) -> int:
    """Return the code of an item or annotator; raise if the fit has none of that id."""
    ids = fit.data.items if role == "item" else fit.data.annotators
    code = int(match_ids(make_column(role, [name]), ids)[0])
    if code < 0:
        near = (
            did_you_mean(name, to_text(ids).to_pylist()) or f"; the first is {shown(str(ids[0]))}"
        )
        raise InputError(f"the fit has no {role} {shown(name)} among {len(ids):,}{near}")
    return code


def _row(fit: Fit[Any], table: str, code: int) -> dict[str, Any]:
    """Return a row of the table of items or annotators, without the distribution.

    Rows of rankings are not in the order of codes.
    """
    found, key = fit.table(table), table[:-1]
    if fit.kind == "comparisons":
        ids = fit.data.items if table == "items" else fit.data.annotators
        code = int(match_ids(ids.slice(code, 1), found[key].combine_chunks())[0])
    row: dict[str, Any] = found.slice(code, 1).to_pylist()[0]
    shares = {f"p_{name}" for name in _names(fit)} if table == "items" else set()
    return {name: value for name, value in row.items() if name not in shares}


def _names(fit: Fit[Any]) -> list[Any]:
    """Return what the columns of an item's distribution stand for."""
    if fit.kind == "sets":
        return list(fit.table("labels")["label"].to_pylist())
    return list(fit.data.scale.categories.to_pylist()) if fit.distribution is not None else []


def _rows(fit: Fit[Any], concerned: Any) -> pa.Table:
    """Return the rows of the table of labels, comparisons or answers that are concerned."""
    return fit.table(_TABLES[fit.kind]).filter(as_arrow(fit.data.in_row_order(concerned)))


@lru_cache(maxsize=1)
def _advice(fit: Fit) -> Advice:
    return advise(fit)


@lru_cache(maxsize=1)
def _votes(fit: Fit) -> ItemVotes:
    return ItemVotes(fit)


def _with_weights(rows: pa.Table, votes: ItemVotes, labels: Codes) -> pa.Table:
    """Return the labels of an item with what is known of their annotators, and what each did."""
    fit = votes.fit
    labels = labels[np.argsort(fit.data.row[labels], kind="stable")]
    estimate = fit.annotator_values().get(leading_estimate(fit))
    if estimate is not None:
        values = np.asarray(estimate, dtype=np.float64)[fit.data.annotator[labels]]
        rows = rows.append_column(leading_estimate(fit), as_arrow(values))
    if votes.log_odds is not None:
        rows = rows.append_column("odds", as_arrow(np.exp(votes.log_odds[labels])))
    return rows


def _sorted(rows: pa.Table, label: Any, *, descending: bool) -> pa.Table:
    """Return rows with those for the label first, then by how serious they are."""
    order = "descending" if descending else "ascending"
    by = [("p_serious", order)] if "p_serious" in rows.column_names else []
    if label is not None:
        is_other = as_arrow(
            np.array([each != label for each in rows["label"].to_pylist()], dtype=np.int8)
        )
        rows = rows.append_column("_other", is_other)
        by = [("_other", "ascending"), *by]
    rows = rows.take(pc.sort_indices(rows, sort_keys=by)) if by else rows
    return rows.drop_columns(["_other"]) if label is not None else rows


def _why_label(
    fit: Fit, facts: Mapping[str, Any], rows: pa.Table, distribution: Mapping[Any, float]
) -> list[str]:
    n, label = rows.num_rows, facts.get("label")
    if label is None:
        found = [f"score {facts['expectation']:.2f} from {counted(n, 'label')}"]
    else:
        given = rows["label"].to_pylist()
        found = [f"{_cell(label)}: {distribution[label]:.0%} ({READOUTS[fit.readout]})"]
        votes = f"{given.count(label):,} of {counted(n, 'label')} say so"
        if (other := facts["runner_up"]) is not None:
            share = f"{distribution.get(other, 0.0):.0%}, {counted(given.count(other), 'label')}"
            votes += f"; the runner-up is {_cell(other)} ({share})"
        found.append(votes)
        if facts.get("disputed"):
            found.append(f"disputed: {DISPUTED_RULE}")
    return [*found, f"{facts['status']}: {facts['why']}"]


def _why_rank(
    fit: Fit[Any], facts: Mapping[str, Any], rows: pa.Table, _: Mapping[Any, float]
) -> list[str]:
    sides = {"left": rows["left"].to_pylist(), "right": rows["right"].to_pylist()}
    outcomes = rows["outcome"].to_pylist()
    won = sum(k in sides and sides[k][n] == facts["item"] for n, k in enumerate(outcomes))
    decided = sum(outcome in sides for outcome in outcomes)
    rank = f"rank {facts['rank']:,} of {fit.data.n_items:,}"
    within = f"{facts['rank_low']:,} to {facts['rank_high']:,}"
    counts = f"won {won:,}, lost {decided - won:,}, tied {rows.num_rows - decided:,}"
    return [
        f"{rank} ({within}), score {facts['score']:.2f}",
        f"{counts} of {counted(rows.num_rows, 'comparison')}",
    ]


def _why_set(
    fit: Fit[Any], facts: Mapping[str, Any], rows: pa.Table, _: Mapping[Any, float]
) -> list[str]:
    same = rows["labels"].to_pylist().count(facts["labels"])
    return [
        f"{facts['labels'] or 'no label'}: probability {facts['confidence']:.2f}",
        f"{same:,} of {counted(rows.num_rows, 'answer')} are exactly this set",
    ]


_WHY_ITEM: Mapping[str, Any] = {
    "labels": _why_label,
    "comparisons": _why_rank,
    "sets": _why_set,
}


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else shorten(str(value), 40)


def to_json(value: Any, digits: int = 6) -> Any:
    """Return a value as a JSON type; numbers with some digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
