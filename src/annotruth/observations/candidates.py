"""What the columns of a table seem to be, by their names and values: ids, labels, times, comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import counted, listed, shorten
from annotruth.observations import validate
from annotruth.observations.encode import encode_column, to_text
from annotruth.observations.frames import KNOWN_NAMES, LABEL_ROLES, find_known
from annotruth.observations.pairs.columns import NO_ANNOTATOR
from annotruth.observations.scale import is_text, parse_numbers, to_plain

CANDIDATE_ROWS = 20_000
"""The first rows of a table, in which columns without known names are looked for."""
N_EXAMPLES = 3

_MIN_ROWS = 6  # in fewer, values repeat or differ by chance
_MANY_TEXTS = 20  # different short texts that may be classes, however few rows there are
_PAIR_COLUMNS = 12  # of ids, of which all pairs are looked at
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
    "id": "id ids name uuid guid hash key index row nr number session assignment",
}
_WORDS = dict(zip(_NAMED, map(frozenset, map(str.split, _NAMED.values())), strict=True))

_LINK = re.compile(
    r"(?i)\s*(?:[a-z][a-z0-9+.-]*://\S+|\S.*\.(?:jpe?g|png|gif|webp|bmp|tiff?|mp[34]|wav|webm|mov|avi|"
    r"yuv|ogg|flac|txt|html?|pdf))\s*"
)
_DATE = re.compile(r".*(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}).*")
_DATE_LETTERS = 40  # no more than a date has
_OUTCOMES = {"left", "right", "l", "r", "a", "b", "1", "2", "0", "first", "second", "tie", "draw"}
_MTURK_WORKER = re.compile(r"A[0-9A-Z]{9,20}")
_EMAIL = re.compile(r"\S+@\S+\.\S+")


@dataclass(frozen=True)
class ColumnSummary:
    """What a column seems to be, and what is in it."""

    name: str
    role: str
    """item, annotator, label, question, time, trait (of annotators), content (of items), gold,
    order, covariate, free text, id, constant, empty or platform (what a platform adds)."""
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


class _Column:
    """A column as codes of its different values, -1 where it is empty."""

    def __init__(self, name: str, column: pa.ChunkedArray) -> None:
        self.name = name
        codes, values, _ = encode_column(_readable(column))
        empty = validate.missing(values)
        number = np.where(empty, -1, np.cumsum(~empty) - 1)
        self.codes: NDArray[np.int64] = number[codes]
        texts = to_text(to_plain(values)).to_pylist()
        self.values: list[str] = [t for t, none in zip(texts, empty, strict=True) if not none]

    @cached_property
    def n_present(self) -> int:
        return int((self.codes >= 0).sum())

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(
            word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", self.name)
        )

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        return parse_numbers(pa.array(self.values, pa.string())) if self.values else None

    @property
    def share_distinct(self) -> float:
        return len(self.values) / max(1, self.n_present)

    def is_mostly(self, form: re.Pattern[str]) -> bool:
        """Return whether nine in ten values have a form."""
        sample = self.values[:_SAMPLE]
        return 10 * sum(form.fullmatch(value) is not None for value in sample) >= 9 * len(sample)

    def varies_within(self, group: _Column | None) -> float | None:
        """Return in which share of groups the values differ; None if too few rows repeat."""
        if group is None or group is self:
            return None
        both = (self.codes >= 0) & (group.codes >= 0)
        of_row = group.codes[both]
        n_rows = np.bincount(of_row, minlength=len(group.values))
        if (n_rows - 1).clip(0).sum() < _MIN_ROWS:
            return None
        pairs = np.unique(of_row * len(self.values) + self.codes[both])
        n_values = np.bincount(pairs // len(self.values), minlength=len(group.values))
        return float((n_values[n_rows > 1] > 1).mean())

    def counts_within(self, group: _Column | None) -> bool:
        """Return whether no value comes twice in a group of several rows, as in a count of rows."""
        n_groups = 0 if group is None else len(group.values)
        if group is None or n_groups < 3 or len(self.codes) < 4 * n_groups:
            return False
        pairs = self.codes * (n_groups + 1) + group.codes
        return len(np.unique(pairs)) == len(self.codes) and bool((self.codes >= 0).all())

    def summary(self, role: str, why: str) -> ColumnSummary:
        empty = 1 - self.n_present / max(1, len(self.codes))
        first = tuple(self.values[n] for n in self.codes[self.codes >= 0][:N_EXAMPLES])
        examples = tuple(self.values[:N_EXAMPLES])
        return ColumnSummary(self.name, role, why, len(self.values), empty, examples, first)


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose values can be ids or labels; lists and objects become JSON."""
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


