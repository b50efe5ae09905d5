"""`PairAdvice`: which pairs of items to compare next, whom to ask and whom to drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.analyses.advice.annotators import NOBODY, RANK_VERDICTS, AnnotatorAdvice
from annotruth.analyses.advice.pairs.annotators import (
    assign_contexts,
    assign_pairs,
    pair_annotator_advice,
    typical_voter,
)
from annotruth.analyses.advice.pairs.order import OrderPosterior, Voters
from annotruth.errors import InputError, counted, shorten
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import table_of
from annotruth.models.distribution import Z_95
from annotruth.models.result import RankFit
from annotruth.observations.encode import decode_table
from annotruth.observations.frames import from_arrow
from annotruth.observations.validate import is_integer

MAX_ITEMS = 1000
"""Of more items, those with the largest standard errors of their scores are considered."""

MAX_TOP_VOTES = 100_000
_TOP = 3

LEAST_GAIN = 0.005
"""A round that raises the expected Kendall tau by less is not worth its comparisons."""

# Computing the gains of this many pairs of items takes about as long as choosing one should: of more,
# several pairs are chosen before gains are computed again.
_PAIRS_PER_CHOICE = 8000


@dataclass(frozen=True, eq=False)
class PairAdvice:
    """Which pairs to compare next, whom to ask and whom to drop, by one fit.

    Attributes
    ----------
    fit
        The fit that the advice is drawn from.
    budget
        How many comparisons there are to spend; None for one round, one per item, if it is worth it.
    left, right
        The codes of the items of each comparison to ask for, the highest gain first.
    gain
        By how much each comparison is expected to reduce the uncertainty of the order: the sum over
        pairs of items of p (1 - p), where p is the probability that the one is above the other.
    why
        The reason for each comparison.
    tau, tau_after
        The Kendall tau between the ranking and the true one that is expected, now and after these
        comparisons.
    of_annotators
        The verdict on every annotator, and why.
    top
        What would change the first three; None where no three of more items can be compared.
    """

    fit: RankFit
    budget: int | None
    left: Codes
    right: Codes
    gain: Floats
    why: Sequence[str]
    tau: float
    tau_after: float
    of_annotators: AnnotatorAdvice
    top: TopItems | None = None

    def __repr__(self) -> str:
        _, add, *_ = self.summary().splitlines()
        return f"PairAdvice({add}: {self.fit.model} on {self.fit.data.describe()})"

    @property
    def n_add(self) -> int:
        """How many comparisons to ask for."""
        return len(self.left)

    def comparisons(self) -> Any:
        """Return one row per comparison to ask for: items, context, annotator, gain and why.

        Annotators get pairs that they have not compared. Where none of those to ask is left, the
        annotator is missing: find a new one.
        """
        return from_arrow(self.comparison_table(), self.fit.data.frame)

    def annotators(self) -> Any:
        """Return one row per annotator: verdict, whether to ask, reason, and information."""
        return from_arrow(self.annotator_table(), self.fit.data.frame)

    def comparison_table(self) -> pa.Table:
        """Return the table of comparisons to ask for in Arrow."""
        data, annotator = self.fit.data, self.assigned
        columns: dict[str, Any] = {
            "left": data.items.take(pa.array(self.left)),
            "right": data.items.take(pa.array(self.right)),
        }
        if (codes := self.context) is not None and data.contexts is not None:
            columns["context"] = data.contexts.take(pa.array(codes, mask=codes == NOBODY))
        columns["annotator"] = data.annotators.take(pa.array(annotator, mask=annotator == NOBODY))
        columns |= {"gain": self.gain, "why": pa.array(self.why, pa.string())}
        return decode_table(table_of(columns))

    def annotator_table(self) -> pa.Table:
        """Return the table of annotators in Arrow."""
        return self.of_annotators.full_table(self.fit)

    def tables(self) -> dict[str, pa.Table]:
        """Return all tables by name, to be written to files."""
        return {"comparisons": self.comparison_table(), "annotators": self.annotator_table()}

    @cached_property
    def assigned(self) -> Codes:
        """The code of the annotator who should make each comparison; `NOBODY` for a new one."""
        return assign_pairs(self.fit, self.left, self.right, self.context, self.of_annotators)

    @cached_property
    def context(self) -> Codes | None:
        """The context of each comparison, `NOBODY` for none; None where comparisons have none."""
        return assign_contexts(self.fit, self.left, self.right)

    def summary(self) -> str:
        """Return the advice in a few lines."""
        data = self.fit.data
        pairs = np.sort(np.stack([self.left, self.right], axis=1), axis=1)
        n_pairs = len(np.unique(pairs, axis=0))
        add = f"ask for {counted(self.n_add, 'comparison')} of {counted(n_pairs, 'pair')}"
        tau = f"expected Kendall tau of the ranking: {self.tau:.3f} now"
        if self.n_add:
            tau += f", {self.tau_after:.3f} after these"
        else:
            add = "ask for no more comparisons: they would hardly change the ranking"
        verdicts = self.of_annotators.count(RANK_VERDICTS)
        ask = int(self.of_annotators.ask.sum())
        return "\n".join(
            [
                f"{self.fit.model} on {data.describe()}",
                add,
                tau,
                *([] if self.top is None else [self.top.line()]),
                "annotators: " + ", ".join(f"{word} {n:,}" for word, n in verdicts.items() if n),
                f"ask {ask:,} of {data.n_annotators:,} annotators, the most informative",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts of the advice, as ``annotruth next --json`` prints them."""
        data = self.fit.data
        return {
            "model": self.fit.model,
            "n_items": data.n_items,
            "n_annotators": data.n_annotators,
            "n_comparisons": data.n_comparisons,
            "budget": self.budget,
            "add": self.n_add,
            "tau": self.tau,
            "tau_after": self.tau_after,
            "top": None if self.top is None else self.top.to_dict(),
            "annotators": self.of_annotators.count(RANK_VERDICTS),
            "ask": int(self.of_annotators.ask.sum()),
        }


