"""The report of a fit: one HTML file, whatever the kind of the fit.

Texts and charts stand in the page; the rows of tables are compressed JSON, which the page's script
unpacks and shows one screen at a time.
"""

from __future__ import annotations

import importlib
from datetime import date
from pathlib import Path
from typing import Any

from annotruth.models import base_fit
from annotruth.report.render import make_page, write_page

_MODULES = {"labels": "labels", "comparisons": "rankings", "sets": "sets", "questions": "questions"}
"""The module that has a function ``content`` with what is in the report of each kind of fit."""


def write_report(fit: Any, path: str | Path, *, embed: bool = False, **options: Any) -> None:
    """Write the report of a fit, as `report_page` makes it; ``embed`` puts files into it."""
    if embed:
        options["embed"] = Path(path).parent
    write_page(report_page(fit, **options), path)


def report_page(
    fit: Any,
    *,
    source: str | None = None,
    command: str | None = None,
    day: date | None = None,
    **options: Any,
) -> str:
    """Return the report of a fit, as HTML.

    ``source``: the name of the labels, such as their file.
    ``command``: the command that makes the report, for its heading.
    ``day``: the date in the heading; today if not given.
    ``options``: those of the function ``content`` for this kind of fit, among them
      ``truth``, the truths of some or all items, as `annotruth.evaluate` takes them.
    """
    module = importlib.import_module(f"annotruth.report.{_MODULES[fit.kind]}")
    content = module.content(fit, **options)
    day = day or base_fit.now().date()
    return make_page(
        kind=content.kind,
        heading=source or content.heading,
        subheading=f"{fit.model} · {day.day} {day:%B %Y} · {content.described}",
        command=command or "",
        notice=content.notice,
        sections=content.sections,
        footer=content.footer,
        data=content.data,
        colors=content.colors,
        sources=content.sources,
    )
