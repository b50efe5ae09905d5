"""The report's section on groups of annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from annotruth.errors import shorten
from annotruth.kernels.arrays import Floats
from annotruth.models.fits.further import FurtherResults
from annotruth.models.result import Fit
from annotruth.report.charts.chart import color_indices
from annotruth.report.charts.drawing import Drawing
from annotruth.report.render import (
    Chips,
    Heading,
    Opener,
    Part,
    Section,
    SmallTable,
    Text,
    as_sentence,
)

_MAX_ITEMS = 25
_MAX_GROUPS = 4  # of more groups, an item shows the two that differ most
_WIDTH, _HEIGHT = 120.0, 12.0  # of the bar of a distribution


def make_section(fit: Fit, results: FurtherResults) -> Section:
    """Return the section: groups overall, and the items on which they differ most."""
    parts: list[Part] = [Text(as_sentence(line)) for line in results.lines]
    parts += [Heading("Groups overall"), _overall(results.tables["group_summary"])]
    parts += _items(fit, results.tables)
    return Section("groups", "Groups", parts)


def _overall(summary: pa.Table) -> SmallTable:
    """Return the table of groups with their reliability, and whether they differ."""
    titles = {
        "n_annotators": "Annotators",
        "n_labels": "Labels",
        "reliability": "Median reliability",
        "n_spammers": "Spammers",
        "level": "Above the others",
        "p_value": "P-value",
        "q_value": "Q-value",
        "differs": "Differs",
    }
    shown = [name for name in titles if name in summary.column_names]
    rows = [
        [shorten(row["group"]), *(_text(name, row[name]) for name in shown)]
        for row in summary.to_pylist()
    ]
    return SmallTable(["Group", *(titles[name] for name in shown)], rows)


def _text(name: str, value: Any) -> str:
    """Return a value of the table of groups as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if value is None or not np.isfinite(value):
        return "\N{EN DASH}"
    return f"{value:+.2f}" if name == "level" else _p(value) if "value" in name else f"{value:.2f}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _items(fit: Fit, tables: Mapping[str, pa.Table]) -> list[Part]:
    """Return the table of items with the groups' distributions side by side, under its heading."""
    found, opinions = tables["group_differences"], tables["groups"]
    shares = [f"p_{name}" for name in fit.data.scale.names]
    columns = [opinions[name] for name in shares if name in opinions.column_names]
    if (
        not len(found)
        or len(columns) < len(shares)
        or not all(pa.types.is_floating(column.type) for column in columns)
    ):
        return []
    found = found.take(pc.sort_indices(found, [("p_value", "ascending")])[:_MAX_ITEMS])
    groups = tables["group_summary"]["group"].to_pylist()
    side_by_side = groups if len(groups) <= _MAX_GROUPS else []
    rows = []
    for row in found.to_pylist():
        of_item = opinions.filter(pc.equal(opinions["item"], pa.scalar(row["item"])))
        rows.append(_item_row(fit, row, of_item.select(["group", *shares]), side_by_side))
    header = [shorten(name) for name in side_by_side] or ["Group", "Other group"]
    is_any = found["differs"][0].as_py()
    title = "Items on which groups differ most" if is_any else "Items with the smallest p-values"
    names = Chips(fit.data.scale.names, color_indices(fit.data.scale))
    table = SmallTable(["Item", *header, "P-value", "Q-value", "Differs"], rows)
    return [Heading(title), names, table]


def _item_row(
    fit: Fit, row: Mapping[str, Any], opinions: pa.Table, groups: Sequence[str]
) -> list[Part]:
    """Return the row of an item: a bar for each group, or for the two that differ most."""
    of_group = {each.pop("group"): np.array(list(each.values())) for each in opinions.to_pylist()}
    item = Opener(shorten(str(row["item"]), 40), "items", str(row["item"]))
    cells: list[Part] = [item]
    for name in groups or (row["group"], row["other"]):
        cells.append(_bar(fit, name, of_group.get(name), named=not groups))
    return [*cells, _p(row["p_value"]), _p(row["q_value"]), "yes" if row["differs"] else "no"]


def _bar(fit: Fit, name: str, shares: Floats | None, *, named: bool) -> Part:
    """Return a distribution as a bar with one part per category."""
    if shares is None or not np.isfinite(shares).all():
        return "\N{EN DASH}"
    drawing = Drawing(_WIDTH, _HEIGHT)
    colors, left = color_indices(fit.data.scale), 0.0
    for category, color, share in zip(fit.data.scale.names, colors, shares.tolist(), strict=True):
        width = _WIDTH * min(max(share, 0.0), 1.0)
        tip = f"{shorten(name)}: {shorten(category)} {share:.0%}"
        drawing.rect(left, 0.0, width, _HEIGHT, f"at-k{color}", tip=tip)
        left += width
    svg = Markup(drawing.svg(f"Opinion of {shorten(name)}"))
    return [f"{shorten(name, 24)} ", svg] if named else svg