class TopItems(NamedTuple):
    """What would change who is among the first three of the largest part.

    Numbers of votes are None above `MAX_TOP_VOTES`.
    """

    names: list[str]  # the first three
    challenger: str  # the item that would most easily get among them
    n_reverse: int | None  # votes for it, against the third, that would put it before that
    n_separate: int | None  # votes on the two that would separate them if the difference stays

    def line(self) -> str:
        """Return it in words."""
        third = self.names[-1]
        many = f"more than {MAX_TOP_VOTES:,} votes"
        reverse = many if self.n_reverse is None else counted(self.n_reverse, "vote")
        text = (
            f"first three: {', '.join(self.names)}; {reverse} for {self.challenger} against {third} would "
            f"put it before {third}"
        )
        if self.n_separate == 0:
            return f"{text}; they are separated"
        more = many if self.n_separate is None else counted(self.n_separate, "more vote")
        return f"{text}; {more} on the two would separate them"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return self._asdict()


def top_items(fit: RankFit, voter: Voters) -> TopItems | None:
    """Return what would change the first three; None with fewer than four items, or by chance."""
    members = np.flatnonzero(fit.part == int(np.bincount(fit.part).argmax()))
    if len(members) <= _TOP or fit.verdict == "chance":
        return None
    order = members[np.argsort(-fit.scores.mean[members], kind="stable")]
    third, others = order[_TOP - 1], order[_TOP:]
    covariance, variance = fit.scores.covariance, fit.scores.sd**2
    of_pair = variance[third] + variance[others]
    if covariance.ndim == 2:
        of_pair = of_pair - 2.0 * covariance[third, others]
    of_pair = np.maximum(of_pair, 1e-12)
    difference = fit.scores.mean[third] - fit.scores.mean[others]
    nearest = int(np.argmin(difference / np.sqrt(of_pair)))
    d, v = float(difference[nearest]), float(of_pair[nearest])
    information = float(voter.expected_information(np.array(d), np.array(v)))
    # A vote for the challenger has the slope of the log-likelihood of a serious one, on average.
    p = 1.0 / (1.0 + np.exp(min(d, 60.0)))
    slope = float(voter.reliability * voter.sharpness) * (1.0 - p)
    moved = v * (slope - d * information)
    reverse = np.inf if moved <= 0.0 else d / moved
    separate = max(((Z_95 / d) ** 2 if d > 0.0 else np.inf) - 1.0 / v, 0.0) / information

    def votes(n: float) -> int | None:
        return None if n > MAX_TOP_VOTES else int(np.ceil(n))

    names = [
        shorten(str(fit.data.items[int(k)].as_py()), 40) for k in [*order[:_TOP], others[nearest]]
    ]
    return TopItems(names[:_TOP], names[_TOP], votes(max(reverse, 1.0)), votes(separate))


