"""What limits the results of a fit: comparisons with plain counts of votes, said before all else.

Every label of an item is a vote. The summary, the report, ``fit.json`` and advice take what they
say from `notes_of` alone. The limits below are conventions, stated in the docs: none was fitted to
data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotruth.coefficients import krippendorff_alpha, pair_agreement, suitable_metrics
from annotruth.kernels.arrays import Codes, Floats, concatenate, map_slices
from annotruth.observations import Labels
from annotruth.observations.frames import as_arrow

if TYPE_CHECKING:
    from annotruth.models.result import Fit

Severity: TypeAlias = Literal["critical", "warning"]
"""Critical: figures of annotators and items mean next to nothing, and say nothing about people."""

CHANCE = "agree no better than chance"
"""What is said of labels and of comparisons with the verdict "chance"."""

CHANCE_LINE = f"labels {CHANCE}: labels and reliabilities say next to nothing"
"""What the summary and the report say about labels of chance."""

ONE_ANNOTATOR_LINE = "all labels are by one annotator: there is nobody to compare with"
"""What they say where nobody else labelled anything."""

ONE_CATEGORY_LINE = (
    "all labels are equal: they say nothing about items or annotators; list all categories if there "
    "are others"
)
"""What they say where there is one category."""

ONE_LABEL_LINE = "no item has two labels: annotators cannot be compared with each other"
"""What they say where every item has one label."""

CAMPS_LINE = (
    "about half of the annotators contradict the others and agree with one another: no verdicts on "
    "people, and labels may be those of the wrong side"
)
"""What they say where it is open which of two sides is right."""

WITHHELD_LINE = (
    "figures on annotators, items and labels are left out because of the warning; the tables have "
    "them"
)
"""What the summary says instead of figures that would reassure."""

DISPUTED = 0.1
"""Items are disputed if at most this share of their votes supports the label."""

DISPUTED_RULE = "at most one vote in ten supports the label"
"""The rule in words."""

REJECTED = 0.1
"""The share of items with a label that most votes reject, above which it is said."""

CHANCE_BELOW = 0.05
"""Labels with a lower alpha count as labels of chance, for models that do not test it."""

CHANCE_ERRORS = 3.0
"""Standard errors above 0 from which an alpha contradicts a test that finds chance."""

LOW_ALPHA, LOW_SAME = 0.1, 0.8
"""Agreement is low if alpha and the share of equal pairs of votes are below these."""

HIGH_AGREEMENT = 0.4
"""Agreement is far above chance from this share of what chance leaves."""

RELIABLE, UNRELIABLE = 0.9, 0.5
"""Median reliabilities from and below which agreement must not be low, or far above chance."""

SURE, FEW_VOTES = 0.9, 10
"""Most items' confidence is not above the first where agreement and votes per item are low."""

MORE_OFTEN, MORE_ITEMS = 2.0, 0.05
"""A class is not found so many times as often as votes say, on this share of the items more."""

NOTE_RULES = {
    "chance": f"Models that do not test for chance: alpha below {CHANCE_BELOW:g}.",
    "chance test": (
        f"The model finds labels no better than chance, but alpha is {LOW_ALPHA:g} or more, and at "
        f"least {CHANCE_ERRORS:g} standard errors (1 / root of the number of pairs of votes)."
    ),
    "camps": (
        "Annotators who disagree with the crowd and agree with one another are more than 40% of those "
        "who follow either side."
    ),
    "other model": "Labels are too many for the default model.",
    "reliability": (
        f"The median reliability or accuracy is {RELIABLE:g} or more at low agreement (alpha below "
        f"{LOW_ALPHA:g} and fewer than {LOW_SAME:.0%} of pairs of votes equal), or below "
        f"{UNRELIABLE:g} although equal pairs of votes reach {HIGH_AGREEMENT:.0%} of what chance leaves."
    ),
    "confidence": (
        f"More than half of the items have a confidence above {SURE:g} at low agreement (alpha below "
        f"{LOW_ALPHA:g} and fewer than {LOW_SAME:.0%} of pairs of votes equal) and fewer than "
        f"{FEW_VOTES} votes per item, and no class is the majority of {LOW_SAME:.0%} of the items."
    ),
    "rejected labels": (
        f"More than {REJECTED:.0%} of the items have a label with fewer than half of the votes of the "
        "top-voted one; on scales, a disputed one."
    ),
    "shares of labels": (
        f"A class is the label of {MORE_OFTEN:g} times as many items as its shares of votes and of "
        f"majorities say, and of at least {MORE_ITEMS:.0%} of the items more."
    ),
}
"""The rule behind each kind of note that compares results with votes."""

