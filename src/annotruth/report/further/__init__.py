"""The report's sections on further results: of pairs and groups of annotators, over time, of machines.

There is one module per kind, with a function ``make_section`` that returns a `FurtherSection`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

from annotruth.models.base_fit import AnnotatorResults
from annotruth.report.charts.chart import Chart
from annotruth.report.tables import PageTable


class FurtherSection(NamedTuple):
    """A section of the report.

    Attributes
    ----------
    section
        The section, as HTML.
    charts
        Its charts by name.
    tables
        Its tables by name, for whose rows it has placeholders.

    Examples
    --------
    >>> FurtherSection('<section id="groups"></section>').charts
    {}
    """

    section: str
    charts: Mapping[str, Chart] = {}
    tables: Mapping[str, PageTable] = {}


def make_sections(fit: AnnotatorResults) -> dict[str, FurtherSection]:
    """Return the section of each kind of further results that a fit has."""
    return {
        kind: importlib.import_module(f"{__name__}.{kind}").make_section(fit, results)
        for kind, results in fit.further.items()
    }
