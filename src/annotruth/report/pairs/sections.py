"""The sections of the report of a fit of comparisons: the first screen, and the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from annotruth.advice.annotators import verdict_rules, verdicts
from annotruth.comparisons.table import LEFT, OUTCOMES
from annotruth.errors import counted
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.distribution import Z_95
from annotruth.models.fits.notes import CHANCE
from annotruth.models.pairs.result import RankFit
from annotruth.models.pairs.summary import group_leaders, leaders, score_line, side_line
from annotruth.report.charts.chart import Chart, drawable
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.rank_charts import RankCharts, group_differences
from annotruth.report.html import (
    as_sentence,
    facts,
    figure,
    plain_table,
    section,
    side_by_side,
    table_placeholder,
)
from annotruth.report.pairs.verdict import SURE_ORDER, RankVerdict
from annotruth.report.sections import (
    answer_block,
    count_line,
    first_screen,
    name_list,
    named_rows,
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


def rank_verdict_section(fit: RankFit, verdict: RankVerdict, *, arguments: str) -> str:
    """Return the first screen; ``arguments`` are those of ``annotruth next`` and ``plan``."""
    blocks = (_leaders(fit), _people(fit, verdict), _next(fit, verdict, arguments))
    question = "Can this ranking be trusted?"
    return first_screen(question, verdict.trust, _facts(fit, verdict), blocks, _rules(fit))


def _facts(fit: RankFit, verdict: RankVerdict) -> list[tuple[str, object, str]]:
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


def _leaders(fit: RankFit) -> str:
    """Return who is first, or tied for first, in the largest parts."""
    lines = []
    sizes = np.bincount(fit.part)
    for part in np.argsort(-sizes, kind="stable")[:3].tolist():
        first = leaders(fit, part)
        named = named_rows(
            (
                short_id(fit.data.items, k),
                f"score {fit.scores.mean[k]:.2f}, P best {fit.ranking.p_best[k]:.2f}",
            )
            for k in first[:_N_NAMED].tolist()
        )
        where = f" in part {part + 1}" if fit.n_parts > 1 else ""
        head = "Clear first" if len(first) == 1 else f"<b>{len(first):,}</b> tied for first"
        lines.append(f"<li>{head}{where}{named}</li>")
    if fit.n_parts > 1:
        lines.append(
            f"<li><b>{fit.n_parts:,}</b> parts that were never compared with each other: scores "
            "and ranks hold within a part</li>"
        )
    return answer_block("Who is first?", lines)


def _people(fit: RankFit, verdict: RankVerdict) -> str:
    if fit.reliability is None:
        line = f"<li>{escaped(fit.model)} says nothing about annotators: rank with pair-gpm</li>"
        return answer_block("Whom to act on?", [line])
    words, ids = verdicts(fit)[0], fit.data.annotators
    dropped = np.flatnonzero(words == "drop")
    dropped = dropped[np.argsort(fit.reliability[dropped], kind="stable")]
    unsure = np.flatnonzero(words == "unsure")
    behavior = fit.behavior or [""] * len(words)
    about = named_rows(
        (short_id(ids, s), f"{behavior[s]}, reliability {fit.reliability[s]:.2f}")
        for s in dropped[:_N_NAMED].tolist()
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
        or f"<li>Nobody to drop{is_chance}.</li>",
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
        lines.append(f"<li>{escaped(line[0].upper() + line[1:])}</li>")
    return answer_block("Whom to act on?", lines)


def _next(fit: RankFit, verdict: RankVerdict, arguments: str) -> str:
    """Return what to do next."""
    plan = f"annotruth plan {arguments} --target tau=0.9"
    n_open = verdict.n_neighbours - verdict.n_separated
    lines = []
    if n_open:
        lines.append(
            f"<li><b>{n_open:,}</b> of {verdict.n_neighbours:,} neighbours in the ranking are not "
            "separated yet</li>"
        )
    else:
        lines.append("<li>All neighbours in the ranking are separated.</li>")
    if fit.n_parts > 1:
        lines.append("<li>Compare items of different parts, which joins them.</li>")
    lines.append(
        f"<li>Which pairs to ask: {next_command(arguments)}</li>"
        f"<li>How many votes it takes: <code>{escaped(plan)}</code></li>"
    )
    return answer_block("What next?", lines)


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


def ranking_section(fit: RankFit, charts: Mapping[str, Chart], table: PageTable) -> str:
    """Return scores and ranks of items with their intervals."""
    lead = f"{as_sentence(score_line(fit))} They have mean 0"
    lead += " within each part." if fit.n_parts > 1 else "."
    return section(
        "ranking",
        "Ranking",
        f'<p class="lead">{lead}</p>',
        side_by_side(figure(charts["ranking"]), figure(charts["ranks"])),
        rows_left_out(table, "items", "best", "rank"),
        table_placeholder("items", "Items"),
        long=True,
    )


def wins_section(charts: Mapping[str, Chart]) -> str:
    """Return the win matrix."""
    return section("wins", "Win matrix", figure(charts["wins"]))


def comparer_section(fit: RankFit, charts: Mapping[str, Chart], table: PageTable) -> str:
    """Return how reliable annotators are."""
    if fit.reliability is None:
        lead = f"{fit.model} gives no reliability of annotators: pair-gpm does."
        return section(
            "annotators",
            "Annotators",
            f'<p class="lead">{escaped(lead)}</p>',
            table_placeholder("annotators", "Annotators"),
            long=True,
        )
    words = verdicts(fit)[0]
    rules = verdict_rules(fit)
    counts = {word: int(np.count_nonzero(words == word)) for word in rules}
    return section(
        "annotators",
        "Annotators",
        f'<p class="lead">The median reliability is {np.median(fit.reliability):.2f}.</p>',
        side_by_side(figure(charts["reliability"]), verdict_counts("Verdicts", counts, rules)),
        rows_left_out(table, "annotators", "least reliable", "rank"),
        table_placeholder("annotators", "Annotators"),
        long=True,
    )


def side_section(fit: RankFit, charts: Mapping[str, Chart]) -> str:
    """Return the crowd's and the annotators' side bias; nothing where sides are not known."""
    if not fit.data.sides_known or (fit.side_bias is None and "side-bias" not in charts):
        return ""
    data = fit.data
    rows: list[tuple[str, object, str]] = [
        (f"Voted {name}", f"{np.mean(data.outcome == k):.0%}", "of all votes")
        for k, name in enumerate(OUTCOMES)
        if k == LEFT or (data.outcome == k).any()
    ]
    if fit.side_bias is not None:
        bias, low, high = fit.side_bias
        note = f"95% interval {low:+.2f} to {high:+.2f}; above 0 is in favor of the left item"
        rows.append(("Side bias of the crowd", f"{bias:+.2f}", note))
    line = side_line(fit)
    lead = f'<p class="lead">{escaped(as_sentence(line))}</p>' if line else ""
    parts = [facts(rows)]
    if "side-bias" in charts:
        parts = [
            side_by_side(figure(charts["side-bias"]), f'<div class="beside">{facts(rows)}</div>')
        ]
    return section("sides", "Side bias", lead, *parts)


def grade_section(
    grades: KnownGrades, metrics: Mapping[str, float], charts: Mapping[str, Chart]
) -> str:
    """Return how the ranking compares with known grades."""
    n = len(grades.item)
    rows: list[tuple[str, object, str]] = [
        (
            "Concordance",
            f"{metrics['concordance']:.3f}",
            "share of pairs with different grades in the right order",
        ),
        ("Kendall's tau-b", f"{metrics['kendall_tau']:.3f}", "1 is the same order, 0 is none"),
        ("Items with a grade", f"{n:,}", ""),
    ]
    beside = f'<div class="beside">{facts(rows)}</div>'
    return section("truth", "Against known grades", side_by_side(figure(charts["grades"]), beside))


def group_section(fit: RankFit, charts: Mapping[str, Chart]) -> str:
    """Return the taste groups: how large they are, and where they differ; nothing if there is one."""
    if fit.n_groups == 1 or fit.verdict == "chance":
        return ""
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
    if fit.chosen:
        lead += f" {as_sentence(fit.chosen)}"
    beside = f'<div class="beside">{facts(rows)}</div>'
    return section(
        "groups",
        "Taste groups",
        f'<p class="lead">{escaped(lead)}</p>',
        side_by_side(figure(charts["groups"]), beside),
    )


def votes_section(fit: RankFit, votes: PageTable | None, pairs: PageTable) -> str:
    """Return the votes that are probably not serious, and the pairs on which votes are divided."""
    parts = []
    if votes is not None and fit.p_serious is not None:
        n = int(np.count_nonzero(fit.p_serious < SPAMMER_BELOW))
        lead = (
            f"{n:,} of {fit.data.n_comparisons:,} votes ({n / fit.data.n_comparisons:.1%}) are "
            f"probably not serious: p serious is below {SPAMMER_BELOW}. Votes of annotators to "
            "drop go with them and are left out below."
        )
        parts.append(f'<p class="lead">{escaped(lead)}</p>')
        if votes.rows:
            parts += [
                "<h3>Doubtful votes</h3>",
                rows_left_out(votes, "doubtful votes", "most doubtful", "rank"),
                table_placeholder("votes", "Doubtful votes"),
            ]
    parts.append("<h3>Pairs on which votes are divided</h3>")
    if pairs.rows:
        parts += [
            rows_left_out(pairs, "such pairs", "most divided", "rank"),
            table_placeholder("pairs", "Divided pairs"),
        ]
    else:
        parts.append("<p>No pair has votes for both items.</p>")
    return section("votes", "Doubtful votes", *parts, long=True)


def parts_section(fit: RankFit) -> str:
    """Return the connected parts of the graph of comparisons; nothing if there is one."""
    if fit.n_parts == 1:
        return ""
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
    return section(
        "parts",
        "Parts of the graph",
        f'<p class="lead">{escaped(text)}</p>',
        plain_table(["", "items", "votes", "first"], rows),
        f"<p>And {counted(more, 'further part')}.</p>" if more else "",
    )