def _columns(table: pa.Table, names: Iterable[str] | None = None) -> dict[str, _Column]:
    return {name: _Column(name, table.column(name)) for name in names or table.column_names}


def summarize_columns(
    table: pa.Table, roles: Mapping[str, str] | None = None, title: str = ""
) -> list[ColumnSummary]:
    """Return what each column of a table seems to be.

    ``roles`` has the columns whose roles are known: item, annotator, label and others; ``title`` is
    the format that says so, if one does.
    """
    columns = _columns(table)
    known = {name: role for role, name in (roles or {}).items()}
    item, annotator = (columns.get((roles or {}).get(role, "")) for role in LABEL_ROLES[:2])
    return [
        column.summary(known[name], f"as in {title}" if title else _why_known(column, known[name]))
        if name in known
        else column.summary(*_role_of(column, item, annotator))
        for name, column in columns.items()
    ]


def _why_known(column: _Column, role: str) -> str:
    names = KNOWN_NAMES.get(role, ((role,),))
    by_name = bool(find_known(names, [column.name]))
    return "by its name" if by_name else "by its values"


def _role_of(column: _Column, item: _Column | None, annotator: _Column | None) -> tuple[str, str]:
    """Return the role that a column seems to have, and why."""
    words, n_values, n_present = column.words, len(column.values), column.n_present
    if not n_present:
        return "empty", "no value in any row"
    if n_values == 1 and n_present >= _MIN_ROWS:
        return "constant", "one value in all rows"
    if any(word.startswith("hidden") for word in words):
        return "platform", "a hidden field, by its name"
    in_items, in_annotators = column.varies_within(item), column.varies_within(annotator)
    if words & _WORDS["gold"] and not in_items:
        return "gold", "named as a known truth"
    is_number = column.numbers is not None
    if (words & _WORDS["time"] and (is_number or column.is_mostly(_DATE))) or (
        column.is_mostly(_DATE) and max(map(len, column.values[:_SAMPLE])) <= _DATE_LETTERS
    ):
        return "time", "a time or duration" if is_number else "dates or times"
    if column.is_mostly(_LINK):
        return "content", "links or names of files"
    if words & _WORDS["platform"]:
        return "platform", "added by a platform, by its name"
    n_spaces = [value.strip().count(" ") for value in column.values[:_SAMPLE]]
    differs = column.share_distinct > 0.5 and n_present >= _MIN_ROWS
    is_long = not is_number and np.mean(n_spaces) >= 3 and (differs or n_values == n_present)
    is_content = in_items is not None and in_items <= 0.005
    if words & _WORDS["free text"] and not (is_number and not differs):
        return "free text", "a comment, by its name"
    if is_content:
        return "content", "one value per item"
    if is_long:
        return "free text", "long texts that hardly repeat"
    if differs and column.share_distinct >= 0.9 and (words & _WORDS["id"] or not is_number):
        return "id", "nearly every row has a value of its own"
    if words & {"id", "ids", "uuid", "guid", "hash"} and not words & _WORDS["label"]:
        return "id", "an id, by its name"
    if is_number and differs and n_values > _MANY_TEXTS and _is_wide(column.numbers):
        return "covariate", "numbers that hardly repeat"
    if not is_number and differs and n_values > _MANY_TEXTS:
        return "free text", "texts that hardly repeat"
    if is_number and column.counts_within(annotator):
        return "order", "different in all labels of an annotator"
    if in_annotators is not None and in_annotators <= 0.05:
        return "trait", "one value per annotator"
    if words & _WORDS["trait"] and (
        in_annotators is None or in_annotators < 0.2 or words & _WORDS["annotator"]
    ):
        return "trait", "about annotators, by its name"
    repeats = counted(n_values, "value that repeats", "values that repeat")
    return "label", f"{repeats}, different within items" if in_items else repeats


