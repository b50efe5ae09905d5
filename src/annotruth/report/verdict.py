"""The first screen of the report: can the labels be trusted, whom to act on, what to relabel."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotruth.advice.advice import Advice
from annotruth.advice.annotators import ASK_FROM, verdict_rules
from annotruth.advice.items import ITEM_STATUS, LEAST_GAIN, MAX_PER_ROUND, share_out, share_removed
from annotruth.agreement import pair_agreement
from annotruth.errors import counted, shorten
from annotruth.kernels.arrays import Codes
from annotruth.models.registry import DEFAULT_MODEL
from annotruth.models.result import Fit
from annotruth.report.charts.drawing import escaped
from annotruth.report.consensus import AgreementRow
from annotruth.report.html import facts

Tone: TypeAlias = Literal["good", "plain", "bad"]

WORDS: tuple[tuple[str, Tone], ...] = (
    ("Yes", "good"),
    ("Mostly", "plain"),
    ("Partly", "bad"),
    ("No", "bad"),
)
"""The answers to "can these labels be trusted?", best first, and their tones."""

RIGHT_FROM = (0.9, 0.75, 0.5)
"""The expected shares of right labels from which the answer is Yes, Mostly, Partly."""

SCORE_WITHIN = (0.1, 0.2, 0.35)
"""Up to which half-widths of the scores' intervals, as shares of the scale, it is."""

DISTANCE_WITHIN = (0.15, 0.25, 0.4)
"""Up to which expected Hellinger distances of distributions from the truth it is."""

CHANCE_BELOW = 0.05
"""Labels with a lower alpha agree no better than chance, for models that do not test it."""

MEASURED_FROM = 50
"""With so many known truths, the measured accuracy takes the place of the expected one."""

_N_DROPPED, _N_ITEMS, _N_NAMES = 4, 4, 8


class MeasuredAccuracy(NamedTuple):
    """How a fit does on items with known truth.

    Examples
    --------
    >>> MeasuredAccuracy("93.0% of 200 labels are right.", 200, 0.93).decides
    True
    """

    sentence: str
    n_items: int
    accuracy: float | None  # None where the truths are scores

    @property
    def decides(self) -> bool:
        """Whether it is measured well enough to replace what the model expects."""
        return self.accuracy is not None and self.n_items >= MEASURED_FROM


@dataclass(frozen=True)
class Trust:
    """Whether labels can be trusted.

    Attributes
    ----------
    word, tone
        The answer, such as "Mostly", and how it is shown.
    sentence
        What the answer follows from, with the number.
    rule
        Which numbers give which answers.

    Examples
    --------
    >>> Trust("Yes", "good", "About 97% of the labels are expected to be right.", "").word
    'Yes'
    """

    word: str
    tone: Tone
    sentence: str
    rule: str


@dataclass(frozen=True)
class ReportVerdict:
    """The answers of the report's first screen; all counts are those of the advice.

    Attributes
    ----------
    trust
        Whether the labels can be trusted.
    alpha, metric
        Krippendorff's alpha of all labels and its metric; nan where it is not defined.
    same, same_by_chance
        How often two labels of one item are equal, and how often they would be by chance.
    annotators, n_ask
        How many annotators have each verdict, and how many to ask.
    items
        How many items have each status.
    n_add, share_added
        How many labels to add in this round, and their share of the labels so far.
    removed
        The share of the uncertainty that these are expected to remove.
    n_first, removed_first
        A quarter of these labels, where they gain most, and the share that those remove.

    Examples
    --------
    >>> import annotruth as at
    >>> fit = at.fit(at.simulate.crowd(n_items=40, n_annotators=12, seed=1).labels)
    >>> verdict = verdict_of(fit, at.next_labels(fit))
    >>> verdict.trust.word, sum(verdict.annotators.values()), sum(verdict.items.values())
    ('Mostly', 12, 40)
    """

    trust: Trust
    alpha: float
    metric: str
    same: float
    same_by_chance: float
    annotators: Mapping[str, int]
    n_ask: int
    items: Mapping[str, int]
    n_add: int
    share_added: float
    removed: float
    n_first: int
    removed_first: float


