"""The first screen of the report: can the labels be trusted, whom to act on, what to relabel."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.annotators import (
    ASK_FROM,
    has_flags,
    verdict_rules,
    verdicts,
    why_void,
)
from annotruth.analyses.advice.items import (
    ITEM_STATUS,
    LEAST_GAIN,
    MAX_PER_ROUND,
    share_out,
    share_removed,
)
from annotruth.coefficients import pair_agreement
from annotruth.errors import counted, shorten
from annotruth.models.base_fit import NO_VERDICT
from annotruth.models.fits.notes import CHANCE_BELOW, DISPUTED_RULE, NOTE_RULES
from annotruth.models.registry import DEFAULT_MODEL
from annotruth.models.result import Fit
from annotruth.report.consensus import AgreementRow
from annotruth.report.render import (
    DASH,
    Answer,
    Fact,
    Facts,
    FirstScreen,
    Link,
    NamedRows,
    Part,
    Section,
    Strong,
    as_sentence,
    figure,
)
from annotruth.report.sections import (
    N_NAMED,
    FirstLines,
    MeasuredAccuracy,
    Trust,
    above_chance,
    chance_rule,
    chance_trust,
    count_line,
    first_lines,
    graded_trust,
    name_list,
    next_command,
    percent,
    verdicts_besides_keep,
    whom_to_act_on,
)
from annotruth.report.tables import leading_estimate
from annotruth.report.truth import compare_with_truth

_QUESTION = "Can these labels be trusted?"

RIGHT_FROM = (0.9, 0.75, 0.5)
"""The expected shares of right labels from which the answer is Yes, Mostly, Partly."""

SCORE_WITHIN = (0.1, 0.2, 0.35)
"""Up to which half-widths of the scores' intervals, as shares of the scale, it is."""

DISTANCE_WITHIN = (0.15, 0.25, 0.4)
"""Up to which expected Hellinger distances of distributions from the truth it is."""


_MAX_LABELS = 300_000  # of more, advice on items takes longer than a terminal's reader waits


def first_lines_of_labels(fit: Fit, arguments: str, truth: Any = None) -> FirstLines:
    """Return the first screen in lines; ``arguments`` are those of ``annotruth next``."""
    measured = None if truth is None else compare_with_truth(fit, truth).measured
    advice = advise(fit) if fit.data.n_labels <= _MAX_LABELS else None
    blocks = [whom_to_ask(fit, advice)]
    if advice is not None and not fit.is_void:
        blocks.append(what_to_label(fit, advice))
    step = f"annotruth report {arguments} --report report.html"
    if advice is None or advice.n_add:
        step = str(next_command(arguments).text)
    trust = trust_of(fit, advice, measured)
    return first_lines(_QUESTION, trust, blocks, "" if fit.is_void else step)


def trust_of(
    fit: Fit, advice: Advice | None = None, measured: MeasuredAccuracy | None = None
) -> Trust:
    """Return whether the labels can be trusted; ``advice`` is that on the fit, where it is at hand.

    Where results contradict plain counts, that is the answer. Otherwise it is decided by the accuracy on items with known truth where it is measured, else by what the model
    expects of its own results.
    """
    trust = _no_answer(fit) or _expected(fit, advice, measured)
    if measured is None:
        return trust
    both = [trust.sentence, measured.sentence]
    return replace(trust, sentence=" ".join(both[::-1] if measured.decides else both))


def _no_answer(fit: Fit) -> Trust | None:
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
    if (verdicts(fit)[0] == "too few labels").all():
        return Trust(word, "bad", "No annotator has enough labels for a verdict.", "")
    if fit.notes:
        rule = " ".join(NOTE_RULES[note.kind] for note in fit.notes)
        return Trust("Check first", "bad", as_sentence(fit.notice()), rule)
    return None


