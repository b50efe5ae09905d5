"""The first screen of the report of a ranking: can it be trusted, who leads, whom to act on."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from annotruth.analyses.advice.annotators import verdict_rules, verdicts
from annotruth.analyses.advice.pairs.advice import top_items
from annotruth.analyses.advice.pairs.annotators import typical_voter
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.fits.notes import CHANCE
from annotruth.models.pairs.beside import contradictions
from annotruth.models.pairs.summary import ONE_ANNOTATOR, leaders, only_outcome, side_line
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import TIE, Comparisons
from annotruth.observations.pairs.votes import in_order_of_codes
from annotruth.report.render import (
    DASH,
    Answer,
    CodeText,
    Fact,
    Facts,
    FirstScreen,
    NamedRows,
    Part,
    Section,
    Strong,
    as_sentence,
)
from annotruth.report.sections import (
    N_NAMED,
    FirstLines,
    Trust,
    above_chance,
    chance_rule,
    chance_trust,
    first_lines,
    graded_trust,
    next_command,
    verdicts_besides_keep,
    whom_to_act_on,
)

_QUESTION = "Can this ranking be trusted?"

ORDER_FROM = (0.95, 0.85, 0.7)
"""The expected shares of pairs in the right order from which the answer is Yes, Mostly, Partly."""

SURE_ORDER = 0.975
"""The probability from which two neighbours in the ranking count as separated."""

_MAX_PAIRS = 200_000


def expected_order(fit: RankFit) -> float:
    """Return the expected share of pairs of items of one part that are in the right order."""
    n = fit.data.n_items
    if n * (n - 1) // 2 <= _MAX_PAIRS:
        first, second = np.triu_indices(n, 1)
    else:  # a sample, always the same
        first, second = np.random.default_rng(0).integers(n, size=(2, _MAX_PAIRS))
    kept = (fit.part[first] == fit.part[second]) & (first != second)
    if not kept.any():
        return math.nan
    return float(_order_probability(fit, first[kept], second[kept]).mean())


def _neighbour_order(fit: RankFit) -> Floats:
    """Return the probability that neighbours in the ranking are in the order of their scores."""
    order = np.lexsort((-fit.scores.mean, fit.part))
    above, below = order[:-1], order[1:]
    same_part = fit.part[above] == fit.part[below]
    return _order_probability(fit, above[same_part], below[same_part])


def _order_probability(fit: RankFit, first: Codes, second: Codes) -> Floats:
    """Return the probability that two items are in the order of their scores."""
    covariance, mean = fit.scores.covariance, fit.scores.mean
    variance = fit.scores.sd[first] ** 2 + fit.scores.sd[second] ** 2
    if covariance.ndim == 2:
        variance = variance - 2.0 * covariance[first, second]
    sd = np.sqrt(np.maximum(variance, 1e-18))
    probability: Floats = ndtr(np.abs(mean[first] - mean[second]) / sd)
    return probability


def vote_agreement(data: Comparisons) -> tuple[float, float]:
    """Return how often two votes on the same pair agree, and how often they would by chance.

    Where there are contexts, both votes are in the same one.
    """
    first, second, outcome = in_order_of_codes(data.left, data.right, data.outcome)
    key = first.astype(np.int64) * data.n_items + second
    if data.context is not None:
        key = key * (int(data.context.max()) + 1) + data.context
    _, pair = np.unique(key, return_inverse=True)
    counts = np.bincount(pair * 3 + outcome, minlength=3 * (int(pair.max()) + 1)).reshape(-1, 3)
    total = counts.sum(axis=1)
    n_pairs = (total * (total - 1)).sum()
    if n_pairs == 0:
        return math.nan, math.nan
    ties = float(np.mean(data.outcome == TIE))
    by_chance = ties**2 + (1.0 - ties) ** 2 / 2.0
    return float((counts * (counts - 1)).sum() / n_pairs), by_chance


def rank_trust(fit: RankFit) -> Trust:
    """Return whether the ranking can be trusted."""
    same = only_outcome(fit.data)
    if same and fit.data.n_comparisons > 1:
        return Trust("No", "bad", as_sentence(same), "")
    if fit.data.n_annotators == 1:
        why = f"{as_sentence(ONE_ANNOTATOR)} The ranking is that person's."
        return Trust("Too few annotators to tell", "bad", why, "")
    if fit.verdict == "chance":
        return chance_trust("votes", "ranks", chance_rule(fit.model, "votes"))
    right_order = expected_order(fit)
    if math.isnan(right_order):
        return Trust("Too few votes to tell", "bad", "No two items can be compared.", "")
    within = " within the parts of the graph" if fit.n_parts > 1 else ""
    if against := contradictions(fit):
        return Trust("Not as it is", "bad", " ".join(map(as_sentence, against)), "")
    return graded_trust(
        right_order,
        ORDER_FROM,
        "from {:.0%}",
        f"About {right_order:.0%} of all pairs of items{within} are expected to be in the right "
        "order.",
        "The expected share of pairs in the right order, the mean of their probabilities",
    )


def rank_verdict_section(fit: RankFit, arguments: str) -> Section:
    """Return the first screen; ``arguments`` are those of ``annotruth next`` and ``plan``."""
    data, p_order = fit.data, _neighbour_order(fit)
    n_separated = int(np.count_nonzero(p_order >= SURE_ORDER))
    same, by_chance = vote_agreement(data)
    people = ("Annotators", f"{data.n_annotators:,}", f"{fit.model} treats all of them alike")
    if fit.reliability is not None:
        words = verdicts(fit)[0]
        kept = f"{np.count_nonzero(words == 'keep'):,} of {data.n_annotators:,}"
        people = ("Reliable annotators", kept, verdicts_besides_keep(words, "votes"))
    facts: list[Fact] = [
        (
            "Neighbours separated",
            f"{n_separated:,} of {len(p_order):,}",
            f"of items next to each other, with {SURE_ORDER:.1%} probability",
        ),
        above_chance(same, by_chance, "two votes on a pair agree", DASH),
        people,
        (
            "Votes per item",
            f"{2 * data.n_comparisons / data.n_items:,.1f}",
            f"each is of two items; {data.n_comparisons / data.n_annotators:,.0f} per annotator",
        ),
    ]
    rules = {} if fit.reliability is None else verdict_rules(fit)
    listed = [
        *((f"Annotators: {word}", rule) for word, rule in rules.items()),
        ("Tied for first", "the 95% interval of the item's rank contains 1"),
        (
            "Neighbours separated",
            f"the better of two items has the higher score with a probability of {SURE_ORDER:.1%}",
        ),
        (
            "Above chance",
            "how often two votes on a pair agree, less how often votes at random would",
        ),
    ]
    blocks = (_leaders(fit), _people(fit), _next(fit, len(p_order) - n_separated, arguments))
    screen = FirstScreen(_QUESTION, rank_trust(fit), Facts(facts), blocks, listed)
    return Section("verdict", "", [screen], link="Verdict")


def first_lines_of_ranking(fit: RankFit, arguments: str, _truth: object = None) -> FirstLines:
    """Return the first screen in lines; ``arguments`` are those of ``annotruth next``."""
    blocks = (_leaders(fit), _people(fit))
    step = "" if fit.verdict == "chance" else str(next_command(arguments).text)
    return first_lines(_QUESTION, rank_trust(fit), blocks, step)


def _leaders(fit: RankFit) -> Answer:
    """Return who is first, or tied for first, in the largest parts."""
    lines: list[Part] = []
    for part in np.argsort(-np.bincount(fit.part), kind="stable")[:3].tolist():
        first = leaders(fit, part)
        about = [
            f"score {fit.scores.mean[k]:.2f}, P best {fit.ranking.p_best[k]:.2f}" for k in first
        ]
        named = [str(fit.data.items[k].as_py()) for k in first[:N_NAMED].tolist()]
        where = f" in part {part + 1}" if fit.n_parts > 1 else ""
        tied = [Strong(f"{len(first):,}"), " tied for first"]
        rows = NamedRows(list(zip(named, about, strict=False)))
        lines.append([tied if len(first) > 1 else "Clear first", where, rows])
    if fit.n_parts > 1:
        text = (
            " parts that were never compared with each other: scores and ranks hold within a part"
        )
        lines.append([Strong(f"{fit.n_parts:,}"), text])
    return Answer("Who is first?", lines)


def _people(fit: RankFit) -> Answer:
    if fit.reliability is None:
        line = f"{fit.model} says nothing about annotators: rank with pair-gpm"
        return Answer("Whom to act on?", [line])
    lines = whom_to_act_on(
        fit,
        verdicts(fit)[0],
        estimate="reliability",
        n_given=fit.data.comparisons_per_annotator,
        unit="votes",
        nobody=f"Nobody to drop{f': votes {CHANCE}' if fit.verdict == 'chance' else ''}.",
    )
    if line := side_line(fit):
        lines.append(line[0].upper() + line[1:])
    return Answer("Whom to act on?", lines)


def _next(fit: RankFit, n_open: int, arguments: str) -> Answer:
    """Return what to do next; ``n_open`` neighbours in the ranking are not separated."""
    lines: list[Part] = ["All neighbours in the ranking are separated."]
    if n_open:
        rest = f" of {len(fit.scores.mean) - fit.n_parts:,} neighbours in the ranking are not separated yet"
        lines = [[Strong(f"{n_open:,}"), rest]]
    voter = typical_voter(fit, np.ones(fit.data.n_annotators, np.bool_))
    if (top := top_items(fit, voter)) is not None:
        lines.append(as_sentence(top.line()))
    if fit.n_parts > 1:
        lines.append("Compare items of different parts, which joins them.")
    plan = CodeText(f"annotruth plan {arguments} --target tau=0.9")
    lines.append(["Which pairs to ask: ", next_command(arguments)])
    return Answer("What next?", [*lines, ["How many votes it takes: ", plan]])
