"""`annotruth open`: what a file seems to hold, and the command that fits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotruth.app import console
from annotruth.errors import counted, listed

if TYPE_CHECKING:
    from annotruth.io.opened import OpenedFile
    from annotruth.observations.options import ReadOptions

_HEADINGS = {"role": "seems to be", "n_distinct": "distinct", "share_empty": "empty"}


def open_(*, file: str, read: ReadOptions, as_json: bool = False) -> None:
    """Show what a file seems to hold, and the command that fits it.

    Lists what each column seems to be, and why; the labels or comparisons and how they are read; and
    which rows do not count. Nothing is fitted or written.

    **Examples**

        annotruth open labels.csv

        annotruth open batch-results.csv --json

        annotruth open study.xlsx --query "Sheet 2"

        annotruth open votes.sqlite --query "select * from votes"
    """
    with console.running(quiet=as_json, as_json=as_json):
        from annotruth.io.opened import open_labels  # loads PyArrow

        opened = open_labels(file, read)
    if as_json:
        console.show_json(opened.to_dict())
    else:
        _show(opened)


def _show(opened: OpenedFile) -> None:
    rows = counted(opened.n_rows, "row")
    rows = f"the first {rows} of more" if opened.is_part else rows
    console.show_lines([f"{opened.source}: {opened.kind}, {rows}", ""])
    table = opened.column_table()
    if table.num_rows:
        names = [_HEADINGS.get(name, name) for name in table.column_names]
        console.show_table("Columns", table.rename_columns(names), max_rows=100)
        console.show_lines("")
    if opened.holds:
        classes = f": {listed(opened.categories)}" if opened.categories else ""
        console.show_lines(f"holds {opened.holds}{classes}")
    if opened.read_as:
        console.show_lines(f"read as: {opened.read_as}")
    if opened.unused:
        console.show_lines(f"not used: {', '.join(opened.unused)}")
    if opened.problem:
        console.show_lines(f"{'to choose' if opened.commands else 'problem'}: {opened.problem}")
    for command in opened.commands:
        console.show_lines(f"next: {command}")