def _is_wide(numbers: NDArray[np.float64] | None) -> bool:
    """Return whether numbers are not those of a usual scale or slider."""
    assert numbers is not None
    return bool(np.ptp(numbers) > 100 or (numbers % 0.5).any())


def label_candidates(
    table: pa.Table,
    names: Sequence[str],
    item: str | None,
    annotator: str | None,
    *,
    are_questions: bool = False,
) -> tuple[list[ColumnSummary], list[ColumnSummary]]:
    """Return the columns that seem to hold labels, best first, and the others.

    Where none does, those whose values repeat are taken. Columns that ``are_questions`` of a tool
    hold labels, unless they are empty, texts or times.
    """
    columns = _columns(
        table.slice(0, CANDIDATE_ROWS),
        dict.fromkeys([*names, *(n for n in (item, annotator) if n)]),
    )
    of_item, of_annotator = columns.get(item or ""), columns.get(annotator or "")
    found = {
        name: column.summary(*_role_of(column, of_item, of_annotator))
        for name, column in columns.items()
        if name in names
    }
    no_labels = ("empty", "free text", "time", "id")
    labels = [
        each
        for each in found.values()
        if each.role == "label" or (are_questions and each.role not in no_labels)
    ] or [
        each
        for each in found.values()
        if each.role in ("content", "trait", "covariate", "platform", "free text")
        and columns[each.name].share_distinct <= 0.5
    ]
    labels.sort(key=_label_rank)
    return labels, [each for each in found.values() if each not in labels]


def _label_rank(column: ColumnSummary) -> tuple[bool, ...]:
    is_known = bool(find_known(KNOWN_NAMES["label"], [column.name]))
    return (
        column.role != "label",
        not is_known,
        "within" not in column.why,
        column.n_distinct > 12,
    )


def describe_others(names: Sequence[str], to_take_one: str) -> str:
    """Return a note on columns that were not taken for labels, and the option ``to_take_one``."""
    return f"not {listed(names, 3)}, by their values; else pass {to_take_one}" if names else ""


def propose_columns(
    table: pa.Table, given: Mapping[str, str] | None = None
) -> tuple[dict[str, str], list[ColumnSummary]]:
    """Return the columns of the item and the annotator, and those that could be the label.

    They are found by names and by evidence: ids repeat, and nearly every row has an item and
    annotator of its own. All is empty where none could be. ``given`` are those that are known.
    """
    given = dict(given or {})
    columns = _columns(table.slice(0, CANDIDATE_ROWS))
    if not _has_names(columns):
        return {}, []
    able = [c for c in columns.values() if _may_be_id(c) or c.name in given.values()]
    able.sort(key=lambda c: -max(_name_score(c, role) for role in LABEL_ROLES[:2]))
    best: tuple[float, dict[str, str]] = (0.0, {})
    for item, annotator in permutations(able[:_PAIR_COLUMNS], 2):
        pair = {"item": item.name, "annotator": annotator.name}
        taken = {name for role, name in given.items() if role not in pair}
        if any(given.get(role, name) != name or name in taken for role, name in pair.items()):
            continue
        score = _pair_score(item, annotator)
        if score > best[0]:
            best = score, pair
    pair = best[1]
    if not pair:
        return {}, []
    used = {*pair.values(), *(name for role, name in given.items() if role != "label")}
    names = [given["label"]] if "label" in given else [n for n in columns if n not in used]
    labels, _ = label_candidates(table, names, pair["item"], pair["annotator"])
    sure = [each for each in labels if each.role == "label" or "label" in given]
    return pair, sure


