"""The report of a ranking of items by comparisons: its sections and its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from annotruth.errors import counted, shorten
from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.distribution import Z_95
from annotruth.models.pairs.summary import (
    group_leaders,
    leaders,
    notices,
    score_line,
    side_line,
)
from annotruth.models.result import RankFit
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import LEFT, OUTCOMES, TIE
from annotruth.report.charts.chart import Chart, drawable
from annotruth.report.charts.fit_charts import as_text
from annotruth.report.charts.rank_charts import RankCharts, group_differences
from annotruth.report.charts.shapes import scatter_chart
from annotruth.report.further import make_sections
from annotruth.report.page import Page, pack, tables_of
from annotruth.report.rank_tables import (
    disputed_pairs,
    doubtful_votes,
    rank_annotator_table,
    rank_item_table,
    rows_on_page,
    vote_data,
)
from annotruth.report.rank_verdict import rank_verdict_section
from annotruth.report.render import (
    Beside,
    DataTable,
    Fact,
    Facts,
    Heading,
    Part,
    Section,
    SideBySide,
    SmallTable,
    Text,
    as_sentence,
)
from annotruth.report.sections import (
    annotator_section,
    appendix,
    convergence_notice,
    range_of,
    rows_dropped,
    rows_left_out,
    short_id,
)
from annotruth.report.tables import PageTable
from annotruth.selection.evaluate import grade_metrics, match_grades

MAX_VOTES = 400_000
"""With more comparisons, the dialogs of items and annotators do not list them."""

_MAX_PARTS = 30
_MAX_DIFFERENT = 20  # items on which taste groups differ


def content(fit: RankFit, *, truth: Any = None, arguments: str | None = None) -> Page:
    """Return what is in the report of a ranking; the arguments are as for labels."""
    on_page = rows_on_page(fit)
    plot = RankCharts(fit)
    charts = drawable((plot.ranking, plot.ranks, plot.wins, plot.reliability, plot.history))
    shown = [
        rank_verdict_section(fit, arguments or "VOTES"),
        *([] if truth is None else [_against_grades(fit, truth)]),
        _ranking(fit, charts, rank_item_table(fit, on_page.items)),
        Section("wins", "Win matrix", [charts["wins"]]),
        _annotators(fit, charts, rank_annotator_table(fit, on_page.annotators)),
        _sides(fit),
        _groups(fit),
        _votes(fit, doubtful_votes(fit, on_page.annotators), disputed_pairs(fit, on_page.items)),
        *make_sections(fit),
        _parts(fit),
        _appendix(fit, charts),
    ]
    data = {"ranking": True, "categories": [], "colors": [], "tables": tables_of(shown)}
    return Page(
        kind="Ranking report",
        heading="Comparisons",
        described=fit.data.describe(),
        notice=" ".join([*map(as_sentence, notices(fit)), convergence_notice(fit)]).strip(),
        sections=shown,
        footer="Numbers in the tables are rounded; `annotruth rank --out DIR` writes them in full.",
        data="\n".join([pack(data), pack(vote_data(fit, on_page, MAX_VOTES))]),
    )


def _against_grades(fit: RankFit, truth: Any) -> Section:
    """Return how the ranking compares with known grades."""
    with file_named_in_errors(truth):
        grades = match_grades(fit, load_table(truth))
    metrics, score = grade_metrics(fit, grades), fit.scores.mean[grades.item]
    names = as_text(fit.data.items.take(as_arrow(grades.item)))
    chart = scatter_chart(
        "grades",
        "Scores against known grades",
        "One dot per item; grades count by their order only.",
        {"item": names, "grade": grades.grade.tolist(), "score": score.tolist()},
        [
            f"{name}: grade {g:g}, score {s:.2f}"
            for name, g, s in zip(names, grades.grade, score, strict=True)
        ],
        ("known grade", "score"),
        same_scale=False,
    )
    rows: list[Fact] = [
        (
            "Concordance",
            f"{metrics['concordance']:.3f}",
            "share of pairs with different grades in the right order",
        ),
        ("Kendall's tau-b", f"{metrics['kendall_tau']:.3f}", "1 is the same order, 0 is none"),
        ("Items with a grade", f"{len(grades.item):,}", ""),
    ]
    return Section("truth", "Against known grades", [SideBySide([chart, Beside([Facts(rows)])])])


def _ranking(fit: RankFit, charts: Mapping[str, Chart], table: PageTable) -> Section:
    """Return scores and ranks of items with their intervals."""
    lead = f"{as_sentence(score_line(fit))} They have mean 0"
    parts = [
        Text(lead + (" within each part." if fit.n_parts > 1 else "."), "lead"),
        SideBySide([charts["ranking"], charts["ranks"]]),
        rows_left_out(table, "items", "best", "rank"),
        DataTable("items", "Items", table),
    ]
    return Section("ranking", "Ranking", parts, long=True)


def _annotators(fit: RankFit, charts: Mapping[str, Chart], table: PageTable) -> Section:
    """Return how reliable annotators are."""
    shown = DataTable("annotators", "Annotators", table)
    if fit.reliability is None:
        lead = Text(f"{fit.model} gives no reliability of annotators: pair-gpm does.", "lead")
        return annotator_section(lead, None, fit, shown, "")
    lead = Text(f"The median reliability is {np.median(fit.reliability):.2f}.", "lead")
    return annotator_section(lead, charts["reliability"], fit, shown, "least reliable", "rank")


def _sides(fit: RankFit) -> Section:
    """Return the crowd's side bias; nothing where it is not known."""
    if not fit.data.sides_known or fit.side_bias is None:
        return Section("sides", "Side bias", [])
    data = fit.data
    rows: list[Fact] = [
        (f"Voted {name}", f"{np.mean(data.outcome == k):.0%}", "of all votes")
        for k, name in enumerate(OUTCOMES)
        if k == LEFT or (data.outcome == k).any()
    ]
    bias, low, high = fit.side_bias
    note = f"95% interval {low:+.2f} to {high:+.2f}; above 0 is in favor of the left item"
    rows.append(("Side bias of the crowd", f"{bias:+.2f}", note))
    line = side_line(fit)
    lead = Text(as_sentence(line or ""), "lead")
    return Section("sides", "Side bias", [lead, Facts(rows)])


