"""Exports of survey tools, whose grids of questions have items in columns and people in rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from annotruth.errors import InputError, listed
from annotruth.io.formats.matrix import is_empty, unpivot
from annotruth.io.formats.source import Format, Source
from annotruth.io.formats.votes import chosen, counted
from annotruth.observations.options import ParsedLabels


class _Tool(NamedTuple):
    name: str
    needs: frozenset[str]
    annotators: tuple[str, ...]  # columns that name the respondent, the best first
    about: frozenset[str] = frozenset()  # further columns that are no questions
    n_headers: int = 0  # rows below the names of the columns that are no answers


def _tool(name: str, needs: str, annotators: str, about: str = "", n_headers: int = 0) -> _Tool:
    """Return a tool; columns are separated by bars."""
    names_of_tool = frozenset(needs.split("|"))
    who = tuple(annotators.split("|"))
    return _Tool(name, names_of_tool, who, names_of_tool | {*who, *about.split("|")}, n_headers)


_TOOLS = (
    _tool(
        "Qualtrics",
        "StartDate|EndDate|RecordedDate|ResponseId",
        "ResponseId",
        "Status|IPAddress|Progress|Duration (in seconds)|Finished|RecipientLastName|"
        "RecipientFirstName|RecipientEmail|ExternalReference|LocationLatitude|LocationLongitude|"
        "DistributionChannel|UserLanguage",
        2,
    ),
    _tool(
        "SurveyMonkey",
        "Respondent ID|Collector ID",
        "Respondent ID",
        "Start Date|End Date|IP Address|Email Address|First Name|Last Name|Custom Data 1",
        1,
    ),
    _tool(
        "LimeSurvey",
        "id|submitdate|lastpage",
        "token|id",
        "startlanguage|seed|startdate|datestamp|ipaddr|refurl",
    ),
    _tool(
        "LimeSurvey",
        "Response ID|Date submitted|Last page",
        "Response ID",
        "Start language|Seed|Date started|Date last action|IP address|Referrer URL",
    ),
    _tool(
        "Microsoft Forms",
        "ID|Start time|Completion time",
        "Email|ID",
        "Name|Last modified time|Language",
    ),
    _tool("PsyToolkit", "participant|TIME_start|TIME_end", "participant", "TIME_total"),
    _tool("Google Forms", "Timestamp", "Email Address|Username", "Score"),
)
_IMPORT = '{"ImportId":'  # the start of the cells of Qualtrics' second row of headers
_ITEM = re.compile(r"(?P<question>.*?)\s*\[(?P<item>.+)\]\s*", re.DOTALL)
_PART = re.compile(r"(?P<question>.+?)[_.]\d+(?:[_.]\d+)*")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_MAX_ROWS = 1000  # to look at
_PREVIEWS = ("Survey Preview", "1")  # as text, and as a code


def _find_tool(source: Source) -> _Tool | None:
    names = set(source.names)
    tool = next((tool for tool in _TOOLS if tool.needs <= names), None)
    if tool is _TOOLS[-1] and not any(map(_ITEM.fullmatch, source.names)):
        return None  # any table may have a column of times
    return tool


def _read(source: Source) -> ParsedLabels:
    """Read one grid: each of its columns is an item, or a part of the question."""
    tool = _find_tool(source)
    if tool is None:
        names = ", ".join(dict.fromkeys(tool.name for tool in _TOOLS))
        raise InputError(f"this is no export of a survey tool that is known ({names})")
    table = source.table(list(source.names))
    n_headers = _count_headers(table, tool)
    grids = _grids(table, tool, n_headers)
    if not grids:
        raise InputError(
            f"this survey of {tool.name} has no question whose answers are of several items in columns: "
            "write them as a table with the columns item, annotator, label"
        )
    question = chosen(grids, source.read.question, "question")
    rows, n_previews = _answers(table.slice(n_headers), tool)
    named = source.column("annotator", "") if "annotator" in source.columns else tool
    who, people = _respondents(rows, named)
    items = list(grids[question].values())
    twice = next((item for item in items if items.count(item) > 1), None)
    if twice is not None:
        raise InputError(f"two columns of {question!r} are {twice!r}: rename one")
    cells = {item: rows.column(name) for name, item in grids[question].items()}
    used = {*tool.about, *grids[question]}
    others = [name for name in table.column_names if name not in used]
    return unpivot(
        list(cells.values()),
        people,
        list(cells),
        transposed=True,
        from_text=source.from_text,
        categories=source.read.categories,
        notes=(
            f"{tool.name}, question {question}",
            f"annotators by {who}",
            counted(n_headers, "header row{s} left out"),
            counted(n_previews, "preview{s} left out"),
            f"not read: {listed(others)}" if others else "",
        ),
    )


def _count_headers(table: pa.Table, tool: _Tool) -> int:
    """Return how many rows are further headers: exports may have been cleaned of them."""
    first = [str(row.get(tool.annotators[0]) or "") for row in table.slice(0, 2).to_pylist()]
    if tool.n_headers == 2:  # the texts of the questions, and their ids
        return next((n + 1 for n, cell in enumerate(first) if cell.startswith(_IMPORT)), 0)
    return int(tool.n_headers == 1 and first[:1] == [""])


def _answers(rows: pa.Table, tool: _Tool) -> tuple[pa.Table, int]:
    """Return the rows of answers, and how many previews were left out."""
    status = "Status" if tool.name.startswith("Qualtrics") else ""
    if status not in rows.column_names:
        return rows, 0
    cells = rows.column(status).to_pylist()
    kept = [cell not in _PREVIEWS for cell in cells]
    return rows.filter(pa.array(kept)), len(kept) - sum(kept)


def _respondents(rows: pa.Table, who: _Tool | str) -> tuple[str, pa.ChunkedArray]:
    """Return who answered: the first column that distinguishes respondents, or the number of the row."""
    for name in [who] if isinstance(who, str) else who.annotators:
        if name in rows.column_names:
            values = rows.column(name).to_pylist()
            if all(values) and len(set(values)) > min(1, len(values) - 1):
                return name, rows.column(name)
    return "row", pa.chunked_array([pa.array(range(1, rows.num_rows + 1))])


def _grids(table: pa.Table, tool: _Tool, n_headers: int) -> Mapping[str, Mapping[str, str]]:
    """Return the columns of each grid, and the item of each, by the name of the question."""
    is_split = tool.n_headers == n_headers == 1  # the names of the items are in a second row
    below = table.slice(0, 1).to_pylist()[0] if is_split else {}
    grids: dict[str, dict[str, str]] = {}
    statements: dict[str, set[str]] = {}  # the answers to statements of one question, by the first
    question = ""
    for name in table.column_names:
        if name in tool.about:
            continue
        if is_split:  # the name of a question is above its first part alone
            question = question if re.fullmatch(r"column \d+", name) else name
            item = str(below.get(name) or name)
        elif (match := _ITEM.fullmatch(name)) is not None:
            question, item = match["question"], match["item"]
        elif (match := _PART.fullmatch(name)) is not None:
            question, item = match["question"], name
        else:
            values = set(_values(table, name, n_headers))
            shares = (first for first, known in statements.items() if known & values)
            question, item = next(shares, name), name
            statements[question] = statements.get(question, set()) | values
        grids.setdefault(question, {})[name] = item
    return {
        name: columns
        for name, columns in ((name, _without_other(parts)) for name, parts in grids.items())
        if _is_grid(table, list(columns), n_headers)
    }


def _without_other(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a question without its field for another answer."""
    return {name: item for name, item in parts.items() if not name.endswith(("_TEXT", "[Other]"))}


def _values(table: pa.Table, name: str, n_headers: int) -> list[str]:
    """Return the first answers in a column, without empty ones."""
    cells = table.column(name).slice(n_headers, _MAX_ROWS).to_pylist()
    return [str(cell) for cell in cells if cell is not None and not is_empty(str(cell))]


def _is_grid(table: pa.Table, names: Sequence[str], n_headers: int) -> bool:
    """Return whether columns have answers of a scale: boxes have one value each, texts many."""
    columns = [_values(table, name, n_headers) for name in names]
    several = any(len(set(values)) > 1 for values in columns)
    n_values, n_answers = len(set().union(*columns)), sum(map(len, columns))
    numbers = all(_NUMBER.fullmatch(value) for values in columns for value in values)
    return len(names) > 1 and several and (numbers or 2 * n_values <= n_answers)


FORMATS = (Format("survey", "survey", lambda source: _find_tool(source) is not None, _read),)