def verdict_of(
    fit: Fit,
    advice: Advice,
    agreement: AgreementRow | None = None,
    measured: MeasuredAccuracy | None = None,
) -> ReportVerdict:
    """Return the answers of the first screen.

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
        trust=trust_of(fit, advice, alpha, measured),
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


def trust_of(
    fit: Fit, advice: Advice, alpha: float, measured: MeasuredAccuracy | None = None
) -> Trust:
    """Return whether the labels can be trusted.

    Decided by the accuracy on items with known truth where it is measured, else by what the model
    expects of its own results.
    """
    trust = _no_answer(fit, advice, alpha) or _expected(fit, advice, measured)
    if measured is None:
        return trust
    return replace(trust, sentence=f"{trust.sentence} {measured.sentence}")


def _no_answer(fit: Fit, advice: Advice, alpha: float) -> Trust | None:
    """Return the answer where nothing can be expected of the results; None where something can."""
    data = fit.data
    rule = (
        f"The chance test of {fit.model} compares the labels with labels drawn at random."
        if fit.verdict is not None or fit.model == DEFAULT_MODEL
        else f"{fit.model} does not test for chance: an alpha below {CHANCE_BELOW:g} counts as such."
    )
    if (data.known >= 0).all():
        return Trust("Known", "good", "The truth of every item was given.", "")
    if data.n_categories < 2:
        return Trust("All equal", "plain", "Every label is the same: nothing can be compared.", "")
    if fit.verdict == "chance" or (fit.verdict is None and alpha < CHANCE_BELOW):
        sentence = (
            "Labels agree no better than chance, so labels and reliabilities below say next to "
            "nothing. Check the task and its instructions before you buy more labels."
        )
        return Trust("No better than chance", "bad", sentence, rule)
    word = "Too few labels to tell"
    if data.labels_per_item.max() < 2:
        return Trust(word, "bad", "No item has two labels: nothing can be compared.", "")
    if fit.verdict is None and fit.model == DEFAULT_MODEL:
        sentence = "There are too few labels to tell whether they agree better than chance."
        return Trust(word, "bad", sentence, rule)
    if advice.of_annotators.count()["too few labels"] == data.n_annotators:
        return Trust(word, "bad", "No annotator has enough labels to be judged.", "")
    return None


def _expected(fit: Fit, advice: Advice, measured: MeasuredAccuracy | None) -> Trust:
    """Return the answer by the error of the items whose truth was not given."""
    unknown = fit.data.known < 0
    if fit.readout == "right" and fit.distribution is not None:
        expected = float(fit.distribution.confidence()[unknown].mean())
        share, what = (
            expected,
            "The expected share of right labels, the mean of their probabilities",
        )
        if measured is not None and measured.decides and measured.accuracy is not None:
            share, what = measured.accuracy, "The share of right labels where the truth is known"
        return _ranked(
            sum(share < limit for limit in RIGHT_FROM),
            f"About {expected:.0%} of the recovered labels are expected to be right.",
            f"{what}: {_steps(f'from {limit:.0%}' for limit in RIGHT_FROM)}.",
        )
    half = _half_width(fit, unknown)
    if not math.isnan(half):
        low, high = fit.data.scale.bounds
        share = half / (high - low)
        return _ranked(
            sum(share > limit for limit in SCORE_WITHIN),
            f"Scores are known to within ±{half:.2f} on average, {share:.0%} of the scale from "
            f"{low:g} to {high:g}.",
            "Half of the mean 95% interval of the scores, as a share of the scale: "
            f"{_steps(f'up to {limit:.0%}' for limit in SCORE_WITHIN)}.",
        )
    distance = math.sqrt(float(advice.of_items.uncertainty[unknown].mean()))
    return _ranked(
        sum(distance > limit for limit in DISTANCE_WITHIN),
        f"Items are expected to be {distance:.2f} from their truth (Hellinger distance of "
        "distributions: 0 is equal, 1 has nothing in common).",
        "The root of the mean expected squared Hellinger distance: "
        f"{_steps(f'up to {limit:g}' for limit in DISTANCE_WITHIN)}.",
    )


def _ranked(rank: int, sentence: str, rule: str) -> Trust:
    word, tone = WORDS[rank]
    return Trust(word, tone, sentence, rule)


def _steps(limits: Iterable[str]) -> str:
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


def verdict_section(fit: Fit, advice: Advice, verdict: ReportVerdict, *, source: str | None) -> str:
    """Return the first screen as HTML; ``source`` is what to call ``annotruth next`` with."""
    trust = verdict.trust
    rule = f'<p class="quiet">{escaped(trust.rule)}</p>' if trust.rule else ""
    return (
        '<section id="verdict" class="verdict"><div class="trust">'
        "<h2>Can these labels be trusted?</h2>"
        f'<p class="answer"><b class="{trust.tone}">{escaped(trust.word)}.</b> '
        f"{escaped(trust.sentence)}</p>{rule}{facts(_trust_facts(fit, verdict))}</div>"
        f'<div class="answers">{_people(fit, advice, verdict)}{_items(fit, advice, verdict)}'
        f"{_cost(fit, verdict, source)}</div>{_rules(fit)}</section>"
    )


def _trust_facts(fit: Fit, verdict: ReportVerdict) -> list[tuple[str, object, str]]:
    dash = "\N{EN DASH}"
    alpha = dash if math.isnan(verdict.alpha) else f"{verdict.alpha:.2f}"
    above = dash
    if not math.isnan(verdict.same):
        above = f"{100 * (verdict.same - verdict.same_by_chance):+.0f} points"
    counts = verdict.annotators
    rest = [
        f"{counts[word]:,} {text}"
        for word, text in (("drop", "to drop"), ("unsure", "unsure"), ("too few labels", "with too few labels to tell"))
        if counts[word]
    ]  # fmt: skip
    return [
        ("Agreement", alpha, f"Krippendorff's alpha ({verdict.metric}): 0 is chance, 1 is full agreement"),
        ("Above chance", above, f"two labels of an item are equal {_percent(verdict.same)} of the time; by chance {_percent(verdict.same_by_chance)}"),
        ("Annotators to keep" if fit.reliability is None else "Reliable annotators",
         f"{counts['keep']:,} of {fit.data.n_annotators:,}", ", ".join(rest)),
        ("Labels per item", f"{fit.data.n_labels / fit.data.n_items:.1f}",
         f"{fit.data.n_labels / fit.data.n_annotators:,.0f} per annotator, on average"),
    ]  # fmt: skip


def _people(fit: Fit, advice: Advice, verdict: ReportVerdict) -> str:
    people, counts = advice.of_annotators, verdict.annotators
    dropped = np.flatnonzero(people.verdict == "drop")
    if fit.reliability is not None:
        dropped = dropped[np.argsort(fit.reliability[dropped], kind="stable")]
    unsure = np.flatnonzero(people.verdict == "unsure")
    order = np.argsort(-people.information, kind="stable")
    ask = order[people.ask[order]]
    ids, n_labels = fit.data.annotators, fit.data.labels_per_annotator
    about = _rows((_name(ids, s), _about(fit, s)) for s in dropped[:_N_DROPPED].tolist())
    share = f"{_percent(n_labels[dropped].sum() / fit.data.n_labels)} of the labels"
    lines = [
        _line("annotators|verdict|drop", len(dropped), f"to drop, with {share}", about)
        or f"<li>Nobody to drop{escaped(_why_nobody(fit))}.</li>",
        _line("annotators|verdict|unsure", len(unsure), "unsure: watch them", _names(ids, unsure)),
        _line("annotators|verdict|too few labels", counts["too few labels"], "with too few labels to tell"),
    ]  # fmt: skip
    if verdict.n_add:
        lines.append(
            _line("annotators|ask|yes", len(ask), "to ask for more, best first", _names(ids, ask))
        )
    return _answer("Whom to act on?", lines)


def _why_nobody(fit: Fit) -> str:
    """Return why no annotator can have the verdict drop, if none can."""
    if "drop" in verdict_rules(fit):
        return ""
    if fit.verdict == "chance":
        return ": labels agree no better than chance"
    return f": {fit.model} cannot tell spam from mistakes"


def _items(fit: Fit, advice: Advice, verdict: ReportVerdict) -> str:
    items, counts = advice.of_items, verdict.items
    by_gain = np.argsort(-items.gain, kind="stable")
    needed = by_gain[items.needs_labels[by_gain]][:_N_ITEMS].tolist()
    rows = _rows((_name(fit.data.items, e), items.why[e].as_py()) for e in needed)
    texts = {
        "divided": "divided: more labels would not decide them",
        "needs no more labels": "need no more labels",
        "known truth": "with known truth",
    }
    need = f"of {fit.data.n_items:,} need labels, first those that gain most"
    lines = [
        _line("items|status|needs labels", counts["needs labels"], need, rows)
        or "<li>None: no item needs more labels.</li>"
    ]
    lines += [_line(f"items|status|{word}", counts[word], text) for word, text in texts.items()]
    return _answer("Which items to relabel?", lines)


def _cost(fit: Fit, verdict: ReportVerdict, source: str | None) -> str:
    if not verdict.n_add:
        return _answer("What would it cost?", ["<li>Nothing.</li>"])
    whom = "new annotators"
    if verdict.n_ask:
        each = math.ceil(verdict.n_add / verdict.n_ask)
        whom = f"{counted(verdict.n_ask, 'annotator')}, about {each:,} each"
    labels = "label" if verdict.n_add == 1 else "labels"
    more = f"{_percent(verdict.share_added)} more than the {fit.data.n_labels:,} so far"
    removed = f"They would remove about <b>{_percent(verdict.removed)}</b> of the uncertainty"
    if verdict.n_first:
        removed += (
            f"; a quarter of them ({verdict.n_first:,}), where they gain most, "
            f"{_percent(verdict.removed_first)}"
        )
    lines = [
        f"<li><b>{verdict.n_add:,}</b> {labels} in this round, {more}; from {whom}</li>",
        f"<li>{removed}</li>",
        f"<li>Next: {_command(source)}</li>",
    ]
    return _answer("What would it cost?", lines)


def _command(source: str | None) -> str:
    name = "LABELS" if source is None else shlex.quote(source)
    return f"<code>{escaped(f'annotruth next {name} --assign assignments.csv')}</code>"


def _rules(fit: Fit) -> str:
    """Return how the answers are decided, folded."""
    gain = (
        "An item needs labels if one more label is expected to lower its squared Hellinger "
        f"distance from the truth by at least {LEAST_GAIN:g}; it gets at most {MAX_PER_ROUND} per "
        "round. Uncertainty is the sum of these distances."
    )
    ask = (
        "Annotators are asked for more labels unless they are dropped or their labels have low "
        f"information: less than {ASK_FROM:g} of the best tenth's."
    )
    rows = [
        *((f"Annotators: {word}", rule) for word, rule in verdict_rules(fit).items()),
        ("Annotators: ask", ask),
        *((f"Items: {status}", rule) for status, rule in ITEM_STATUS.items()),
        ("Labels to add", gain),
    ]
    listed = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(text)}</dd>" for name, text in rows)
    return (
        f'<details class="rules"><summary>How this is decided</summary><dl>{listed}</dl></details>'
    )


def _answer(question: str, lines: Sequence[str]) -> str:
    return f"<div><h2>{question}</h2><ul>{''.join(lines)}</ul></div>"


def _line(show: str, count: int, text: str, rest: str = "") -> str:
    """Return a count with a button that shows its rows, and the first of them; empty if 0."""
    if not count:
        return ""
    button = f'<button type="button" class="show" data-show="{show}">Show</button>'
    return f"<li>{button}<b>{count:,}</b> {escaped(text)}{rest}</li>"


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    """Return names, one per line, with what is to be said of each."""
    lines = [f"<div><b>{escaped(name)}</b> {escaped(text)}</div>" for name, text in rows]
    return f'<div class="named">{"".join(lines)}</div>' if lines else ""


def _names(ids: Any, which: Codes) -> str:
    """Return the first names on one line."""
    names = ", ".join(_name(ids, s) for s in which[:_N_NAMES].tolist())
    return f'<div class="named">{escaped(names)}{", …" if len(which) > _N_NAMES else ""}</div>'


def _name(ids: Any, place: int) -> str:
    return shorten(str(ids[place].as_py()), 40)


def _about(fit: Fit, annotator: int) -> str:
    """Return what an annotator does, and how reliable they are."""
    known: list[str] = [] if fit.behavior is None else [fit.behavior[annotator]]
    if fit.reliability is not None:
        known.append(f"reliability {fit.reliability[annotator]:.2f}")
    return ", ".join([*known, counted(int(fit.data.labels_per_annotator[annotator]), "label")])


def _percent(share: float) -> str:
    return "\N{EN DASH}" if math.isnan(share) else f"{share:.0%}"