def _expected(fit: Fit, advice: Advice | None, measured: MeasuredAccuracy | None) -> Trust:
    """Return the answer by the error of the items whose truth was not given."""
    unknown = fit.data.known < 0
    if fit.readout == "right" and fit.distribution is not None:
        share = float(fit.distribution.confidence()[unknown].mean())
        sentence = f"{_about(share)} of the recovered labels are expected to be right."
        what = "The expected share of right labels, the mean of items' confidence"
        if measured is not None and measured.decides and measured.accuracy is not None:
            sentence = f"The model expects {_about(share).lower()}."
            share, what = measured.accuracy, "The share of right labels where the truth is known"
        return graded_trust(share, RIGHT_FROM, "from {:.0%}", sentence, what)
    half = _half_width(fit, unknown)
    if not math.isnan(half):
        low, high = fit.data.scale.bounds
        share = half / (high - low)
        return graded_trust(
            share,
            SCORE_WITHIN,
            "up to {:.0%}",
            f"Scores are known to within ±{half:.2f} on average, {share:.0%} of the scale from "
            f"{low:g} to {high:g}.",
            "Half of the mean 95% interval of the scores, as a share of the scale",
        )
    uncertainty = (advice or advise(fit)).of_items.uncertainty
    distance = math.sqrt(float(uncertainty[unknown].mean()))
    return graded_trust(
        distance,
        DISTANCE_WITHIN,
        "up to {:g}",
        f"Items are expected to be {distance:.2f} from their truth (Hellinger distance of "
        "distributions: 0 is equal, 1 has nothing in common).",
        "The root of the mean expected squared Hellinger distance",
    )


def _about(share: float) -> str:
    return "More than 99%" if share >= 0.995 else f"About {share:.0%}"


def _half_width(fit: Fit, which: NDArray[np.bool_]) -> float:
    """Return the mean half-width of the scores' intervals; nan where there are none."""
    ends = [fit.item_columns.get(end) for end in ("score_low", "score_high")]
    if any(end is None for end in ends):
        return math.nan
    low, high = (np.asarray(end, dtype=np.float64)[which] for end in ends)
    known = ~np.isnan(high - low)
    return float((high - low)[known].mean() / 2.0) if known.any() else math.nan


def verdict_section(
    fit: Fit, advice: Advice, trust: Trust, agreement: AgreementRow, arguments: str
) -> Section:
    """Return the first screen; all counts are those of the advice.

    ``agreement``: that of all labels.
    ``arguments``: those of ``annotruth next``.
    """
    words = advice.of_annotators.verdict
    kept = f"{np.sum(words == 'keep'):,} of {fit.data.n_annotators:,}"
    name, alpha = next(iter(agreement.values.items()))
    metric = name.partition("(")[2].rstrip(")")
    same, by_chance = pair_agreement(fit.data)
    agree = "two labels of an item are equal"
    facts: list[Fact] = [
        (
            "Agreement",
            figure(alpha),
            f"Krippendorff's alpha ({metric}): 0 is chance, 1 is full agreement",
        ),
        above_chance(same, by_chance, agree, "no item has two labels"),
        (
            "Annotators to keep"
            if fit.reliability is None or has_flags(fit)
            else "Reliable annotators",
            DASH if fit.withholds_figures else kept,
            "not known" if fit.is_void else verdicts_besides_keep(words, "labels"),
        ),
        (
            "Labels per item",
            f"{fit.data.n_labels / fit.data.n_items:.1f}",
            f"{fit.data.n_labels / fit.data.n_annotators:,.0f} per annotator, on average",
        ),
    ]
    blocks = (whom_to_ask(fit, advice), what_to_label(fit, advice), _cost(fit, advice, arguments))
    screen = FirstScreen(_QUESTION, trust, Facts(facts), blocks, _rules(fit))
    return Section("verdict", "", [screen], link="Verdict")


def whom_to_ask(fit: Fit, advice: Advice | None = None) -> Answer:
    """Return the people to drop and to watch and, with ``advice``, those to ask for more."""
    question, words = "Whom to act on?", verdicts(fit)[0]
    if fit.is_void:
        return Answer(question, [f"Nobody to drop or to ask: {why_void(fit)}."])
    lines = whom_to_act_on(
        fit,
        words,
        estimate=leading_estimate(fit),
        n_given=fit.data.labels_per_annotator,
        unit="labels",
        nobody=f"Nobody to drop{_why_nobody(fit, int(np.sum(words == 'keep')))}.",
    )
    if "dependent_annotators" in fit.further:
        lines.append(_matching_pairs(fit.further["dependent_annotators"].facts["n_dependent"]))
    if advice is not None and advice.n_add:
        people = advice.of_annotators
        best = np.argsort(-people.information, kind="stable")
        ask = best[people.ask[best]]
        who = name_list(fit.data.annotators, ask)
        lines.append(count_line("annotators|ask|yes", len(ask), "to ask for more, best first", who))
    return Answer(question, lines)


def _matching_pairs(n_pairs: int) -> Part:
    """Return how many pairs of annotators depend on one another, with a link to them; empty if 0."""
    if not n_pairs:
        return ""
    pairs = f" {'pair' if n_pairs == 1 else 'pairs'} of annotators whose "
    link = Link("labels match", "dependent_annotators")
    return [Strong(f"{n_pairs:,}"), pairs, link, " more often than their items explain"]