def propose_pair_columns(table: pa.Table, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the columns of a table of comparisons, found by their values; nothing if none could be.

    Two columns are the sides if they share most of their ids; a winner is a word for a side or the id
    of one of them.
    """
    columns = _columns(table.slice(0, CANDIDATE_ROWS))
    able = [c for c in columns.values() if _may_be_id(c) or c.name in (given or {}).values()]
    sides: dict[tuple[str, str], float] = {}
    for n, left in enumerate(able[:_PAIR_COLUMNS]):
        for right in able[n + 1 : _PAIR_COLUMNS]:
            shared = len(set(left.values) & set(right.values))
            share = shared / max(1, min(len(left.values), len(right.values)))
            if shared > 1 and share >= 0.5 and _are_sides(left, right):
                sides[left.name, right.name] = share
    if not sides:
        return {}
    left, right = (columns[name] for name in max(sides, key=lambda pair: sides[pair]))
    ids = {*left.values, *right.values}
    rest = [c for c in columns.values() if c not in (left, right) and c.n_present]
    winner = next((c for c in rest if _may_be_winner(c, ids | {left.name, right.name})), None)
    if winner is None:
        return {}
    people = sorted(rest, key=lambda c: -_name_score(c, "annotator"))
    annotator = next((c.name for c in people if c is not winner), "")
    if not annotator or not _name_score(columns[annotator], "annotator"):
        annotator = NO_ANNOTATOR
    found = {"left": left.name, "right": right.name, "annotator": annotator, "winner": winner.name}
    return {**found, **(given or {})}


def _are_sides(left: _Column, right: _Column) -> bool:
    """Return whether the ids of two columns differ in nearly every row, as those of a pair do."""
    code = {value: n for n, value in enumerate(right.values)}
    same = np.array([code.get(value, -2) for value in left.values])[left.codes] == right.codes
    return bool(len(left.values) > 2 and same.mean() <= 0.05)


def _may_be_winner(column: _Column, ids: set[str]) -> bool:
    """Return whether values are words for sides or ids of the items, but for one that is a tie."""
    others = [v for v in column.values if v not in ids and v.strip().lower() not in _OUTCOMES]
    return len(column.values) > 1 and len(others) <= (len(column.values) > 2)


def _has_names(columns: Mapping[str, _Column]) -> bool:
    """Return whether the names of columns are no values: the first row of a table without names is."""
    return 3 * sum(name in column.values for name, column in columns.items()) < len(columns)


def _may_be_id(column: _Column) -> bool:
    """Return whether values repeat as those of items and annotators do."""
    if column.words & _WORDS["time"] and column.numbers is not None:
        return False
    n_values, n_rows = len(column.values), len(column.codes)
    return 2 <= n_values <= n_rows / 1.2 and 20 * column.n_present >= 19 * n_rows


def _name_score(column: _Column, role: str) -> float:
    if find_known(KNOWN_NAMES[role], [column.name]):
        return 4
    if column.words & _WORDS[role]:
        is_plain = column.words & _WORDS["id"] or len(column.words) == 1
        return 3 if is_plain and not column.words & {"hit", "assignment"} else 2
    if role == "annotator" and (column.is_mostly(_MTURK_WORKER) or column.is_mostly(_EMAIL)):
        return 3
    if role == "item" and column.is_mostly(_LINK):
        return 2
    return 0


def _pair_score(item: _Column, annotator: _Column) -> float:
    """Return how well two columns name items and annotators; 0 if they cannot."""
    both = (item.codes >= 0) & (annotator.codes >= 0)
    first, second = item.codes[both], annotator.codes[both]
    n_pairs = len(np.unique(first * len(annotator.values) + second))
    n_ids = max(len(item.values), len(annotator.values))
    if len(first) < _MIN_ROWS or 10 * n_pairs < 9 * len(first) or n_pairs < 1.2 * n_ids:
        return 0.0
    counts = [np.bincount(codes) for codes in (first, second)]
    spread = [count.std() / count.mean() for count in counts]
    shape = (len(item.values) > len(annotator.values)) + 0.5 * (spread[0] <= spread[1])
    names = _name_score(item, "item") + _name_score(annotator, "annotator")
    against = _name_score(item, "annotator") + _name_score(annotator, "item")
    return float(1 + shape + names - against + n_pairs / len(first))