_LEAST_ITEMS = 20  # with two votes: of fewer, nothing is compared
_MOST_VOTES = 1_000_000  # of more, every second or k-th item is compared


class Note(NamedTuple):
    """What limits the results of a fit."""

    kind: str  # what it is about, in one or two words
    severity: Severity
    sentence: str  # what the first line says


@dataclass(frozen=True)
class VoteCounts:
    """Results beside plain counts, of items with two votes or more."""

    alpha: float  # Krippendorff's alpha, with the metric that suits the scale
    same: float  # how often two votes on one item are equal, and would be by chance
    same_by_chance: float
    votes_per_item: float  # the mean number of votes
    n_pairs: int  # of votes on one item
    # shares of items, here and below without known truths: with a confidence above `SURE`, with a
    # label that most votes reject, and of which the most common class is the majority
    sure: float = 0.0
    rejected: float = 0.0
    largest: float = 0.0
    # the class that is found most beyond what votes say: its share of the items, and the higher
    # one of its shares of the votes and of majorities. On scales both are 0.
    category: str = ""
    found: float = 0.0
    given: float = 0.0

    @property
    def is_low(self) -> bool:
        """Whether agreement is low, and not because nearly all votes are equal."""
        return self.alpha < LOW_ALPHA and self.same < LOW_SAME

    @property
    def is_above_chance(self) -> bool:
        """Whether alpha is clearly higher than by chance."""
        return self.alpha >= max(LOW_ALPHA, CHANCE_ERRORS / math.sqrt(self.n_pairs))

    @property
    def above_chance(self) -> float:
        """The share of what chance leaves that equal pairs of votes reach."""
        left = 1.0 - self.same_by_chance
        return (self.same - self.same_by_chance) / left if left > 0.0 else 0.0

    def describe(self) -> str:
        """Return the agreement in words."""
        return f"Krippendorff's alpha is {self.alpha:.2f}"


def notes_of(fit: Fit) -> list[Note]:
    """Return what limits the results of a fit, the most severe first; empty if nothing is known."""
    notes, data = [], fit.data
    if fit.chosen is not None and "instead_of" in fit.chosen:
        sentence = (
            f"{fit.chosen['why']} for {fit.chosen['instead_of']}: {fit.model} was fitted instead, which "
            "does not test whether labels agree better than chance"
        )
        notes.append(Note("other model", "warning", sentence))
    if data.n_annotators == 1:
        notes.append(Note("one annotator", "warning", ONE_ANNOTATOR_LINE))
    elif data.n_categories == 1:
        notes.append(Note("one category", "warning", ONE_CATEGORY_LINE))
    elif data.n_labels == data.n_items:
        notes.append(Note("one label per item", "warning", ONE_LABEL_LINE))
    else:
        notes += _contradictions(fit)
    return sorted(notes, key=lambda note: note.severity != "critical")