def _why_nobody(fit: Fit, n_reliable: int) -> str:
    """Return why nobody has the verdict drop."""
    if NO_VERDICT in (fit.behavior or ()):
        sides = "it is open which of two sides is right"
        return f": {sides if fit.verdict == 'camps' else 'there are no verdicts on people'}"
    if has_flags(fit):
        return ": nobody is flagged as careless or consistently wrong"
    if "drop" in verdict_rules(fit):
        everybody = f": all {fit.data.n_annotators:,} annotators are reliable"
        return everybody if n_reliable == fit.data.n_annotators else ""
    return f": {fit.model} cannot tell spam from mistakes"


def what_to_label(fit: Fit, advice: Advice) -> Answer:
    """Return the items that need labels, and those that do not."""
    items, counts = advice.of_items, advice.of_items.count()
    if fit.is_void:
        return Answer("Which items to relabel?", ["Not known."])
    by_gain = np.argsort(-items.gain, kind="stable")
    needed = by_gain[items.needs_labels[by_gain]][:N_NAMED].tolist()
    rows = [(str(fit.data.items[e].as_py()), shorten(items.why[e].as_py())) for e in needed]
    texts = {
        "divided": "divided: more labels would not decide them",
        "needs no more labels": f"{_need(counts['needs no more labels'])} no more labels",
        "known truth": "with known truth",
    }
    need = f"of {fit.data.n_items:,} {_need(counts['needs labels'])} labels"
    need += ", first those that gain most" if counts["needs labels"] > 1 else ""
    lines = [
        count_line("items|status|needs labels", counts["needs labels"], need, NamedRows(rows))
        or "None: no item needs more labels."
    ]
    lines += [
        count_line(f"items|status|{word}", counts[word], text) for word, text in texts.items()
    ]
    lines.append(count_line("items|disputed|yes", n_disputed(fit), f"disputed: {DISPUTED_RULE}"))
    return Answer("Which items to relabel?", lines)


def n_disputed(fit: Fit) -> int:
    """Return how many items have a label that few support."""
    return 0 if fit.disputed is None else int(np.count_nonzero(fit.disputed))


def _need(count: int) -> str:
    return "needs" if count == 1 else "need"


def _cost(fit: Fit, advice: Advice, arguments: str) -> Answer:
    question, n_add = "What would it cost?", advice.n_add
    if fit.is_void:
        line = "Nothing yet: check the task and its instructions before you buy labels."
        return Answer(question, [line])
    if not n_add:
        return Answer(question, ["Nothing."])
    n_ask = int(advice.of_annotators.ask.sum())
    whom = "new annotators" if n_ask == 0 else "1 annotator"
    if n_ask > 1:
        whom = f"{counted(n_ask, 'annotator')}, about {math.ceil(n_add / n_ask):,} each"
    more = f"{percent(n_add / fit.data.n_labels)} more than the {fit.data.n_labels:,} so far"
    items, first = advice.of_items, ""
    if n_first := n_add // 4:
        added = share_out(n_first, items.uncertainty, items.gain, LEAST_GAIN, MAX_PER_ROUND)
        gained = percent(share_removed(added, items))
        first = f"; a quarter of them ({n_first:,}), where they gain most, {gained}"
    labels, they = ("label", "It") if n_add == 1 else ("labels", "They")
    removed = Strong(percent(share_removed(advice.add, items)))
    lines = [
        [Strong(f"{n_add:,}"), f" {labels} in this round, {more}; from {whom}"],
        [f"{they} would remove about ", removed, f" of the uncertainty{first}"],
        ["Next: ", next_command(arguments)],
    ]
    return Answer(question, lines)


def _rules(fit: Fit) -> list[tuple[str, str]]:
    """Return the rules behind the first screen."""
    gain = (
        "An item needs labels if one more label is expected to lower its squared Hellinger "
        f"distance from the truth by at least {LEAST_GAIN:g}; it gets at most {MAX_PER_ROUND} per "
        "round. Uncertainty is the sum of these distances."
    )
    ask = (
        "Annotators are asked for more labels unless they are dropped or their labels have low "
        f"information: less than {ASK_FROM:g} of the best tenth's."
    )
    return [
        *((f"Annotators: {word}", rule) for word, rule in verdict_rules(fit).items()),
        ("Annotators: ask", ask),
        *((f"Items: {status}", rule) for status, rule in ITEM_STATUS.items()),
        ("Labels to add", gain),
    ]
