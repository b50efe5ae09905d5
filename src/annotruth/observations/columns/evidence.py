"""What a column of a table seems to be, by its name and values: an id, a label, a time, a comment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import counted, shorten
from annotruth.observations import validate
from annotruth.observations.columns.names import KNOWN_NAMES, LABEL_ROLES, find_known
from annotruth.observations.encode import encode_column, to_text
from annotruth.observations.frames import is_list
from annotruth.observations.scale import is_text, parse_numbers, to_plain

N_EXAMPLES = 3

MIN_ROWS = 6  # in fewer, values repeat or differ by chance
_MANY_TEXTS = 20  # different short texts that may be classes, however few rows there are
_SAMPLE = 200  # values whose form is looked at

# Words in the names of columns.
_NAMED = {
    "item": "item image img picture photo video clip audio text doc document sentence tweet stimulus "
    "task sample example unit hit url file filename article product page passage movie film pair",
    "annotator": "annotator worker rater coder judge user participant subject observer respondent "
    "reviewer labeler labeller grader assessor evaluator person student voter email who",
    "label": "label answer rating class category choice option score vote response",
    "time": "time timestamp date datetime duration elapsed seconds secs sec ms msec millis "
    "milliseconds rt latency start started end ended submitted created updated finished accepted",
    "free text": "comment comments feedback note notes remark remarks reason rationale explanation "
    "justification why suggestion suggestions",
    "trait": "age gender sex ethnicity nationality country education income occupation religion "
    "birth zip zipcode city native region",
    "gold": "gold golden truth groundtruth gt reference",
    "platform": "token csrf agent useragent browser platform os screen version session assignment "
    "hitid ip consent channel trust tainted",
    "work": "hit assignment",
    "id": "id ids name uuid guid hash key index row nr number session assignment",
}
NAME_WORDS = dict(zip(_NAMED, map(frozenset, map(str.split, _NAMED.values())), strict=True))

LINK = re.compile(
    r"(?i)\s*(?:[a-z][a-z0-9+.-]*://\S+|\S.*\.(?:jpe?g|png|gif|webp|bmp|tiff?|mp[34]|wav|webm|mov|avi|"
    r"yuv|ogg|flac|txt|html?|pdf))\s*"
)
_DATE = re.compile(r".*(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}).*")
_DATE_LETTERS = 40  # no more than a date has


@dataclass(frozen=True)
class ColumnSummary:
    """What a column seems to be, and what is in it."""

    name: str
    role: str
    """item, annotator, label, question, time, trait (of annotators), content (of items), gold,
    order, covariate, free text, id, constant, empty, platform (what a platform adds), or other."""
    why: str
    n_distinct: int
    share_empty: float
    examples: tuple[str, ...]
    """The first different values."""
    first: tuple[str, ...]
    """The values of the first rows that have one."""

    @property
    def preview(self) -> str:
        """The name with its first values, for messages."""
        return f"{shorten(self.name)} ({', '.join(shorten(each, 20) for each in self.first)})"


def words_of(name: str) -> frozenset[str]:
    """Return the words in the name of a column, in lower case."""
    return frozenset(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name))


class TableColumn:
    """A column as codes of its different values, -1 where it is empty."""

    def __init__(self, name: str, column: pa.ChunkedArray) -> None:
        self.name = name
        self.holds_objects = _holds_objects(column.type)
        if self.holds_objects:
            column = pa.chunked_array([pa.nulls(len(column), pa.string())])
        codes, values, _ = encode_column(_readable(column))
        empty = validate.missing(values)
        number = np.where(empty, -1, np.cumsum(~empty) - 1)
        self.codes: NDArray[np.int64] = number[codes]
        texts = to_text(to_plain(values)).to_pylist()
        self.values: list[str] = [t for t, none in zip(texts, empty, strict=True) if not none]

    @cached_property
    def n_present(self) -> int:
        """How many rows have a value."""
        return int((self.codes >= 0).sum())

    @cached_property
    def words(self) -> frozenset[str]:
        """The words in the name."""
        return words_of(self.name)

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        """The values as numbers; None if some are not."""
        return parse_numbers(pa.array(self.values, pa.string())) if self.values else None

    @property
    def share_distinct(self) -> float:
        """How many different values there are per row that has one."""
        return len(self.values) / max(1, self.n_present)

    def is_mostly(self, form: re.Pattern[str]) -> bool:
        """Return whether nine in ten values have a form."""
        sample = self.values[:_SAMPLE]
        return 10 * sum(form.fullmatch(value) is not None for value in sample) >= 9 * len(sample)

    def varies_within(self, group: TableColumn | None) -> float | None:
        """Return in which share of groups the values differ; None if too few rows repeat."""
        if group is None or group is self:
            return None
        both = (self.codes >= 0) & (group.codes >= 0)
        of_row = group.codes[both]
        n_rows = np.bincount(of_row, minlength=len(group.values))
        if (n_rows - 1).clip(0).sum() < MIN_ROWS:
            return None
        pairs = np.unique(of_row * len(self.values) + self.codes[both])
        n_values = np.bincount(pairs // len(self.values), minlength=len(group.values))
        return float((n_values[n_rows > 1] > 1).mean())

    def counts_within(self, group: TableColumn | None) -> bool:
        """Return whether no value comes twice in a group of several rows, as in a count of rows."""
        n_groups = 0 if group is None else len(group.values)
        if group is None or n_groups < 3 or len(self.codes) < 4 * n_groups:
            return False
        pairs = self.codes * (n_groups + 1) + group.codes
        return len(np.unique(pairs)) == len(self.codes) and bool((self.codes >= 0).all())

    def summary(self, role: str, why: str) -> ColumnSummary:
        """Return what is in the column, with the role that it seems to have."""
        empty = 1 - self.n_present / max(1, len(self.codes))
        first = tuple(self.values[n] for n in self.codes[self.codes >= 0][:N_EXAMPLES])
        examples = tuple(self.values[:N_EXAMPLES])
        return ColumnSummary(self.name, role, why, len(self.values), empty, examples, first)


def _holds_objects(kind: pa.DataType) -> bool:
    """Return whether an Arrow type has fields, or is a list of what has."""
    if is_list(kind):
        return _holds_objects(kind.value_type)
    return bool(pa.types.is_nested(kind))


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose values can be ids or labels; lists become JSON."""
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_nested(kind):
        values = column.to_pylist()
        texts = [None if value is None else json.dumps(value, default=str) for value in values]
        return pa.chunked_array([pa.array(texts, pa.string())])
    plain = to_plain(column)
    if is_text(plain.type) or pa.types.is_primitive(plain.type):
        return plain
    texts = [None if value is None else str(value) for value in plain.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def table_columns(table: pa.Table, names: Iterable[str] | None = None) -> dict[str, TableColumn]:
    """Return all columns of a table, or those of these names."""
    return {name: TableColumn(name, table.column(name)) for name in names or table.column_names}


def summarize_columns(
    table: pa.Table, roles: Mapping[str, str] | None = None, title: str = ""
) -> list[ColumnSummary]:
    """Return what each column of a table seems to be.

    ``roles`` has the columns whose roles are known: item, annotator, label and others; ``title`` is
    the format that says so, if one does.
    """
    columns = table_columns(table)
    known = {name: role for role, name in (roles or {}).items()}
    item, annotator = (columns.get((roles or {}).get(role, "")) for role in LABEL_ROLES[:2])
    return [
        column.summary(known[name], f"as in {title}" if title else _why_known(column, known[name]))
        if name in known
        else column.summary(*seeming_role(column, item, annotator))
        for name, column in columns.items()
    ]


def _why_known(column: TableColumn, role: str) -> str:
    names = KNOWN_NAMES.get(role, ((role,),))
    by_name = bool(find_known(names, [column.name]))
    return "by its name" if by_name else "by its values"


def seeming_role(
    column: TableColumn, item: TableColumn | None, annotator: TableColumn | None
) -> tuple[str, str]:
    """Return the role that a column seems to have, and why."""
    words, n_values, n_present = column.words, len(column.values), column.n_present
    if column.holds_objects:
        return "other", "objects within cells"
    if not n_present:
        return "empty", "no value in any row"
    if n_values == 1 and n_present >= MIN_ROWS:
        return "constant", "one value in all rows"
    if any(word.startswith("hidden") for word in words):
        return "platform", "a hidden field, by its name"
    in_items, in_annotators = column.varies_within(item), column.varies_within(annotator)
    if words & NAME_WORDS["gold"] and not in_items:
        return "gold", "named as a known truth"
    is_number = column.numbers is not None
    if (words & NAME_WORDS["time"] and (is_number or column.is_mostly(_DATE))) or (
        column.is_mostly(_DATE) and max(map(len, column.values[:_SAMPLE])) <= _DATE_LETTERS
    ):
        return "time", "a time or duration" if is_number else "dates or times"
    if column.is_mostly(LINK):
        return "content", "links or names of files"
    if words & NAME_WORDS["platform"]:
        return "platform", "added by a platform, by its name"
    n_spaces = [value.strip().count(" ") for value in column.values[:_SAMPLE]]
    differs = column.share_distinct > 0.5 and n_present >= MIN_ROWS
    is_long = not is_number and np.mean(n_spaces) >= 3 and (differs or n_values == n_present)
    is_content = in_items is not None and in_items <= 0.005
    if words & NAME_WORDS["free text"] and not (is_number and not differs):
        return "free text", "a comment, by its name"
    if is_content:
        return "content", "one value per item"
    if is_long:
        return "free text", "long texts that hardly repeat"
    if differs and column.share_distinct >= 0.9 and (words & NAME_WORDS["id"] or not is_number):
        return "id", "nearly every row has a value of its own"
    if words & {"id", "ids", "uuid", "guid", "hash"} and not words & NAME_WORDS["label"]:
        return "id", "an id, by its name"
    if is_number and differs and n_values > _MANY_TEXTS and _is_wide(column.numbers):
        return "covariate", "numbers that hardly repeat"
    if not is_number and differs and n_values > _MANY_TEXTS:
        return "free text", "texts that hardly repeat"
    if is_number and column.counts_within(annotator):
        return "order", "different in all labels of an annotator"
    if in_annotators is not None and in_annotators <= 0.05:
        return "trait", "one value per annotator"
    if words & NAME_WORDS["trait"] and (
        in_annotators is None or in_annotators < 0.2 or words & NAME_WORDS["annotator"]
    ):
        return "trait", "about annotators, by its name"
    repeats = counted(n_values, "value that repeats", "values that repeat")
    return "label", f"{repeats}, different within items" if in_items else repeats


def _is_wide(numbers: NDArray[np.float64] | None) -> bool:
    """Return whether numbers are not those of a usual scale or slider."""
    assert numbers is not None
    return bool(np.ptp(numbers) > 100 or (numbers % 0.5).any())
