"""The report of a ranking of items by comparisons: its sections, its tables and its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from annotruth.analyses.advice.annotators import verdicts
from annotruth.errors import counted
from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.pairs.summary import leaders, notices, score_line, side_line
from annotruth.models.result import RankFit
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import LEFT, OUTCOMES, RIGHT, TIE
from annotruth.report.charts.chart import Chart, drawable
from annotruth.report.charts.fit_charts import as_text
from annotruth.report.charts.rank_charts import RankCharts, outcome_counts
from annotruth.report.charts.shapes import scatter_chart
from annotruth.report.further import make_sections
from annotruth.report.headings import RANK_HEADINGS
from annotruth.report.page import Page, pack, tables_of
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
from annotruth.report.tables import (
    MAX_ANNOTATORS,
    PageTable,
    TableStyle,
    amend,
    insert_columns,
    without_spammer,
)
from annotruth.selection.evaluate import grade_metrics, match_grades

MAX_VOTES = 400_000
"""With more comparisons, the dialogs of items and annotators do not list them."""

MAX_ITEMS = 20_000
MAX_DOUBTFUL = 2_000
"""How many doubtful comparisons, and how many pairs with disagreement, a page has."""

_MAX_PARTS = 30

_STYLE = TableStyle(
    headings=RANK_HEADINGS,
    first=(
        *("item", "annotator", "rank", "reliability", "score", "verdict", "other", "left", "right"),
        *("chosen", "p_serious", "behavior", "p_best", "for_item", "for_other", "n_comparisons"),
    ),
    hidden=(
        *("low", "high", "rank_low", "rank_high", "side_bias_low", "side_bias_high", "p_group"),
        *("accuracy_low", "accuracy_high"),
    ),
    shares=("p_best", "left_share", "tie_share", "share"),
    intervals={
        "score": ("low", "high"),
        "rank": ("rank_low", "rank_high"),
        "accuracy": ("accuracy_low", "accuracy_high"),
        "reliability": ("low", "high"),
        "side_bias": ("side_bias_low", "side_bias_high"),
    },
)


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
    lead = Text(as_sentence(side_line(fit) or ""), "lead")
    return Section("sides", "Side bias", [lead, Facts(rows)])


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
        *rows_dropped(data, "without an outcome"),
    ]
    if data.contexts is not None:
        rows.append(("Contexts", f"{len(data.contexts):,}", "prompts, scenes or questions"))
    for name, (value, low, high) in fit.coefficients.items():
        note = f"log odds per unit, 95% interval {low:+.3g} to {high:+.3g}"
        rows.append((f"Covariate {name}", f"{value:+.3g}", note))
    return appendix(rows, fit, charts, "comparison")


class PageRows(NamedTuple):
    """Which annotators and items have a row on the page: their codes, in the order of the rows."""

    annotators: Codes
    items: Codes


def rows_on_page(fit: RankFit) -> PageRows:
    """Return the rows of the page: of too many, the least reliable annotators and the best items."""
    people = np.arange(fit.data.n_annotators)
    if fit.reliability is not None:
        people = np.argsort(fit.reliability, kind="stable")
    items = np.lexsort((-fit.scores.mean, fit.part))
    return PageRows(people[:MAX_ANNOTATORS], items[:MAX_ITEMS])


def rank_item_table(fit: RankFit, rows: Codes) -> PageTable:
    """Return the table of items, best first: the first rows of that of the fit."""
    won, lost, tied = (counts[rows] for counts in outcome_counts(fit))
    share = (won + tied / 2.0) / np.maximum(won + lost + tied, 1)
    table = fit.item_table().slice(0, len(rows))
    counts = {"share": share, "won": won, "lost": lost, "tied": tied}
    columns = _STYLE.columns(insert_columns(table, counts, after=table.column_names))
    low, high = fit.scores.interval.T
    amend(columns, "score", domain=[float(low.min()), float(high.max())])
    amend(columns, "rank", domain=[1, int(fit.ranking.high.max())], digits=0)
    sort_by = "part" if fit.n_parts > 1 else "rank"
    return PageTable(columns, len(rows), fit.data.n_items, sort_by)


def rank_annotator_table(fit: RankFit, rows: Codes) -> PageTable:
    """Return the table of annotators, least reliable first."""
    table, data = without_spammer(fit), fit.data
    shares = {"left_share": LEFT} if data.sides_known else {}
    shares |= {"tie_share": TIE} if data.has_ties else {}
    voter, total = data.annotator_of_comparison(), np.maximum(data.comparisons_per_annotator, 1)
    for name, outcome in shares.items():
        counts = np.bincount(voter, data.outcome == outcome, data.n_annotators)
        table = table.append_column(name, as_arrow(counts / total))
    if fit.reliability is not None:
        words, reasons = verdicts(fit)
        verdict = {"verdict": words.tolist()}
        table = insert_columns(table, verdict, after=("n_comparisons", "reliability"))
        table = table.append_column("reason", as_arrow(reasons))
    columns = _STYLE.columns(table, rows)
    amend(columns, "accuracy", domain=[0, 1])
    amend(columns, "reliability", domain=[0, 1], limit=SPAMMER_BELOW)
    if "side_bias_low" in table.column_names:
        amend(columns, "side_bias", domain=[-3, 3])
    # The dialog of an annotator has the reason, and the evidence for the behavior is shorter.
    if "evidence" in table.column_names:
        columns[-1]["hidden"] = fit.reliability is not None
    sort_by = "reliability" if fit.reliability is not None else "n_comparisons"
    return PageTable(columns, len(rows), data.n_annotators, sort_by)


def doubtful_votes(fit: RankFit, rows: Codes) -> PageTable | None:
    """Return the comparisons that are probably not serious, of annotators who are not dropped."""
    if fit.p_serious is None:
        return None
    data, annotator = fit.data, fit.data.annotator_of_comparison()
    dropped = verdicts(fit)[0] == "drop"
    doubtful = np.flatnonzero((fit.p_serious < SPAMMER_BELOW) & ~dropped[annotator])
    doubtful = doubtful[np.isin(annotator[doubtful], rows)]
    first = doubtful[np.argsort(fit.p_serious[doubtful], kind="stable")][:MAX_DOUBTFUL]
    items = as_text(data.items)
    table = {
        "annotator": data.annotators.take(as_arrow(annotator[first])),
        "left": [items[k] for k in data.left[first]],
        "right": [items[k] for k in data.right[first]],
        "chosen": [OUTCOMES[k] for k in data.outcome[first]],
        "p_serious": fit.p_serious[first],
    }
    opens = _places(rows, data.n_annotators)[annotator[first]].tolist()
    return PageTable(_STYLE.columns(table), len(first), len(doubtful), "p_serious", opens=opens)


def disputed_pairs(fit: RankFit, rows: Codes) -> PageTable:
    """Return the pairs on which votes are divided, those with most votes for each side first."""
    data = fit.data
    first, second = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
    key, pair = np.unique(first.astype(np.int64) * data.n_items + second, return_inverse=True)
    won = data.outcome == np.where(data.left == first, LEFT, RIGHT)
    tied = data.outcome == TIE
    wins, ties = (np.bincount(pair, each, len(key)).astype(int) for each in (won, tied))
    losses = np.bincount(pair, minlength=len(key)) - wins - ties
    divided = np.minimum(wins, losses)
    disputed = np.flatnonzero(divided > 0)
    best = disputed[np.argsort(-divided[disputed], kind="stable")][:MAX_DOUBTFUL]
    place = _places(rows, data.n_items)
    best = best[(place[np.stack(np.divmod(key[best], data.n_items))] >= 0).all(axis=0)]
    a, b = np.divmod(key[best], data.n_items)
    items = as_text(data.items)
    table = {
        "item": data.items.take(as_arrow(a)),
        "other": [items[k] for k in b],
        "for_item": wins[best],
        "for_other": losses[best],
        "ties": ties[best],
        "share": (wins + ties / 2.0)[best] / (wins + losses + ties)[best],
        "divided": divided[best],
    }
    return PageTable(
        _STYLE.columns(table), len(best), len(disputed), "divided", descending=True,
        opens=place[a].tolist(), opens_in="items",
    )  # fmt: skip


def vote_data(fit: RankFit, rows: PageRows, max_votes: int) -> dict[str, Any]:
    """Return the comparisons for the dialogs: rows of tables, outcomes, and p serious in percent.

    Of more than ``max_votes`` comparisons there are none, to keep the page small.
    """
    data = fit.data
    if data.n_comparisons > max_votes:
        return {"left": [], "right": [], "annotator": [], "outcome": [], "p_serious": None}
    item = _places(rows.items, data.n_items)
    annotator = _places(rows.annotators, data.n_annotators)
    serious = None
    if fit.p_serious is not None:
        serious = np.round(100.0 * fit.p_serious).astype(int).tolist()
    return {
        "left": item[data.left].tolist(),
        "right": item[data.right].tolist(),
        "annotator": annotator[data.annotator_of_comparison()].tolist(),
        "outcome": data.outcome.tolist(),
        "p_serious": serious,
    }


def _places(rows: Codes, n: int) -> Codes:
    """Return the row of each of n items or annotators; -1 of those that have none."""
    places = np.full(n, -1)
    places[rows] = np.arange(len(rows))
    return places
