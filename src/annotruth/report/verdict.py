"""What the report says first: can the labels be trusted, whom to act on, what to relabel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotruth.agreement import pair_agreement
from annotruth.analyses.advice.advice import Advice
from annotruth.analyses.advice.items import LEAST_GAIN, MAX_PER_ROUND, share_out, share_removed
from annotruth.models.fits.notes import CHANCE, CHANCE_BELOW, NOTE_RULES
from annotruth.models.registry import DEFAULT_MODEL
from annotruth.models.result import Fit
from annotruth.report.consensus import AgreementRow
from annotruth.report.render import Conclusion, as_sentence

Tone: TypeAlias = Literal["good", "fair", "bad"]

WORDS: tuple[tuple[str, Tone], ...] = (
    ("Yes", "good"),
    ("Mostly", "fair"),
    ("Partly", "bad"),
    ("No", "bad"),
)
"""What is said to "can these labels be trusted?", best first, and the tones."""

RIGHT_FROM = (0.9, 0.75, 0.5)
"""The expected shares of right labels from which the answer is Yes, Mostly, Partly."""

SCORE_WITHIN = (0.1, 0.2, 0.35)
"""Up to which half-widths of the scores' intervals, as shares of the scale, it is."""

DISTANCE_WITHIN = (0.15, 0.25, 0.4)
"""Up to which expected Hellinger distances of distributions from the truth it is."""

MEASURED_FROM = 50
"""With so many known truths, the measured accuracy takes the place of the expected one."""


class MeasuredAccuracy(NamedTuple):
    """How a fit does on items with known truth."""

    sentence: str
    n_items: int
    accuracy: float | None  # None where the truths are scores

    @property
    def decides(self) -> bool:
        """Whether it is measured well enough to replace what the model expects."""
        return self.accuracy is not None and self.n_items >= MEASURED_FROM


@dataclass(frozen=True)
class Trust:
    """Whether labels can be trusted."""

    # the answer, such as "Mostly", and how it is shown
    word: str
    tone: Tone
    sentence: str  # what the answer follows from, with the number
    rule: str  # which numbers give which answers

    @property
    def conclusion(self) -> Conclusion:
        """The answer as a part of a page."""
        return Conclusion(self.word, self.tone, self.sentence)


@dataclass(frozen=True)
class ReportVerdict:
    """The report's first screen in numbers; all counts are those of the advice."""

    trust: Trust  # whether the labels can be trusted
    # Krippendorff's alpha of all labels and its metric; nan where it is not defined
    alpha: float
    metric: str
    # how often two labels of one item are equal, and how often they would be by chance
    same: float
    same_by_chance: float
    # how many annotators have each verdict, and how many to ask
    annotators: Mapping[str, int]
    n_ask: int
    items: Mapping[str, int]  # how many items have each status
    # how many labels to add in this round, and their share of the labels so far
    n_add: int
    share_added: float
    removed: float  # the share of the uncertainty that these are expected to remove
    # a quarter of these labels, where they gain most, and the share that those remove
    n_first: int
    removed_first: float


def verdict_of(
    fit: Fit,
    advice: Advice,
    agreement: AgreementRow | None = None,
    measured: MeasuredAccuracy | None = None,
) -> ReportVerdict:
    """Return the numbers of the first screen.

    ``agreement`` is that of all labels, if at hand; ``measured`` is how the fit does against known
    truths.
    """
    if agreement is None:
        from annotruth.report.consensus import agreement_rows

        agreement = agreement_rows(fit)[0]
    name, alpha = next(iter(agreement.values.items()))
    same, same_by_chance = pair_agreement(fit.data)
    items, n_add = advice.of_items, advice.n_add
    n_first = n_add // 4
    first = np.zeros_like(advice.add)
    if n_first:
        first = share_out(n_first, items.uncertainty, items.gain, LEAST_GAIN, MAX_PER_ROUND)
    return ReportVerdict(
        trust=trust_of(fit, advice, measured),
        alpha=alpha,
        metric=name.partition("(")[2].rstrip(")"),
        same=same,
        same_by_chance=same_by_chance,
        annotators=advice.of_annotators.count(),
        n_ask=int(advice.of_annotators.ask.sum()),
        items=items.count(),
        n_add=n_add,
        share_added=n_add / fit.data.n_labels,
        removed=share_removed(advice.add, items),
        n_first=n_first,
        removed_first=share_removed(first, items),
    )


def trust_of(fit: Fit, advice: Advice, measured: MeasuredAccuracy | None = None) -> Trust:
    """Return whether the labels can be trusted.

    Where results contradict plain counts, that is the answer. Otherwise it is decided by the accuracy on items with known truth where it is measured, else by what the model
    expects of its own results.
    """
    trust = _no_answer(fit, advice) or _expected(fit, advice, measured)
    if measured is None:
        return trust
    both = [trust.sentence, measured.sentence]
    return replace(trust, sentence=" ".join(both[::-1] if measured.decides else both))


