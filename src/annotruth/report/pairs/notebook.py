"""What notebooks show of a fit of comparisons."""

from __future__ import annotations

from annotruth.models.pairs.summary import annotator_lines, leader_line, notices
from annotruth.models.result import RankFit
from annotruth.report.charts.rank_charts import RankCharts
from annotruth.report.notebook import block
from annotruth.report.pairs.verdict import rank_verdict

_ITEM_COLUMNS = ("item", "n_comparisons", "score", "low", "high", "rank", "rank_low", "rank_high")
_PEOPLE_COLUMNS = ("annotator", "n_comparisons", "reliability", "behavior")


def rank_block(fit: RankFit) -> str:
    """Return the block of a fit of comparisons: can it be trusted, who leads, items, annotators."""
    trust, people = rank_verdict(fit).trust, fit.annotator_table()
    lines = [*notices(fit), leader_line(fit), *annotator_lines(fit)]
    tables = {"Items, best first": fit.item_table().select(_ITEM_COLUMNS)}
    if fit.reliability is not None:
        known = [name for name in _PEOPLE_COLUMNS if name in people.column_names]
        tables["Annotators, least reliable first"] = people.sort_by("reliability").select(known)
    chart = RankCharts(fit).ranking() if fit.data.n_items <= 20 else None
    return block(
        f"{fit.model} on {fit.data.describe()}",
        f"Can this ranking be trusted? {trust.word}. {trust.sentence}",
        lines,
        tables,
        chart,
    )
