"""What the tools return: the verdict first, then people, items and what to do next; short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.pairs.advice import PairAdvice
from annotruth.errors import shorten
from annotruth.io.opened import OpenedFile
from annotruth.models.result import Fit
from annotruth.report.explain import Explanation, to_json
from annotruth.report.rank_verdict import rank_trust
from annotruth.report.verdict import trust_of

MAX_ROWS = 20
"""How many rows of a table a result has; the counts are of all."""

_MAX_TEXT = 300  # of one value

Row = dict[str, Any]


@dataclass(frozen=True)
class FitResult:
    """What was found in labels or comparisons."""

    verdict: str  # can they be used, in one or two sentences
    summary: list[str]
    people_in_question: list[Row]  # annotators to drop or look at: verdict and reason
    items: list[Row]  # those to relabel, most uncertain first; of a ranking the best
    next_steps: list[str]
    warnings: list[str]
    written: list[str]  # files


@dataclass(frozen=True)
class NextResult:
    """What to label or compare next, and whom to ask."""

    summary: list[str]
    add: list[Row]  # what to label or compare, the highest gain first
    ask: list[Row]  # annotators to ask, most informative first
    drop: list[Row]
    warnings: list[str]


@dataclass(frozen=True)
class ExplainResult:
    """What a fit says of one item or annotator, and why."""

    why: list[str]
    facts: Row
    distribution: dict[str, float]
    rows: list[Row]  # labels or comparisons: those that count most, or are most doubtful, first
    n_rows: int
    warnings: list[str]


@dataclass(frozen=True)
class OpenResult:
    """What a file seems to hold, before anything is fitted."""

    holds: str  # or why it cannot be read without a choice
    read_as: str
    n_rows: int
    columns: list[Row]  # what each seems to be, and why
    categories: list[str]
    unused: list[str]  # rows that would not count
    next_steps: list[str]


def fit_result(
    fit: Fit[Any], path: str, warnings: list[str], written: Sequence[str] = ()
) -> FitResult:
    """Return what was found, for any kind of fit."""
    steps = [f"explain_annotator({path!r}, ...) says why somebody is in question"]
    if fit.kind == "comparisons":
        verdict, items = _sentence(rank_trust(fit)), rows_of(fit.item_table())
        steps.append(f"next({path!r}) says which pairs to compare next")
    elif fit.kind == "labels":
        advice = advise(fit)
        verdict, items = _sentence(trust_of(fit, advice)), _to_label(advice, fit)
        steps += [f"next({path!r}): {line}" for line in advice.lines()[:1]]
    else:
        verdict, items = fit.notice() or fit.summary().splitlines()[0], rows_of(fit.item_table())
    return FitResult(
        verdict,
        fit.summary().splitlines(),
        in_question(fit),
        items,
        [*steps, f"explain_item({path!r}, ...) says who said what"],
        warnings,
        list(written),
    )


def next_result(found: Advice | PairAdvice, warnings: list[str]) -> NextResult:
    """Return advice on what to label or compare next."""
    if isinstance(found, Advice):
        add = _to_label(found, found.fit)
    else:
        add = rows_of(found.comparison_table())
    people = found.annotator_table().sort_by([("information", "descending")])
    drop = people.filter(pc.equal(people["verdict"], "drop"))
    ask = rows_of(people.filter(people["ask"]))
    return NextResult(found.summary().splitlines(), add, ask, rows_of(drop), warnings)


def explain_result(found: Explanation, warnings: list[str]) -> ExplainResult:
    """Return an explanation of an item or annotator."""
    entries = found.to_dict(MAX_ROWS)
    distribution = dict(list(entries["distribution"].items())[:MAX_ROWS])
    rows = [_short(row) for row in entries["rows"]]
    return ExplainResult(
        entries["why"], _short(entries["facts"]), distribution, rows, entries["n_rows"], warnings
    )


def in_question(fit: Fit[Any]) -> list[Row]:
    """Return the annotators with another verdict than that they are kept or have too few labels."""
    if fit.kind == "comparisons" and fit.reliability is None:
        return []  # a model that says nothing about annotators
    table = fit.verdict_table()
    fine = ("keep", *fit.too_few)
    rows = [row for row in table.to_pylist() if row["verdict"] not in fine]
    rows.sort(key=lambda row: row["verdict"] != "drop")
    return [_short(row) for row in rows[:MAX_ROWS]]


def _to_label(advice: Advice, fit: Fit) -> list[Row]:
    """Return the items that need labels, the highest gain first."""
    table = advice.item_table().select(["item", "n_labels", "add", "why"])
    if fit.label is not None:
        labels = fit.item_table().select(["label", "confidence"])
        table = table.append_column("label", labels["label"]).append_column(
            "p", labels["confidence"]
        )
    order = np.argsort(-advice.of_items.gain, kind="stable")
    return rows_of(table.take(pa.array(order[advice.add[order] > 0][:MAX_ROWS])))


def rows_of(table: pa.Table) -> list[Row]:
    """Return the first rows of a table as JSON types."""
    return [_short(row) for row in table.slice(0, MAX_ROWS).to_pylist()]


def _short(row: Row) -> Row:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    plain = to_json(value, 4)
    return shorten(plain, _MAX_TEXT) if isinstance(plain, str) else plain


def _sentence(trust: Any) -> str:
    return f"{trust.word}. {trust.sentence}"


def open_result(found: OpenedFile, path: str) -> OpenResult:
    """Return what a file holds, and which tool fits it."""
    entries = found.to_dict()
    kind = "rank" if found.command.startswith("annotruth rank") else "fit"
    steps = [f"{kind}({path!r}, ...), as: {command}" for command in found.commands[:MAX_ROWS]]
    return OpenResult(
        found.holds or found.problem,
        f"{found.kind}; {found.read_as}" if found.read_as else found.kind,
        found.n_rows,
        [_short(row) for row in entries["columns"][:MAX_ROWS]],
        [shorten(name, _MAX_TEXT) for name in found.categories[:MAX_ROWS]],
        list(found.unused),
        steps,
    )
