"""The sheets of a fit of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.annotators import (
    NOBODY,
    match_rate,
    recovered_labels,
    verdicts,
)
from annotruth.errors import counted
from annotruth.io.drop_list import DECISION_SHEET
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import ACCURACY_COLUMNS, READOUTS, SPAMMER_BELOW, table_of
from annotruth.models.fits.notes import support_of
from annotruth.models.result import Fit
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import OUTCOMES
from annotruth.report.consensus import ItemVotes
from annotruth.report.headings import RANK_HEADINGS

if TYPE_CHECKING:
    from annotruth.analyses.advice.pairs.advice import PairAdvice

from annotruth.report.workbook.part import Part

PROPOSALS = {"keep": "pay", "drop": "in question", "unsure": "look at"}
"""What is proposed for each verdict; for all others, to pay. Nothing is withheld by default."""

NEW_PERSON = "a new person"

_DECISIONS = "everybody, first those of whom something must be decided"
_RELABEL = (
    'items that need more labels, first those that gain most; people whose "Ask for more" is no on the '
    "sheet Decisions should get none of them"
)
_DISPUTED = (
    "items whose label has fewer than half of their labels (on a scale: on its side of most of them), "
    "first those with the smallest share"
)
_DOUBTFUL = "comparisons that are probably not serious, the least serious first"
_RANKING = {
    "item": ("Item", "what was compared"),
    "score": ("Score", "higher is better; with its 95% interval"),
}
_MOST_LOG = 6.9
_ORDER = {"drop": 0, "unsure": 1, "keep": 3}  # of verdicts on the sheet; all others are between


class Book:
    """The sheets of a fit of any kind."""

    def __init__(
        self, fit: Fit[Any], advice: Advice | PairAdvice | None, price: Decimal | None
    ) -> None:
        self.fit, self.data, self.price = fit, fit.data, price
        self.is_ranking = fit.kind == "comparisons"
        of_labels = advise(fit) if advice is None and fit.kind == "labels" else advice
        self.advice: Any = of_labels
        self.verdict: NDArray[np.str_] | None = None
        if self.advice is not None and not (self.is_ranking and fit.reliability is None):
            people = self.advice.of_annotators
            self.verdict, self.reason = people.verdict, people.reason
        elif fit.reliability is not None:
            self.verdict, self.reason = verdicts(fit)

    def parts(self) -> list[Part]:
        """Return the sheets, in their order."""
        found = [self.ranking()] if self.is_ranking else []
        found += [] if self.verdict is None else [self.decisions()]
        if self.advice is not None:
            found.append(self.compare_next() if self.is_ranking else self.relabel())
        found += [] if self.is_ranking else [self.items()]
        if self.is_ranking and self.fit.p_serious is not None:
            found.append(self.doubtful_votes())
        elif self.fit.kind == "labels" and self.fit.label is not None:
            found.append(self.disputed())
        return [*found, self.pay()]

    @cached_property
    def n_given(self) -> Codes:
        """How many labels, answers or comparisons each annotator gave."""
        return np.asarray(self.data.labels_per_annotator, dtype=np.int64)

    @cached_property
    def order(self) -> Codes:
        """The annotators, those of whom something must be decided first."""
        if self.verdict is None:
            return np.argsort(-self.n_given, kind="stable")
        rank = np.array([_ORDER.get(word, 2) for word in self.verdict.tolist()])
        return np.lexsort((-self.n_given, rank))

    @cached_property
    def proposal(self) -> list[str]:
        """What is proposed for each annotator: who cannot be assessed is paid."""
        assert self.verdict is not None
        if self.fit.is_void or self.fit.verdict in ("chance", "camps"):
            return ["pay"] * len(self.verdict)
        return [PROPOSALS.get(word, "pay") for word in self.verdict.tolist()]

    def people(self, columns: Mapping[str, Any]) -> pa.Table:
        """Return a table of annotators in the order of the sheets."""
        table = table_of({"annotator": self.data.annotators, **columns})
        return table.take(as_arrow(self.order))

    def empty(self, kind: pa.DataType) -> pa.Array:
        """Return an empty column for the reader, a row per annotator."""
        return pa.nulls(self.data.n_annotators, kind)

    def decisions(self) -> Part:
        """Return the verdict on everybody, with the evidence, and room for a decision."""
        assert self.verdict is not None
        columns: dict[str, Any] = {
            "verdict": self.verdict.tolist(),
            "proposal": self.proposal,
            "decision": self.empty(pa.string()),
            "reason": self.reason,
            "given": self.n_given,
        }
        known = self.fit.annotator_values()
        if self.fit.kind == "labels" and self.fit.reliability is None:
            columns["match_share"] = match_rate(self.fit)
        interval = () if "accuracy" in known else ("low", "high")
        names = (*ACCURACY_COLUMNS, "reliability", *interval, "behavior")
        columns |= {name: known[name] for name in names if name in known}
        if self.advice is not None:
            columns["ask"] = self.advice.of_annotators.ask
        return Part(DECISION_SHEET, self.people(columns), "", {}, _DECISIONS)

    def pay(self) -> Part:
        """Return how much everybody labelled, what it costs, and room for a decision."""
        fit, n = self.fit, self.data.n_annotators
        columns: dict[str, Any] = {"given": self.n_given}
        if fit.kind == "labels":
            same = self.data.category_of_label() == self.recovered[self.data.item_of_label()]
            columns["matches"] = np.bincount(self.data.annotator, same, n).astype(np.int64)
        if fit.p_serious is not None:
            who = self.data.annotator_of_comparison() if self.is_ranking else self.data.annotator
            doubtful = np.bincount(who, fit.p_serious < SPAMMER_BELOW, n)
            columns["doubtful"] = doubtful.astype(np.int64)
        if self.verdict is not None:
            columns |= {"verdict": self.verdict.tolist(), "proposal": self.proposal}
        if self.price is not None:
            columns["price"] = np.full(n, float(self.price))
            columns["amount"] = np.array([float(self.price * k) for k in self.n_given.tolist()])
            columns["amount_decided"] = self.empty(pa.float64())
        return Part("Pay", self.people(columns), "", {}, "all labels, with nothing withheld")

    @property
    def amounts(self) -> dict[str, Decimal]:
        """What all labels cost, and those of the people of each proposal."""
        price = self.price or Decimal(0)
        amounts = {"all": price * int(self.n_given.sum())}
        if self.verdict is not None:
            proposal = np.array(self.proposal)
            for word in ("in question", "look at"):
                amounts[word] = price * int(self.n_given[proposal == word].sum())
        return amounts

    def item_columns(self, rows: Codes) -> dict[str, Any]:
        """Return the ids of some items, and what they are where the labels came with it."""
        data, place = self.data, as_arrow(rows)
        content = data.covariates.items.items() if data.kind == "labels" else ()
        ids = {"item": data.items.take(place)}
        return {**ids, **{f"{name} ": column.take(place) for name, column in content}}

    def items(self) -> Part:
        """Return every item with its label or score and its distribution."""
        table = self.fit.item_table()
        first = ("label", "labels", "expectation", "score_low", "score_high", "confidence")
        rest = ("n_labels", "n_answers")
        names = [name for name in (*first, *rest) if name in table.column_names]
        own = dict(self.fit.item_columns)
        shares = [k for k in table.column_names if k.startswith("p_") and k not in own]
        columns = self.item_columns(np.arange(self.data.n_items))
        columns |= {name: table[name].combine_chunks() for name in [*names, *shares]}
        what = READOUTS.get(self.fit.readout, "")
        headings = {name: (f"P {name.removeprefix('p_')}", "") for name in shares}
        if shares:
            first_share = headings[shares[0]][0]
            headings[shares[0]] = (first_share, f"this column and those after it: {what}")
        return Part("Items", table_of(columns), "", headings)

    def relabel(self) -> Part:
        """Return the items that need labels, highest gain first, and who should give them."""
        data, advice = self.data, self.advice
        item, annotator = advice.assigned()
        if self.fit.is_void:
            item, annotator = item[:0], annotator[:0]
        starts = np.flatnonzero(np.diff(item, prepend=-1))
        rows = item[starts]
        give_to = [
            _names(self.names, codes) for codes in np.split(annotator, starts[1:]) if len(codes)
        ]
        first = data.cell_ptr[data.item_ptr]
        again = [_names(self.names, data.annotator[first[e] : first[e + 1]]) for e in rows.tolist()]
        columns = self.item_columns(rows)
        if self.fit.label is not None:
            columns["label"] = data.scale.categories.take(as_arrow(self.fit.label[rows]))
        columns |= {
            "n_labels": data.labels_per_item[rows],
            "add": advice.add[rows],
            "why": advice.of_items.why.take(as_arrow(rows)),
            "give_to": pa.array(give_to, pa.string()),
            "not_again": pa.array(again, pa.string()),
        }
        why = "No item needs more labels."
        if self.fit.is_void:
            why = "Ask nobody yet: check the task and its instructions first."
        return Part("Relabel", table_of(columns), why, {}, _RELABEL)

    def disputed(self) -> Part:
        """Return the items whose label overrules most of their labels, and who said what."""
        fit, data, label = self.fit, self.data, self.recovered
        overruled = support_of(data, label).overruled & (data.known < 0)
        item = data.item_of_label()
        agrees = data.category_of_label() == label[item]
        votes_for = np.bincount(item, agrees, data.n_items).astype(np.int64)
        share = votes_for / data.labels_per_item
        found = np.flatnonzero(overruled)
        rows = found[np.argsort(share[found], kind="stable")]
        columns = self.item_columns(rows)
        columns["label"] = data.scale.categories.take(as_arrow(label[rows]))
        if fit.distribution is not None:
            columns["confidence"] = fit.distribution.take(rows).confidence()
        columns |= {
            "n_labels": data.labels_per_item[rows],
            "votes_for": votes_for[rows],
            "who_said": pa.array([self.who_said(e) for e in rows.tolist()], pa.string()),
            "overruled": pa.array([self.why_overruled(e) for e in rows.tolist()], pa.string()),
            "disputed": np.asarray(fit.disputed)[rows],
        }
        empty = "No label overrules most of an item's labels."
        return Part("Disputed", table_of(columns), empty, {}, _DISPUTED)

    @cached_property
    def names(self) -> list[str]:
        """The ids of the annotators as text."""
        return [str(each) for each in self.data.annotators.to_pylist()]

    @cached_property
    def recovered(self) -> Codes:
        """The code of each item's label."""
        return recovered_labels(self.fit)

    def said(self, e: int) -> dict[int, Codes]:
        """Return who gave each label of an item: codes by category, the recovered one first."""
        data, cells = self.data, range(self.data.item_ptr[e], self.data.item_ptr[e + 1])
        label = self.recovered[e]
        ordered = sorted(cells, key=lambda cell: data.cell_category[cell] != label)
        return {
            int(data.cell_category[cell]): data.annotator[
                data.cell_ptr[cell] : data.cell_ptr[cell + 1]
            ]
            for cell in ordered
        }

    def who_said(self, e: int) -> str:
        """Return the labels of an item in words, each with who gave it."""
        names = self.data.scale.names
        said = self.said(e).items()
        return "\n".join(f"{names[label]}: {_names(self.names, who)}" for label, who in said)

    def why_overruled(self, e: int) -> str:
        """Return what is known of those who gave an item's label, and of the others."""
        fit, said = self.fit, self.said(e)
        label = int(self.recovered[e])
        name = self.data.scale.names[label]
        for_it = said.pop(label, np.empty(0, np.int64))
        others = np.concatenate(list(said.values()))
        what, known = "accuracy", fit.accuracy
        if known is None:
            what, known = "reliability", fit.reliability
        one = f"{counted(len(for_it), 'label')} for {name}{_mean(what, known, for_it)}"
        text = f"{one}; {counted(len(others), 'other')}{_mean(what, known, others)}"
        n = 0 if self.verdict is None else int(np.sum(self.verdict[others] == "drop"))
        text += f"; {n} of the others by people in question" if n else ""
        if self.votes.log_odds is None:
            return text
        start, end = (int(self.data.cell_ptr[self.data.item_ptr[k]]) for k in (e, e + 1))
        agrees = np.isin(self.data.annotator[start:end], for_it)
        odds = self.votes.log_odds[start:end]
        against = self.data.scale.names[int(self.votes.runner_up[e])]
        return (
            f"{text}; odds of {name} against {against}: times {_factor(odds[agrees])} by its own labels, "
            f"times {_factor(odds[~agrees])} by the others"
        )

    @cached_property
    def votes(self) -> ItemVotes:
        """What each label did for its item's label."""
        return ItemVotes(self.fit)

    def ranking(self) -> Part:
        """Return the items of a ranking, best first."""
        return Part("Ranking", self.fit.item_table(), "", {**RANK_HEADINGS, **_RANKING})

    def compare_next(self) -> Part:
        """Return the pairs to compare next."""
        return Part("Compare next", self.advice.comparison_table(), "No comparison is needed.")

    def doubtful_votes(self) -> Part:
        """Return the comparisons that are probably not serious, the least serious first."""
        data, p_serious = self.data, np.asarray(self.fit.p_serious)
        doubtful = np.flatnonzero(p_serious < SPAMMER_BELOW)
        rows = doubtful[np.argsort(p_serious[doubtful], kind="stable")]
        columns: dict[str, Any] = {
            "left": data.items.take(as_arrow(data.left[rows])),
            "right": data.items.take(as_arrow(data.right[rows])),
            "annotator": data.annotators.take(as_arrow(data.annotator_of_comparison()[rows])),
            "outcome": [OUTCOMES[k] for k in data.outcome[rows].tolist()],
            "p_serious": p_serious[rows],
        }
        if not len(rows):
            columns["outcome"] = pa.array([], pa.string())
        meaning = ("P serious", "probability that the vote was serious")
        own = {"p_serious": meaning}
        return Part(
            "Disputed", table_of(columns), "No vote is probably not serious.", own, _DOUBTFUL
        )


def _names(names: Sequence[str], codes: Codes) -> str:
    """Return the names of annotators; how many new people are needed comes last."""
    known = [names[code] for code in codes.tolist() if code != NOBODY]
    n_new = len(codes) - len(known)
    new = [NEW_PERSON] if n_new == 1 else [f"{n_new} new people"] if n_new else []
    return ", ".join(known + new)


def _factor(log_odds: Floats) -> str:
    """Return what labels multiply odds by, in two digits."""
    return f"{np.exp(np.clip(log_odds.sum(), -_MOST_LOG, _MOST_LOG)):,.2g}"


def _mean(what: str, values: Floats | None, who: Codes) -> str:
    if values is None or not len(who):
        return ""
    return f", mean {what} {float(np.mean(values[who])):.2f}"