def _no_answer(fit: Fit, advice: Advice) -> Trust | None:
    """Return the answer where nothing can be expected of the results; None where something can."""
    data = fit.data
    rule = (
        chance_rule(fit.model, "labels")
        if fit.verdict is not None or fit.model == DEFAULT_MODEL
        else f"{fit.model} does not test for chance: an alpha below {CHANCE_BELOW:g} counts as such."
    )
    if (data.known >= 0).all():
        return Trust("Known", "good", "The truth of every item was given.", "")
    if data.n_categories < 2:
        return Trust("All equal", "fair", "Every label is the same: nothing can be compared.", "")
    word = "Too few labels to tell"
    if data.n_annotators == 1 or data.labels_per_item.max() < 2:
        return Trust(word, "bad", as_sentence(fit.notice()), "")
    if any(note.kind == "chance" for note in fit.notes):
        return chance_trust("labels", "labels", rule)
    if fit.verdict is None and fit.model == DEFAULT_MODEL:
        sentence = "There are too few labels to tell whether they agree better than chance."
        return Trust(word, "bad", sentence, rule)
    if advice.of_annotators.count()["too few labels"] == data.n_annotators:
        return Trust(word, "bad", "No annotator has enough labels for a verdict.", "")
    if fit.notes:
        rule = " ".join(NOTE_RULES[note.kind] for note in fit.notes)
        return Trust("Check first", "bad", as_sentence(fit.notice()), rule)
    return None


def chance_trust(units: str, results: str, rule: str) -> Trust:
    """Return the answer for labels or votes that agree no better than chance."""
    sentence = (
        f"{units.capitalize()} {CHANCE}, so {results} and reliabilities below say next to nothing. "
        f"Check the task and its instructions before you buy more {units}."
    )
    return Trust("No better than chance", "bad", sentence, rule)


def chance_rule(model: str, units: str) -> str:
    """Return how a model finds out whether labels or votes agree better than chance."""
    return f"The chance test of {model} compares the {units} with {units} drawn at random."


def _expected(fit: Fit, advice: Advice, measured: MeasuredAccuracy | None) -> Trust:
    """Return the answer by the error of the items whose truth was not given."""
    unknown = fit.data.known < 0
    if fit.readout == "right" and fit.distribution is not None:
        share = float(fit.distribution.confidence()[unknown].mean())
        sentence = f"{_about(share)} of the recovered labels are expected to be right."
        what = "The expected share of right labels, the mean of items' confidence"
        if measured is not None and measured.decides and measured.accuracy is not None:
            sentence = f"The model expects {_about(share).lower()}."
            share, what = measured.accuracy, "The share of right labels where the truth is known"
        return ranked_trust(
            sum(share < limit for limit in RIGHT_FROM),
            sentence,
            f"{what}: {steps_text(f'from {limit:.0%}' for limit in RIGHT_FROM)}.",
        )
    half = _half_width(fit, unknown)
    if not math.isnan(half):
        low, high = fit.data.scale.bounds
        share = half / (high - low)
        return ranked_trust(
            sum(share > limit for limit in SCORE_WITHIN),
            f"Scores are known to within ±{half:.2f} on average, {share:.0%} of the scale from "
            f"{low:g} to {high:g}.",
            "Half of the mean 95% interval of the scores, as a share of the scale: "
            f"{steps_text(f'up to {limit:.0%}' for limit in SCORE_WITHIN)}.",
        )
    distance = math.sqrt(float(advice.of_items.uncertainty[unknown].mean()))
    return ranked_trust(
        sum(distance > limit for limit in DISTANCE_WITHIN),
        f"Items are expected to be {distance:.2f} from their truth (Hellinger distance of "
        "distributions: 0 is equal, 1 has nothing in common).",
        "The root of the mean expected squared Hellinger distance: "
        f"{steps_text(f'up to {limit:g}' for limit in DISTANCE_WITHIN)}.",
    )


def _about(share: float) -> str:
    return "More than 99%" if share >= 0.995 else f"About {share:.0%}"


def ranked_trust(rank: int, sentence: str, rule: str) -> Trust:
    """Return an answer by its place among `WORDS`."""
    word, tone = WORDS[rank]
    return Trust(word, tone, sentence, rule)


def steps_text(limits: Iterable[str]) -> str:
    """Write which limits give which answers."""
    words = [word.lower() for word, _ in WORDS]
    steps = [f"{word} {limit}" for word, limit in zip(words, limits, strict=False)]
    return f"{', '.join(steps)}, else {words[-1]}"


def _half_width(fit: Fit, which: NDArray[np.bool_]) -> float:
    """Return the mean half-width of the scores' intervals; nan where there are none."""
    ends = [fit.item_columns.get(end) for end in ("score_low", "score_high")]
    if any(end is None for end in ends):
        return math.nan
    low, high = (np.asarray(end, dtype=np.float64)[which] for end in ends)
    known = ~np.isnan(high - low)
    return float((high - low)[known].mean() / 2.0) if known.any() else math.nan