def advise_pairs(fit: RankFit, budget: int | None = None) -> PairAdvice:
    """Return which pairs to compare next, whom to ask and whom to drop, by a fit of any model.

    Nothing is fitted again. Comparisons that connect parts of the graph come first; then the pair
    whose comparison is expected to make the order of all items most certain, one after another (see
    `OrderPosterior`). Without a budget, one comparison per item is asked for, or none if they are
    expected to raise the Kendall tau by less than `LEAST_GAIN`.
    """
    check_pair_budget(budget)
    people = pair_annotator_advice(fit)
    n_votes = fit.data.n_items if budget is None else budget
    links = _links(fit)[:n_votes]
    # Of many items, those whose scores are least certain.
    items = np.sort(np.argsort(-fit.scores.sd, kind="stable")[:MAX_ITEMS])
    order = order_of(fit, items)
    p_above = order.p_above()
    tau, first_variance = order.expected_tau(), order.variance()
    at_once = max(1, len(items) ** 2 // (2 * _PAIRS_PER_CHOICE))
    voter = typical_voter(fit, people.ask)
    chosen = order.choose(voter, n_votes - len(links), at_once=at_once)
    tau_after = order.expected_tau(first_variance)
    if budget is None and not links and tau_after - tau < LEAST_GAIN:
        chosen, tau_after = order.choose(voter, 0), tau
    first = np.array([a for a, _, _ in links] + items[chosen.first].tolist(), dtype=np.int64)
    second = np.array([b for _, b, _ in links] + items[chosen.second].tolist(), dtype=np.int64)
    left, right = _balance_sides(fit, first, second)
    why = [reason for _, _, reason in links]
    for p in p_above[chosen.first, chosen.second].tolist():
        why.append(f"order undecided: {max(p, 1.0 - p):.0%} sure which is better")
    highest = float(chosen.gain.max(initial=0.0))
    gain = np.concatenate([np.full(len(links), highest), chosen.gain])
    top = top_items(fit, voter)
    return PairAdvice(fit, budget, left, right, gain, why, tau, tau_after, people, top)


def check_pair_budget(budget: int | None) -> None:
    """Refuse a budget that is not a number of comparisons."""
    if budget is not None and (not is_integer(budget) or budget < 1):
        raise InputError(f"budget is {budget!r}: give a whole number of comparisons from 1")


def order_of(fit: RankFit, items: Codes) -> OrderPosterior:
    """Return the posterior of the order of these items; those of different parts have no order."""
    scores, part = fit.scores.take(items), fit.part[items]
    covariance = scores.covariance
    comparable = part[:, np.newaxis] == part
    np.fill_diagonal(comparable, val=False)
    covariance = np.diag(covariance) if covariance.ndim == 1 else covariance
    return OrderPosterior(scores.mean, covariance, comparable)


def _links(fit: RankFit) -> list[tuple[int, int, str]]:
    """Return a pair of items and the reason for each part that is not connected with the largest.

    In each part, the item with the most comparisons is taken. Parts that are contexts of their own,
    such as versions of different pictures, need no connection.
    """
    part, n_votes = fit.part, fit.data.comparisons_per_item
    if _parts_are_contexts(fit):
        return []
    sizes = np.bincount(part)
    largest = int(sizes.argmax())
    # Items by part, those with the most comparisons first.
    order = np.lexsort((-n_votes, part))
    _, starts = np.unique(part[order], return_index=True)
    centers = order[starts].tolist()
    return [
        (center, centers[largest], f"connects part {k + 1} with part {largest + 1}")
        for k, center in enumerate(centers)
        if k != largest
    ]


def _parts_are_contexts(fit: RankFit) -> bool:
    """Whether every part of the graph has one context, which no other part has."""
    data = fit.data
    if data.context is None or data.contexts is None:
        return False
    part = fit.part[data.left]
    n_pairs = len(np.unique(part * len(data.contexts) + data.context))
    return n_pairs == len(np.unique(part)) == len(np.unique(data.context))


def _balance_sides(fit: RankFit, first: Codes, second: Codes) -> tuple[Codes, Codes]:
    """Return left and right: the item that has been on the left less often goes there."""
    data = fit.data
    on_left = np.bincount(data.left, minlength=data.n_items) - data.comparisons_per_item / 2.0
    left, right = first.copy(), second.copy()
    for n, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if on_left[a] > on_left[b]:
            left[n], right[n] = b, a
        on_left[left[n]] += 0.5
        on_left[right[n]] -= 0.5
    return left, right
