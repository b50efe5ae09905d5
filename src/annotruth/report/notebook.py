"""What notebooks show of a fit, a comparison and advice: one small block of HTML, without script.

Colors follow those of the text around the block, so it suits light and dark themes. All texts are
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from markupsafe import Markup

from annotruth.analyses.advice.advice import Advice, advise
from annotruth.analyses.advice.changes import Changes
from annotruth.analyses.advice.plan import Plan
from annotruth.errors import AnnotruthError, counted, shorten
from annotruth.models.pairs.summary import annotator_lines, leader_line, notices
from annotruth.models.result import Fit, RankFit
from annotruth.report.labels import LOWEST
from annotruth.report.rank_verdict import rank_trust
from annotruth.report.render import renderer
from annotruth.report.tables import leading_estimate
from annotruth.report.verdict import trust_of

if TYPE_CHECKING:
    from annotruth.selection.compare import Comparison

MAX_ROWS = 5
"""How many rows of a table a block shows."""

MAX_LABELS = 1_000_000
"""Fits of more labels are shown without advice, which would take seconds."""

_COLUMNS = (
    *("annotator", "item", "n_labels", "label", "expectation", "confidence"),
    *("accuracy", "reliability", "verdict", "behavior"),
)
_RANK_COLUMNS = ("item", "n_comparisons", "score", "low", "high", "rank", "rank_low", "rank_high")
_VOTER_COLUMNS = ("annotator", "n_comparisons", "reliability", "behavior")

# Shades of the text's color have contrast on white and on black.
_STYLE = """
& { --quiet: color-mix(in srgb, currentColor 70%, transparent); --line: color-mix(in srgb, currentColor 22%, transparent); }
& { font: 13px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; max-width: 72rem; }
& .at-lead { margin: 0 0 0.3em; font-size: 15px; }
& .at-quiet { color: var(--quiet); margin: 0 0 0.6em; }
& .at-parts { display: flex; flex-wrap: wrap; gap: 0.6em 2em; align-items: flex-start; }
& h4 { margin: 0.4em 0 0.2em; font-size: 13px; font-weight: 600; }
& table { border-collapse: collapse; margin: 0; font-size: 12px; color: inherit; }
& th, & td { text-align: left; padding: 0.2em 0.9em 0.2em 0; border: 0; border-bottom: 1px solid var(--line); background: none; color: inherit; }
& th { color: var(--quiet); font-weight: 500; }
& .at-number { text-align: right; font-variant-numeric: tabular-nums; }
"""


def fit_block(fit: Fit) -> str:
    """Return the block of a fit: can it be trusted, counts, annotators, items and a chart.

    Without advice, of very many labels, it has annotators only.
    """
    title, people = f"{fit.model} on {fit.data.describe()}", fit.annotator_table()
    advice, estimate = _advice(fit), leading_estimate(fit)
    order = (estimate, f"{LOWEST[estimate]} first")
    if advice is None:
        lead = fit.notice() or fit.stop_reason
        return block(title, lead, [], _sorted("Annotators", people, *order))
    trust = trust_of(fit, advice)
    people = people.append_column("verdict", advice.annotator_table()["verdict"])
    counts = [line for line in advice.lines() if line.startswith(("items:", "annotators:"))]
    return block(
        title,
        f"Can these labels be trusted? {trust.word}. {trust.sentence}",
        counts,
        {
            **_sorted("Annotators", people, *order),
            **_sorted("Items", fit.item_table(), "confidence", "least certain first"),
        },
    )


def _advice(fit: Fit) -> Advice | None:
    """Return advice if that is quick, and if the fit has what it needs: an old one may not."""
    if fit.data.n_labels > MAX_LABELS or fit.data.on_disk:
        return None
    try:
        return advise(fit)
    except AnnotruthError:
        return None


def rank_block(fit: RankFit) -> str:
    """Return the block of a fit of comparisons: can it be trusted, who leads, items, annotators."""
    trust, people = rank_trust(fit), fit.annotator_table()
    lines = [*notices(fit), leader_line(fit), *annotator_lines(fit)]
    tables = {"Items, best first": fit.item_table().select(_RANK_COLUMNS)}
    if fit.reliability is not None:
        known = [name for name in _VOTER_COLUMNS if name in people.column_names]
        tables["Annotators, least reliable first"] = people.sort_by("reliability").select(known)
    lead = f"Can this ranking be trusted? {trust.word}. {trust.sentence}"
    return block(f"{fit.model} on {fit.data.describe()}", lead, lines, tables)


def comparison_block(compared: Comparison) -> str:
    """Return the block of a comparison: the finding, the models, and how far they are apart."""
    models = compared.model_table()
    fitted = models.filter(models["refused"].is_null())
    shown = [name for name in fitted.column_names if fitted[name].null_count < len(fitted)]
    columns = ("model", "held_out", "behind", "behind_error", "accuracy", "srocc", "seconds")
    table = fitted.select([name for name in columns if name in shown])
    n_refused = len(models) - len(fitted)
    counts = [f"{counted(n_refused, 'model')} did not suit the labels"] if n_refused else []
    title, lead = f"{counted(len(fitted), 'model')} on {compared.data.describe()}", compared.finding
    return block(title, f"{lead}.", counts, {"Models, best first": table}, max_rows=15)


def advice_block(advice: Advice) -> str:
    """Return the block of advice: what to add, counts, items and annotators."""
    *warning, title = advice.fit.heading_lines()
    lead, *counts = [*warning, *advice.lines()]
    items = advice.item_table().sort_by([("gain", "descending")])
    people = advice.annotator_table().sort_by("information")
    tables = {
        "Items, highest gain first": items.select(["item", "n_labels", "add", "status", "gain"]),
        "Annotators, least informative first": people.select(
            ["annotator", "n_labels", "verdict", "information"]
        ),
    }
    return block(title, lead, counts, tables)


def changes_block(changes: Changes) -> str:
    """Return the block of what more labels changed: counts, items and annotators."""
    lines = [line for line in changes.summary().splitlines() if not line.startswith(" ")]
    tables = {"Items": changes.item_table, "Annotators": changes.annotator_table}
    return block("What changed", lines[0], lines[1:], tables)


def plan_block(plan: Plan) -> str:
    """Return the block of a plan: the lines of its summary."""
    target, *lines = plan.summary().splitlines()
    return block(target, str(plan).removeprefix("Plan(").removesuffix(")"), lines, {})


def _sorted(title: str, table: pa.Table, key: str, order: str) -> dict[str, pa.Table]:
    """Return the main columns of a table by its title, sorted by one that the table may not have."""
    has_key = key in table.column_names
    selected = table.select([name for name in _COLUMNS if name in table.column_names])
    return {f"{title}, {order}": selected.sort_by(key)} if has_key else {title: selected}


def block(
    title: str,
    lead: str,
    lines: Iterable[str],
    tables: Mapping[str, pa.Table],
    max_rows: int = MAX_ROWS,
) -> str:
    """Return a block: a lead, lines, and the first rows of tables."""
    return renderer().page(
        "notebook.html",
        title=title,
        lead=lead,
        lines=lines,
        tables=tables,
        max_rows=max_rows,
        style=" ".join(_STYLE.replace("&", ".annotruth").split()),
        heads=_heads,
        cell=_cell,
    )


def _heads(table: pa.Table) -> list[tuple[str, Markup]]:
    """Return the columns of a table with their attributes: numbers end at the right."""
    is_number = [
        pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in table.schema.types
    ]
    css = [Markup(' class="at-number"') if right else Markup("") for right in is_number]
    return list(zip(table.column_names, css, strict=True))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else shorten(str(value))