def _groups(fit: RankFit) -> Section:
    """Return the taste groups: how large they are, and where they differ; nothing if there is one."""
    if fit.n_groups == 1 or fit.verdict == "chance":
        return Section("groups", "Taste groups", [])
    rows = [
        (f"Group {k}", f"{share:.0%}", f"of annotators; {best}")
        for k, (share, best) in enumerate(group_leaders(fit), start=1)
    ]
    items, distance = group_differences(fit)
    n_apart = int(np.count_nonzero(distance > Z_95))
    lead = (
        f"{fit.n_groups} groups of annotators have scores of their own. They differ on "
        f"{n_apart:,} of {fit.data.n_items:,} items by more than 1.96 standard errors. The groups were "
        "formed by these same votes, so part of the differences comes by construction."
    )
    if fit.chosen is not None:
        lead += f" {as_sentence(fit.chosen['why'])}"
    scores, names = fit.group_scores()[0], as_text(fit.data.items)
    header = [
        "Scores where they differ most",
        *(name.lower() for name, *_ in rows),
        "standard errors",
    ]
    apart = [
        [shorten(names[k], 40), *(f"{score:.2f}" for score in scores[:, k]), f"{errors:.1f}"]
        for k, errors in zip(items[:_MAX_DIFFERENT], distance, strict=False)
    ]
    shown = [Text(lead, "lead"), Facts(rows), SmallTable(header, apart)]
    return Section("groups", "Taste groups", shown)


def _votes(fit: RankFit, votes: PageTable | None, pairs: PageTable) -> Section:
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


def _parts(fit: RankFit) -> Section:
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


def _appendix(fit: RankFit, charts: Mapping[str, Chart]) -> Section:
    """Return what was read and how the fit ended."""
    data = fit.data
    ties = int((data.outcome == TIE).sum())
    of_people = range_of(data.comparisons_per_annotator, "comparison")
    rows: list[Fact] = [
        ("Comparisons", f"{data.n_comparisons:,}", f"{ties:,} of them ties" if ties else "no ties"),
        ("Items", f"{data.n_items:,}", range_of(data.comparisons_per_item, "comparison")),
        ("Annotators", f"{data.n_annotators:,}", of_people),
        ("Sides", "known" if data.sides_known else "not known", "on which items were shown"),
        rows_dropped(data.n_dropped, "without an outcome"),
    ]
    if data.contexts is not None:
        rows.append(("Contexts", f"{len(data.contexts):,}", "prompts, scenes or questions"))
    for name, (value, low, high) in fit.coefficients.items():
        note = f"log odds per unit, 95% interval {low:+.3g} to {high:+.3g}"
        rows.append((f"Covariate {name}", f"{value:+.3g}", note))
    return appendix(rows, fit, charts, "comparison")
