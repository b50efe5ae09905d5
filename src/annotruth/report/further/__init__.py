"""The report's sections on further results: of pairs and groups of annotators, over time, of machines.

A kind has a module of its name with a function ``make_section`` that returns a `Section`, or is
shown as its lines and tables.
"""

from __future__ import annotations

import importlib
from typing import Any

from annotruth.errors import counted, shorten
from annotruth.models.fits.further import FurtherResults
from annotruth.models.result import Fit
from annotruth.report.render import Part, Section, SmallTable, Text, as_sentence

_MAX_PAIRS = 20

_MEANING = (
    "These annotators gave equal labels to more of their common items than independent annotators would "
    "(expected). {n_tested} were tested, at a significance of {significance:.0%} over all of them: in up to "
    "{significance:.0%} of crowds, a pair is listed by chance. One may have copied from the other, they may "
    "have worked together or have had the same training, or one person may have two accounts; the labels do "
    "not say which. The correlation is the share of their labels that depend on one another. Estimates do "
    "not take it into account: their reliabilities may be too high."
)


def make_sections(fit: Fit[Any]) -> list[Section]:
    """Return the section of each kind of further results that a fit has."""
    return [
        dependent_annotators(results)
        if kind == "dependent_annotators"
        else _plain_section(kind, results)
        if kind in PLAIN
        else importlib.import_module(f"{__name__}.{kind}").make_section(fit, results)
        for kind, results in fit.further.items()
    ]


def dependent_annotators(results: FurtherResults) -> Section:
    """Return the section on annotators with matching labels; it is empty if there are none."""
    rows = results.tables["dependent_annotators"].to_pylist()
    title = "Annotators with matching labels"
    if not rows:
        return Section("dependent_annotators", title, [])
    tested, significance = (results.facts[name] for name in ("n_tested", "significance"))
    meaning = _MEANING.format(n_tested=counted(tested, "pair"), significance=significance)
    lines = [
        [
            *(shorten(str(row[name])) for name in ("annotator", "other")),
            f"{row['n_items']:,}",
            *(f"{row[name]:.0%}" for name in ("agreement", "expected")),
            f"{row['correlation']:.2f}",
            f"{row['p_value']:.2g}",
        ]
        for row in rows[:_MAX_PAIRS]
    ]
    header = ("Annotator", "Other", "Common items", "Same label", "Expected", "Correlation", "p")
    parts: list[Part] = [Text(meaning), SmallTable(header, lines)]
    if (more := len(rows) - _MAX_PAIRS) > 0:
        note = f"And {counted(more, 'further pair')}: see dependent_annotators.csv of --out."
        parts.append(Text(note, "note"))
    return Section("dependent_annotators", title, parts, link="Matching labels")


PLAIN = {
    "both_bad": (
        "Both bad",
        "P both bad: the probability that an item and an average one are both called bad. Votes count as ties.",
    ),
    "beside": (
        "Beside the score",
        "Value: the mean over an item's comparisons. On front: no item with as low a value has a higher score.",
    ),
}
"""The title and the meaning of kinds that are shown as their lines and tables."""

_MAX_ROWS = 30


def _plain_section(kind: str, results: FurtherResults) -> Section:
    title, meaning = PLAIN[kind]
    parts: list[Part] = [Text(meaning, "lead")]
    parts += [Text(as_sentence(line)) for line in results.lines]
    for table in results.tables.values():
        header = [name.replace("_", " ").capitalize() for name in table.column_names]
        rows = table.slice(0, _MAX_ROWS).to_pylist()
        parts.append(SmallTable(header, [[_text(each) for each in row.values()] for row in rows]))
        if more := table.num_rows - len(rows):
            parts.append(Text(f"And {counted(more, 'further row')}.", "quiet"))
    return Section(kind, title, parts)


def _text(value: object) -> str:
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else shorten(str(value), 40)
