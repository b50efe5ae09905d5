"""The sections of the report of a fit of comparisons: the first screen, and the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from annotruth.analyses.advice.annotators import verdict_rules, verdicts
from annotruth.analyses.advice.pairs.advice import top_items
from annotruth.analyses.advice.pairs.annotators import typical_voter
from annotruth.errors import counted
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.distribution import Z_95
from annotruth.models.fits.notes import CHANCE
from annotruth.models.pairs.summary import group_leaders, leaders, score_line, side_line
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import LEFT, OUTCOMES
from annotruth.report.charts.chart import Chart, drawable
from annotruth.report.charts.rank_charts import RankCharts, group_differences
from annotruth.report.pairs.verdict import SURE_ORDER, RankVerdict
from annotruth.report.render import (
    Answer,
    Beside,
    CodeText,
    DataTable,
    Fact,
    Facts,
    Heading,
    NamedRows,
    Part,
    Section,
    SideBySide,
    SmallTable,
    Strong,
    Text,
    as_sentence,
)
from annotruth.report.sections import (
    count_line,
    first_screen,
    name_list,
    next_command,
    rows_left_out,
    short_id,
    verdict_counts,
)
from annotruth.report.tables import PageTable

if TYPE_CHECKING:
    from annotruth.selection.evaluate import KnownGrades

_N_NAMED = 4
_MAX_PARTS = 30


def rank_charts_of(fit: RankFit) -> dict[str, Chart]:
    """Return the charts of the report that the model has data for, by name."""
    plot = RankCharts(fit)
    wanted = (
        *(plot.ranking, plot.ranks, plot.wins, plot.reliability, plot.side_bias, plot.history),
        plot.groups,
    )
    return drawable(wanted)


def rank_verdict_section(fit: RankFit, verdict: RankVerdict, *, arguments: str) -> Section:
    """Return the first screen; ``arguments`` are those of ``annotruth next`` and ``plan``."""
    blocks = (_leaders(fit), _people(fit, verdict), _next(fit, verdict, arguments))
    question = "Can this ranking be trusted?"
    return first_screen(question, verdict.trust, _facts(fit, verdict), blocks, _rules(fit))


def _facts(fit: RankFit, verdict: RankVerdict) -> list[Fact]:
    dash, data = "\N{EN DASH}", fit.data
    above = agreement = dash
    if not math.isnan(verdict.same):
        above = f"{100 * (verdict.same - verdict.same_by_chance):+.0f} points"
        agreement = (
            f"two votes on a pair agree {verdict.same:.0%} of the time; "
            f"by chance {verdict.same_by_chance:.0%}"
        )
    people = ("Annotators", f"{data.n_annotators:,}", f"{fit.model} treats all of them alike")
    if verdict.annotators:
        rest = [
            f"{verdict.annotators[word]:,} {text}"
            for word, text in (
                ("drop", "to drop"),
                ("unsure", "unsure"),
                ("too few votes", "with too few votes to tell"),
            )
            if verdict.annotators[word]
        ]
        kept = f"{verdict.annotators['keep']:,} of {data.n_annotators:,}"
        people = ("Reliable annotators", kept, ", ".join(rest))
    return [
        (
            "Neighbours separated",
            f"{verdict.n_separated:,} of {verdict.n_neighbours:,}",
            f"of items next to each other, with {SURE_ORDER:.1%} probability",
        ),
        ("Above chance", above, agreement),
        people,
        (
            "Votes per item",
            f"{2 * data.n_comparisons / data.n_items:.1f}",
            f"each is of two items; {data.n_comparisons / data.n_annotators:,.0f} per annotator",
        ),
    ]


def _leaders(fit: RankFit) -> Answer:
    """Return who is first, or tied for first, in the largest parts."""
    lines: list[Part] = []
    sizes = np.bincount(fit.part)
    for part in np.argsort(-sizes, kind="stable")[:3].tolist():
        first = leaders(fit, part)
        named = NamedRows(
            [
                (
                    short_id(fit.data.items, k),
                    f"score {fit.scores.mean[k]:.2f}, P best {fit.ranking.p_best[k]:.2f}",
                )
                for k in first[:_N_NAMED].tolist()
            ]
        )
        where = f" in part {part + 1}" if fit.n_parts > 1 else ""
        tied = [Strong(f"{len(first):,}"), " tied for first"]
        lines.append([tied if len(first) > 1 else "Clear first", where, named])
    if fit.n_parts > 1:
        text = (
            " parts that were never compared with each other: scores and ranks hold within a part"
        )
        lines.append([Strong(f"{fit.n_parts:,}"), text])
    return Answer("Who is first?", lines)


def _people(fit: RankFit, verdict: RankVerdict) -> Answer:
    if fit.reliability is None:
        line = f"{fit.model} says nothing about annotators: rank with pair-gpm"
        return Answer("Whom to act on?", [line])
    words, ids = verdicts(fit)[0], fit.data.annotators
    dropped = np.flatnonzero(words == "drop")
    dropped = dropped[np.argsort(fit.reliability[dropped], kind="stable")]
    unsure = np.flatnonzero(words == "unsure")
    behavior = fit.behavior or [""] * len(words)
    about = NamedRows(
        [
            (short_id(ids, s), f"{behavior[s]}, reliability {fit.reliability[s]:.2f}")
            for s in dropped[:_N_NAMED].tolist()
        ]
    )
    is_chance = f": votes {CHANCE}" if fit.verdict == "chance" else ""
    votes = fit.data.comparisons_per_annotator[dropped].sum() / fit.data.n_comparisons
    lines = [
        count_line(
            "annotators|verdict|drop",
            len(dropped),
            f"to drop, with {votes:.0%} of the votes",
            about,
        )
        or f"Nobody to drop{is_chance}.",
        count_line(
            "annotators|verdict|unsure",
            len(unsure),
            "unsure: watch them",
            name_list(ids, unsure),
        ),
        count_line(
            "annotators|verdict|too few votes",
            verdict.annotators["too few votes"],
            "with too few votes to tell",
        ),
    ]
    if line := side_line(fit):
        lines.append(line[0].upper() + line[1:])
    return Answer("Whom to act on?", lines)


def _next(fit: RankFit, verdict: RankVerdict, arguments: str) -> Answer:
    """Return what to do next."""
    plan = f"annotruth plan {arguments} --target tau=0.9"
    n_open = verdict.n_neighbours - verdict.n_separated
    lines: list[Part] = []
    if n_open:
        rest = f" of {verdict.n_neighbours:,} neighbours in the ranking are not separated yet"
        lines.append([Strong(f"{n_open:,}"), rest])
    else:
        lines.append("All neighbours in the ranking are separated.")
    if (
        top := top_items(fit, typical_voter(fit, np.ones(fit.data.n_annotators, np.bool_)))
    ) is not None:
        lines.append(as_sentence(top.line()))
    if fit.n_parts > 1:
        lines.append("Compare items of different parts, which joins them.")
    lines.append(["Which pairs to ask: ", next_command(arguments)])
    lines.append(["How many votes it takes: ", CodeText(plan)])
    return Answer("What next?", lines)


def _rules(fit: RankFit) -> list[tuple[str, str]]:
    rules = [] if fit.reliability is None else list(verdict_rules(fit).items())
    return [
        *((f"Annotators: {word}", rule) for word, rule in rules),
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


def ranking_section(fit: RankFit, charts: Mapping[str, Chart], table: PageTable) -> Section:
    """Return scores and ranks of items with their intervals."""
    lead = f"{as_sentence(score_line(fit))} They have mean 0"
    lead += " within each part." if fit.n_parts > 1 else "."
    parts = [
        Text(lead, "lead"),
        SideBySide([charts["ranking"], charts["ranks"]]),
        rows_left_out(table, "items", "best", "rank"),
        DataTable("items", "Items", table),
    ]
    return Section("ranking", "Ranking", parts, long=True)


def wins_section(charts: Mapping[str, Chart]) -> Section:
    """Return the win matrix."""
    return Section("wins", "Win matrix", [charts["wins"]])


def comparer_section(fit: RankFit, charts: Mapping[str, Chart], table: PageTable) -> Section:
    """Return how reliable annotators are."""
    if fit.reliability is None:
        parts: list[Part] = [
            Text(f"{fit.model} gives no reliability of annotators: pair-gpm does.", "lead")
        ]
    else:
        words, rules = verdicts(fit)[0], verdict_rules(fit)
        counts = {word: int(np.count_nonzero(words == word)) for word in rules}
        parts = [
            Text(f"The median reliability is {np.median(fit.reliability):.2f}.", "lead"),
            SideBySide([charts["reliability"], verdict_counts("Verdicts", counts, rules)]),
            rows_left_out(table, "annotators", "least reliable", "rank"),
        ]
    parts.append(DataTable("annotators", "Annotators", table))
    return Section("annotators", "Annotators", parts, long=True)


def side_section(fit: RankFit, charts: Mapping[str, Chart]) -> Section:
    """Return the crowd's and the annotators' side bias; nothing where sides are not known."""
    if not fit.data.sides_known or (fit.side_bias is None and "side-bias" not in charts):
        return Section("sides", "Side bias", [])
    data = fit.data
    rows: list[Fact] = [
        (f"Voted {name}", f"{np.mean(data.outcome == k):.0%}", "of all votes")
        for k, name in enumerate(OUTCOMES)
        if k == LEFT or (data.outcome == k).any()
    ]
    if fit.side_bias is not None:
        bias, low, high = fit.side_bias
        note = f"95% interval {low:+.2f} to {high:+.2f}; above 0 is in favor of the left item"
        rows.append(("Side bias of the crowd", f"{bias:+.2f}", note))
    line = side_line(fit)
    lead = Text(as_sentence(line), "lead") if line else ""
    shown: Part = Facts(rows)
    if "side-bias" in charts:
        shown = SideBySide([charts["side-bias"], Beside([shown])])
    return Section("sides", "Side bias", [lead, shown])


def grade_section(grades: KnownGrades, metrics: Mapping[str, float], chart: Chart) -> Section:
    """Return how the ranking compares with known grades."""
    n = len(grades.item)
    rows: list[Fact] = [
        (
            "Concordance",
            f"{metrics['concordance']:.3f}",
            "share of pairs with different grades in the right order",
        ),
        ("Kendall's tau-b", f"{metrics['kendall_tau']:.3f}", "1 is the same order, 0 is none"),
        ("Items with a grade", f"{n:,}", ""),
    ]
    return Section("truth", "Against known grades", [SideBySide([chart, Beside([Facts(rows)])])])


def group_section(fit: RankFit, charts: Mapping[str, Chart]) -> Section:
    """Return the taste groups: how large they are, and where they differ; nothing if there is one."""
    if fit.n_groups == 1 or fit.verdict == "chance":
        return Section("groups", "Taste groups", [])
    n = fit.data.n_items
    rows = [
        (f"Group {number}", f"{share:.0%}", f"of annotators; {best}")
        for number, (share, best) in enumerate(group_leaders(fit), start=1)
    ]
    n_apart = int(np.count_nonzero(group_differences(fit)[1] > Z_95))
    lead = (
        f"{fit.n_groups} groups of annotators have scores of their own. They differ on "
        f"{n_apart:,} of {n:,} items by more than 1.96 standard errors. The groups were formed by "
        "these same votes, so part of the differences comes by construction."
    )
    if fit.chosen is not None:
        lead += f" {as_sentence(fit.chosen['why'])}"
    shown = SideBySide([charts["groups"], Beside([Facts(rows)])])
    return Section("groups", "Taste groups", [Text(lead, "lead"), shown])


def votes_section(fit: RankFit, votes: PageTable | None, pairs: PageTable) -> Section:
    """Return the votes that are probably not serious, and the pairs on which votes are divided."""
    parts: list[Part] = []
    if votes is not None and fit.p_serious is not None:
        n = int(np.count_nonzero(fit.p_serious < SPAMMER_BELOW))
        lead = (
            f"{n:,} of {fit.data.n_comparisons:,} votes ({n / fit.data.n_comparisons:.1%}) are "
            f"probably not serious: p serious is below {SPAMMER_BELOW}. Votes of annotators to "
            "drop go with them and are left out below."
        )
        parts.append(Text(lead, "lead"))
        if votes.rows:
            parts += [
                Heading("Doubtful votes"),
                rows_left_out(votes, "doubtful votes", "most doubtful", "rank"),
                DataTable("votes", "Doubtful votes", votes),
            ]
    parts.append(Heading("Pairs on which votes are divided"))
    if pairs.rows:
        parts += [
            rows_left_out(pairs, "such pairs", "most divided", "rank"),
            DataTable("pairs", "Divided pairs", pairs),
        ]
    else:
        parts.append(Text("No pair has votes for both items."))
    return Section("votes", "Doubtful votes", parts, long=True)


def parts_section(fit: RankFit) -> Section:
    """Return the connected parts of the graph of comparisons; nothing if there is one."""
    if fit.n_parts == 1:
        return Section("parts", "Parts of the graph", [])
    sizes = np.bincount(fit.part)
    votes = np.bincount(fit.part[fit.data.left], minlength=fit.n_parts)
    largest = np.argsort(-sizes, kind="stable")[:_MAX_PARTS].tolist()
    rows = [
        [
            f"part {part + 1}",
            f"{sizes[part]:,}",
            f"{votes[part]:,}",
            short_id(fit.data.items, int(leaders(fit, part)[0])),
        ]
        for part in largest
    ]
    more = fit.n_parts - len(largest)
    text = (
        "No comparison joins items of different parts, so their scores and ranks cannot be "
        "compared. A few comparisons between the parts would join them."
    )
    shown = [
        Text(text, "lead"),
        SmallTable(["", "items", "votes", "first"], rows),
        Text(f"And {counted(more, 'further part')}.") if more else "",
    ]
    return Section("parts", "Parts of the graph", shown, link="Parts")
