"""The report's section on annotators whose labels match more often than their items explain."""

from __future__ import annotations

from annotruth.errors import counted, shorten
from annotruth.models.base_fit import AnnotatorResults
from annotruth.models.fits.further import FurtherResults
from annotruth.report.charts.drawing import escaped
from annotruth.report.further import FurtherSection
from annotruth.report.html import plain_table, section

_MAX_PAIRS = 20

_MEANING = (
    "These annotators gave equal labels to more of their common items than independent annotators would "
    "(expected). {n_tested} were tested, at a significance of {significance:.0%} over all of them: in up to "
    "{significance:.0%} of crowds, a pair is listed by chance. One may have copied from the other, they may "
    "have worked together or have had the same training, or one person may have two accounts; the labels do "
    "not say which. The correlation is the share of their labels that depend on one another. Estimates do "
    "not take it into account: their reliabilities may be too high."
)


def make_section(_fit: AnnotatorResults, results: FurtherResults) -> FurtherSection:
    """Return the section with the table of pairs; it is empty if there are none."""
    rows = results.tables["dependent_annotators"].to_pylist()
    if not rows:
        return FurtherSection("")
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
    more = len(rows) - _MAX_PAIRS
    note = f"And {counted(more, 'further pair')}: see dependent_annotators.csv of --out."
    return FurtherSection(
        section(
            "dependent_annotators",
            "Annotators with matching labels",
            f"<p>{escaped(meaning)}</p>",
            plain_table(header, lines),
            *([f'<p class="note">{note}</p>'] if more > 0 else []),
        )
    )