def to_dicts(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """Return notes as JSON types."""
    return [note._asdict() for note in notes]


def _contradictions(fit: Fit) -> list[Note]:
    """Return where results contradict plain counts; the counts need items in this process."""
    counts = fit.vote_counts
    if fit.verdict == "chance":
        if counts is None or not counts.is_above_chance:
            return [Note("chance", "critical", CHANCE_LINE)]
        sentence = (
            f"{fit.model} cannot tell these labels from labels of chance, although "
            f"{counts.describe()}: it needs more labels"
        )
        return [Note("chance test", "warning", sentence)]
    if fit.verdict == "camps":
        return [Note("camps", "warning", CAMPS_LINE)]
    if counts is None:
        return []
    if fit.verdict is None and counts.alpha < CHANCE_BELOW:
        line = CHANCE_LINE.replace(CHANCE, f"hardly agree ({counts.describe()})")
        return [Note("chance", "critical", line)]
    return [*_of_annotators(fit, counts), *_of_items(fit, counts)]


def _of_annotators(fit: Fit, counts: VoteCounts) -> list[Note]:
    """Return that reliabilities are far from agreement, if so."""
    name = "accuracy" if "accuracy" in fit.annotator_columns else "reliability"
    values = fit.annotator_columns[name] if name == "accuracy" else fit.reliability
    if values is None:
        return []
    median = float(np.nanmedian(np.asarray(values, dtype=np.float64)))
    said = f"the median {name} is {median:.2f}, but"
    if median >= RELIABLE and counts.is_low:
        sentence = f"{said} votes hardly agree ({counts.describe()}): do not rely on it"
        return [Note("reliability", "critical", sentence)]
    if median < UNRELIABLE and counts.above_chance >= HIGH_AGREEMENT:
        sentence = (
            f"{said} votes agree far better than chance ({counts.same:.0%} of pairs, by chance "
            f"{counts.same_by_chance:.0%}): annotators may be better than it says"
        )
        return [Note("reliability", "warning", sentence)]
    return []


def _of_items(fit: Fit, counts: VoteCounts) -> list[Note]:
    """Return that items' labels contradict their votes, if so."""
    notes = []
    is_varied = counts.largest < LOW_SAME  # otherwise the shares of the classes make labels certain
    if counts.sure > 0.5 and counts.is_low and is_varied and counts.votes_per_item < FEW_VOTES:
        sentence = (
            f"{counts.sure:.0%} of the items have a label above {SURE:.0%}, but votes hardly agree "
            f"({counts.describe()}, {counts.votes_per_item:.1f} labels per item): confidence is too high"
        )
        notes.append(Note("confidence", "critical", sentence))
    if counts.rejected > REJECTED:
        sentence = (
            f"most votes reject the label of {counts.rejected:.0%} of the items: see the column "
            "disputed, and compare with majority"
        )
        notes.append(Note("rejected labels", "warning", sentence))
    if counts.found >= MORE_OFTEN * counts.given and counts.found - counts.given >= MORE_ITEMS:
        sentence = (
            f"{counts.found:.0%} of the items are labelled {counts.category}, which has at most "
            f"{counts.given:.0%} of votes and of majorities: compare with majority"
        )
        notes.append(Note("shares of labels", "warning", sentence))
    return notes


def count_votes(fit: Fit) -> VoteCounts | None:
    """Return results beside plain counts; None where too few items have two votes."""
    votes, item = _compared_votes(fit.data)
    alpha = krippendorff_alpha(votes, suitable_metrics(votes.scale)[0])
    several = votes.labels_per_item > 1
    if math.isnan(alpha) or np.count_nonzero(several) < _LEAST_ITEMS:
        return None
    n = votes.labels_per_item[several]
    n_pairs = int((n * (n - 1)).sum()) // 2
    agreement = (alpha, *pair_agreement(votes), float(n.mean()), n_pairs)
    which = several & (fit.data.known[item] < 0)
    if fit.label is None or fit.distribution is None or not which.any():
        return VoteCounts(*agreement)
    label, majority = fit.label[item], _majority_shares(votes, which)
    shares = ("", 0.0, 0.0)
    if not votes.scale.is_ordinal:
        shares = _found_most(votes, label, which, majority)
    return VoteCounts(
        *agreement,
        float((fit.distribution.take(item[which]).confidence() > SURE).mean()),
        float(support_of(votes, label).rejected[which].mean()),
        float(majority.max()),
        *shares,
    )


class Support(NamedTuple):
    """What votes say about items' labels, one entry per item."""

    # whether at most `DISPUTED` of the votes support the label, of two votes or more: are equal to
    # it, or on a scale are not above it, or not below it
    disputed: NDArray[np.bool_]
    # whether another label has more than twice as many votes; on a scale, whether it is disputed
    rejected: NDArray[np.bool_]
    # whether fewer than half of the votes support the label, and another one has more votes
    overruled: NDArray[np.bool_]


def support_of(votes: Labels, label: NDArray[np.integer[Any]]) -> Support:
    """Return what votes say about the label of each item."""

    def compare(items: slice) -> Support:
        ptr = votes.item_ptr[items.start : items.stop + 1]
        cells = slice(ptr[0], ptr[-1])
        n = np.diff(votes.cell_ptr[ptr[0] : ptr[-1] + 1])
        beyond = votes.cell_category[cells] - np.repeat(label[items], np.diff(ptr))
        if votes.scale.is_ordinal:
            sides = (_count(n * (beyond <= 0), ptr), _count(n * (beyond >= 0), ptr))
            n_for = np.minimum(*sides)
        else:
            n_for = _count(n * (beyond == 0), ptr)
        n_votes = votes.labels_per_item[items]
        most = np.maximum.reduceat(n, ptr[:-1] - ptr[0])
        disputed = (n_for <= DISPUTED * n_votes) & (n_votes > 1)
        overruled = 2 * n_for < n_votes
        if votes.scale.is_ordinal:
            return Support(disputed, disputed, overruled)
        return Support(disputed, 2 * n_for < most, overruled & (n_for < most))

    parts = map_slices(compare, votes.n_items)
    return Support(*(concatenate(column) for column in zip(*parts, strict=True)))


def _count(values: Codes, ptr: Codes) -> Codes:
    """Return the sum of the cells of each item."""
    sums: Codes = np.add.reduceat(values, ptr[:-1] - ptr[0])
    return sums


def _compared_votes(data: Labels) -> tuple[Labels, Codes]:
    """Return the votes that are compared, and their items; of very many votes, of every k-th item."""
    item = np.arange(data.n_items)
    step = min(math.ceil(data.n_labels / _MOST_VOTES), max(data.n_items // _LEAST_ITEMS, 1))
    if step == 1:
        return data, item
    item = item[::step]
    n = data.labels_per_item[item]
    first = data.cell_ptr[data.item_ptr[item]]
    place = np.arange(n.sum()) + np.repeat(first - (np.cumsum(n) - n), n)
    votes = Labels.from_codes(
        np.repeat(np.arange(len(item)), n),
        data.annotator[place],
        data.cell_category[np.searchsorted(data.cell_ptr, place, side="right") - 1],
        items=data.items.take(as_arrow(item)),
        annotators=data.annotators,
        scale=data.scale,
    )
    return votes, item


def _majority_shares(votes: Labels, which: NDArray[np.bool_]) -> Floats:
    """Return of which share of some items each category has the most votes; ties are split."""
    n, item = np.diff(votes.cell_ptr), votes.item_of_cell()
    is_top = (n == np.maximum.reduceat(n, votes.item_ptr[:-1])[item]) & which[item]
    n_top = np.bincount(item, is_top, votes.n_items)
    weight = is_top / np.maximum(n_top, 1.0)[item]
    shares: Floats = np.bincount(votes.cell_category, weight, votes.n_categories) / which.sum()
    return shares


def _found_most(
    votes: Labels, label: NDArray[np.int32], which: NDArray[np.bool_], majority: Floats
) -> tuple[str, float, float]:
    """Return the class that is found most beyond what votes say, how often it is, and they say."""
    found = np.bincount(label[which], minlength=votes.n_categories) / which.sum()
    n = np.diff(votes.cell_ptr) * which[votes.item_of_cell()]
    given = np.bincount(votes.cell_category, n, votes.n_categories) / n.sum()
    most = int(np.argmax(found - np.maximum(given, majority)))
    return votes.scale.names[most], float(found[most]), float(max(given[most], majority[most]))
