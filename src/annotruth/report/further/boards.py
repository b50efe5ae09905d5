"""The report's section on boards by a column of the comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotruth.errors import counted, shorten
from annotruth.models.fits.further import FurtherResults
from annotruth.models.result import Fit
from annotruth.report.render import Heading, Part, Section, SmallTable, Text

_MAX_BOARDS, _MAX_ITEMS, _MAX_PAIRS = 12, 30, 20
_MEANING = (
    "One column per value of {by}: the rank of each item there, and its score with its 95% interval. Boards with "
    "few votes are drawn towards the ranking of all; a dash is an item that was not compared there."
)


def make_section(fit: Fit[Any], results: FurtherResults) -> Section:
    """Return the section: the boards side by side, and where the order differs."""
    rows = results.tables["boards"].to_pylist()
    column = shorten(str(results.facts["by"]), 40)
    parts = [
        Text(_MEANING.format(by=column), "lead"),
        *_matrix(rows),
        *_pairs(results.tables["board_differences"].to_pylist(), column),
    ]
    return Section("boards", f"Boards by {column}", parts, link="Boards")


def _matrix(rows: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Return one row per item, best first, and one column per board, the largest first."""
    sizes = {row["board"]: row["n_comparisons"] for row in rows}
    boards = sorted(sizes, key=lambda name: -sizes[name])[:_MAX_BOARDS]
    cells = {(row["item"], row["board"]): row for row in rows}
    overall = {row["item"]: row["score"] - row["difference"] for row in rows}
    items = sorted(overall, key=lambda item: -overall[item])[:_MAX_ITEMS]
    header = ["Item", *(f"{shorten(name, 24)} ({sizes[name]:,})" for name in boards)]
    lines = [
        [shorten(str(item), 40), *(_cell(cells[item, board]) for board in boards)] for item in items
    ]
    left_out = [
        f"{counted(n, what)} more in boards.csv of --out"
        for n, what in ((len(sizes) - len(boards), "board"), (len(overall) - len(items), "item"))
        if n > 0
    ]
    note = Text(f"{'; '.join(left_out)}.", "quiet") if left_out else ""
    return [SmallTable(header, lines), note]


def _cell(row: Mapping[str, Any]) -> str:
    if not row["compared"]:
        return "\N{EN DASH}"
    return f"{row['rank']}: {row['score']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def _pairs(rows: Sequence[Mapping[str, Any]], by: str) -> list[Part]:
    """Return the table of pairs whose order differs from that of all votes."""
    if not rows:
        return [Text(f"The order of no two items clearly differs by {by}.")]
    header = ("Board", "Better there", "Better over all", "Difference there", "Over all", "q")
    lines = [
        [
            shorten(row["board"], 40),
            shorten(str(row["item"]), 40),
            shorten(str(row["other"]), 40),
            f"{row['difference']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
            f"{row['overall']:.2f}",
            f"{row['q_value']:.2g}",
        ]
        for row in rows[:_MAX_PAIRS]
    ]
    more = len(rows) - len(lines)
    note = Text(f"And {counted(more, 'further pair')}.", "quiet") if more else ""
    return [Heading("Where the order differs"), SmallTable(header, lines), note]
