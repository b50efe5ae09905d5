"""Parts that the reports of all kinds of fits have: the first screen, annotators, how the fit ended."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.advice.annotators import verdict_rules, verdicts
from annotruth.errors import counted, one_line, shorten
from annotruth.kernels.arrays import Codes
from annotruth.models.fits.notes import CHANCE
from annotruth.models.result import Fit
from annotruth.observations.arrays import Observations
from annotruth.report.charts.chart import Chart
from annotruth.report.render import (
    DASH,
    Answer,
    Beside,
    CodeText,
    CountLine,
    DataTable,
    Fact,
    Facts,
    Heading,
    Link,
    NamedRows,
    Part,
    Section,
    Settings,
    SideBySide,
    Strong,
    Tag,
    Text,
)
from annotruth.report.tables import PageTable

N_NAMED = 4
"""How many rows of a table the first screen names."""

_MAX_LETTERS = 48  # of a list of names


Tone: TypeAlias = Literal["good", "fair", "bad"]

WORDS: tuple[tuple[str, Tone], ...] = (
    ("Yes", "good"),
    ("Mostly", "fair"),
    ("Partly", "bad"),
    ("No", "bad"),
)
"""What is said to "can these labels be trusted?", best first, and the tones."""


@dataclass(frozen=True)
class Trust:
    """Whether labels can be trusted, as a part of a page."""

    # the answer, such as "Mostly", and how it is shown
    word: str
    tone: Tone
    sentence: str  # what the answer follows from, with the number
    rule: str  # which numbers give which answers


MEASURED_FROM = 50
"""With so many known truths, the measured accuracy takes the place of the expected one."""


class MeasuredAccuracy(NamedTuple):
    """How a fit does on items with known truth."""

    sentence: str
    n_items: int
    accuracy: float | None  # None where the truths are scores

    @property
    def decides(self) -> bool:
        """Whether it is measured well enough to replace what the model expects."""
        return self.accuracy is not None and self.n_items >= MEASURED_FROM


class FirstLines(NamedTuple):
    """The first screen of a report for a terminal."""

    question: str
    trust: Trust
    lines: list[str]
    next: str  # the command to type, if there is one


def first_lines(
    question: str, trust: Trust, blocks: Iterable[Answer], next_: str = ""
) -> FirstLines:
    """Return a first screen whose answers begin after their questions."""
    lines = []
    for answer in blocks:
        texts = [one_line(text) for part in answer.lines if (text := plain_text(part))]
        lines += [f"{answer.question} {text}" for text in texts[:1]]
        lines += [f"  {text}" for text in texts[1:]]
    return FirstLines(question, trust, lines, next_)


def graded_trust(
    value: float, limits: Sequence[float], limit_text: str, sentence: str, what: str
) -> Trust:
    """Return the answer that a value reaches among `WORDS`.

    ``limits``: the values of all answers but the last: rising ones are to stay below.
    ``limit_text``: a template of how the rule names a limit; ``what``: what the value is.
    """
    is_most = limits[0] < limits[-1]
    rank = sum(value > limit if is_most else value < limit for limit in limits)
    steps = [
        f"{answer.lower()} {limit_text.format(limit)}"
        for (answer, _), limit in zip(WORDS, limits, strict=False)
    ]
    word, tone = WORDS[rank]
    return Trust(word, tone, sentence, f"{what}: {', '.join(steps)}, else {WORDS[-1][0].lower()}.")


def chance_trust(units: str, results: str, rule: str) -> Trust:
    """Return the answer for labels or votes that agree no better than chance."""
    sentence = (
        f"{units.capitalize()} {CHANCE}, so {results} and reliabilities below say next to nothing. "
        f"Check the task and its instructions before you buy more {units}."
    )
    return Trust("No better than chance", "bad", sentence, rule)


def chance_rule(model: str, units: str) -> str:
    """Return how a model finds out whether labels or votes agree better than chance."""
    return f"The chance test of {model} compares the {units} with {units} drawn at random."


def above_chance(same: float, by_chance: float, agree: str, unknown: str) -> Fact:
    """Return how much more often two responses are the same than by chance.

    ``agree``: what two responses are; ``unknown``: what is said where nothing can be compared.
    """
    if math.isnan(same):
        return "Above chance", DASH, unknown
    note = f"{agree} {percent(same)} of the time; by chance {percent(by_chance)}"
    return "Above chance", f"{100 * (same - by_chance):+.0f} points", note


def verdicts_besides_keep(words: NDArray[Any], unit: str) -> str:
    """Return how many annotators have a verdict other than keep."""
    few = f"too few {unit}"
    texts = {"drop": "to drop", "unsure": "unsure", few: f"with {few} to tell"}
    counts = {text: int(np.sum(words == word)) for word, text in texts.items()}
    return ", ".join(f"{n:,} {text}" for text, n in counts.items() if n)


def whom_to_act_on(
    fit: Fit[Any], words: NDArray[Any], *, estimate: str, n_given: Codes, unit: str, nobody: str
) -> list[Part]:
    """Return the lines on annotators to drop, unsure ones, and those with too few labels or votes.

    ``words``: the verdicts; ``n_given``: how many labels or votes each annotator gave.
    ``estimate``: by what those to drop are listed, lowest first: accuracy, reliability or matches.
    """
    ids, values = fit.data.annotators, getattr(fit, estimate, None)
    order = np.arange(len(ids)) if values is None else np.argsort(values, kind="stable")
    dropped, unsure = order[words[order] == "drop"], np.flatnonzero(words == "unsure")
    named = []
    for s in dropped[:N_NAMED].tolist():
        about = [] if fit.behavior is None else [fit.behavior[s]]
        about += [] if values is None else [f"{estimate} {values[s]:.2f}"]
        named.append((str(ids[s].as_py()), ", ".join(about)))
    few = f"too few {unit}"
    to_drop = f"to drop, with {percent(n_given[dropped].sum() / n_given.sum())} of the {unit}"
    watch = "unsure: watch them"
    return [
        count_line("annotators|verdict|drop", len(dropped), to_drop, NamedRows(named)) or nobody,
        count_line("annotators|verdict|unsure", len(unsure), watch, name_list(ids, unsure)),
        count_line(f"annotators|verdict|{few}", int(np.sum(words == few)), f"with {few} to tell"),
    ]


def annotator_section(
    lead: Text,
    chart: Chart | None,
    fit: Fit[Any],
    table: DataTable,
    lowest: str,
    command: str = "fit",
) -> Section:
    """Return how accurate or reliable annotators are; of models that do not say so, their table."""
    parts: list[Part] = [lead]
    if chart is not None:
        words, rules = verdicts(fit)[0], verdict_rules(fit)
        counts = {word: int(np.sum(words == word)) for word in rules}
        parts.append(SideBySide([chart, verdict_counts("Verdicts", counts, rules)]))
        parts.append(rows_left_out(table.table, "annotators", lowest, command))
    return Section("annotators", "Annotators", [*parts, table], long=True)


def verdict_counts(title: str, counts: Mapping[str, int], rules: Mapping[str, str]) -> Beside:
    """Return how many have each status or verdict, with the rule for it."""
    rows = [
        (word.capitalize(), f"{counts[word]:,}", rule)
        for word, rule in rules.items()
        if counts[word] or word != "known truth"
    ]
    return Beside([Heading(title), Facts(rows)])


def rows_left_out(table: PageTable | None, what: str, which: str, command: str = "fit") -> Part:
    """Return a note that rows were left out, if any were; ``command`` writes all of them."""
    if table is None or table.rows == table.total:
        return ""
    text = (
        f"This page holds the {table.rows:,} {which} of {table.total:,} {what}; "
        f"{table.total - table.rows:,} are left out to keep it small. "
    )
    return Text([text, CodeText(f"annotruth {command} --out DIR"), " writes all of them."], "note")


def convergence_notice(fit: Fit[Any]) -> str:
    """Return the warning at the top of the report; empty if there is none."""
    if fit.converged or not fit.n_iter:
        return ""
    return (
        f"Not converged after {counted(fit.n_iter, 'iteration')}: the numbers on this page may "
        "still change. Raise max_iter, or tol."
    )


def appendix(
    rows: Iterable[Fact], fit: Fit[Any], charts: Mapping[str, Chart], unit: str,
    read: Sequence[Part] = (),
) -> Section:  # fmt: skip
    """Return what was read and how the fit ended; ``unit`` is a label, a comparison or an answer."""
    read_as = getattr(fit.data, "read_as", "")
    said = [Text(f"Read as: {read_as}.", "quiet")] if read_as and not read else read
    parts = [Heading("What was read"), Facts(list(rows)), *said]
    return Section("appendix", "Appendix", [*parts, *_how_it_ended(fit, charts, unit)])


def _how_it_ended(fit: Fit[Any], charts: Mapping[str, Chart], unit: str) -> list[Part]:
    if not fit.n_iter:
        tone, word, rest = "good", "Computed directly", f" by {fit.model}, without iterations."
    else:
        rest = f" after {counted(fit.n_iter, 'iteration')}: {fit.stop_reason}."
        tone, word = ("good", "Converged") if fit.converged else ("bad", "Not converged")
    parts: list[Part] = [Text([Strong(word), rest], f"note {tone}")]
    if fit.log_likelihood is not None:
        per_label = fit.log_likelihood / fit.data.n_labels
        text = f"Log-likelihood {fit.log_likelihood:,.2f}, {per_label:.4f} per {unit}."
        parts.append(Text(text, "quiet"))
    parts.append(Settings({"model": fit.model, **fit.settings}))
    if "history" in charts:
        parts = [SideBySide([charts["history"], Beside(parts)])]
    return [Heading("How the fit ended"), *parts]


def rows_dropped(data: Observations, why: str) -> list[Fact]:
    """Return how many rows of the data were dropped, as they lack something or for other reasons."""
    n = data.n_dropped
    others: list[Fact] = [("Rows not used", f"{n:,}", reason) for reason, n in data.unused.items()]
    return [("Rows dropped", f"{n:,}" if n else "none", why), *others]


def range_of(counts: NDArray[Any], unit: str) -> str:
    """Return the least, largest and median count of units."""
    low, high = int(counts.min()), int(counts.max())
    if low == high:
        return f"{counted(low, unit)} each"
    return f"{low:,} to {high:,} {unit}s each, median {np.median(counts):,.0f}"


def plain_text(part: Part) -> str:
    """Return a part of the first screen as text; of named rows, the names."""
    match part:
        case CountLine():
            return f"{part.count:,} {plain_text(part.rest)}"
        case NamedRows():
            return ": " + ", ".join(name for name, _ in part.rows) if part.rows else ""
        case Text():
            return (": " if part.style == "named" else "") + plain_text(part.content)
        case Tag() | Link():
            return str(part.text)
        case list() | tuple():
            return "".join(map(plain_text, part))
    return str(part)


def next_command(arguments: str) -> Tag:
    """Return the command that lists what to ask next, given what to type after ``annotruth next``."""
    return CodeText(f"annotruth next {arguments} --assign assignments.csv")


def count_line(show: str, count: int, text: str, rest: Part = "") -> Part:
    """Return a count with a button that shows its rows, and the first of them; empty if 0."""
    return CountLine(show, count, [text, rest]) if count else ""


def name_list(ids: Any, which: Codes) -> Text:
    """Return the first names on one line."""
    names: list[str] = []
    for s in which.tolist():
        names.append(short_id(ids, s))
        if len(", ".join(names)) > _MAX_LETTERS:
            break
    more = ", …" if len(which) > len(names) else ""
    return Text(f"{', '.join(names)}{more}", "named")


def short_id(ids: Any, place: int) -> str:
    """Return an id as text, shortened."""
    return shorten(str(ids[place].as_py()), 40)


def percent(share: float) -> str:
    """Return a share in percent."""
    return DASH if math.isnan(share) else f"{share:.0%}"
