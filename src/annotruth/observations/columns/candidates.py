"""Which columns of a table could be the item, the annotator and the label, or a pair and its winner."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
import pyarrow as pa

from annotruth.errors import listed
from annotruth.observations.columns.evidence import (
    LINK,
    MIN_ROWS,
    NAME_WORDS,
    ColumnSummary,
    TableColumn,
    seeming_role,
    table_columns,
    words_of,
)
from annotruth.observations.columns.names import KNOWN_NAMES, LABEL_ROLES, find_known
from annotruth.observations.pairs.columns import NO_ANNOTATOR

CANDIDATE_ROWS = 20_000
"""The first rows of a table, in which columns without known names are looked for."""
_PAIR_COLUMNS = 12  # of ids, of which all pairs are looked at
_OUTCOMES = {"left", "right", "l", "r", "a", "b", "1", "2", "0", "first", "second", "tie", "draw"}
_MTURK_WORKER = re.compile(r"A[0-9A-Z]{9,20}")
_EMAIL = re.compile(r"\S+@\S+\.\S+")


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
    columns = table_columns(
        table.slice(0, CANDIDATE_ROWS),
        dict.fromkeys([*names, *(n for n in (item, annotator) if n)]),
    )
    of_item, of_annotator = columns.get(item or ""), columns.get(annotator or "")
    found = {
        name: column.summary(*seeming_role(column, of_item, of_annotator))
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
    columns = table_columns(table.slice(0, CANDIDATE_ROWS))
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


def is_unit_of_work(name: str) -> bool:
    """Return whether a column is named as what people are paid for, which may hold several items."""
    return bool(words_of(name) & NAME_WORDS["work"])


def propose_pair_columns(table: pa.Table, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the columns of a table of comparisons, found by their values; nothing if none could be.

    Two columns are the sides if they share most of their ids; a winner is a word for a side or the id
    of one of them.
    """
    columns = table_columns(table.slice(0, CANDIDATE_ROWS))
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


def _are_sides(left: TableColumn, right: TableColumn) -> bool:
    """Return whether the ids of two columns differ in nearly every row, as those of a pair do."""
    code = {value: n for n, value in enumerate(right.values)}
    same = np.array([code.get(value, -2) for value in left.values])[left.codes] == right.codes
    return bool(len(left.values) > 2 and same.mean() <= 0.05)


def _may_be_winner(column: TableColumn, ids: set[str]) -> bool:
    """Return whether values are words for sides or ids of the items, but for one that is a tie."""
    others = [v for v in column.values if v not in ids and v.strip().lower() not in _OUTCOMES]
    return len(column.values) > 1 and len(others) <= (len(column.values) > 2)


def _has_names(columns: Mapping[str, TableColumn]) -> bool:
    """Return whether the names of columns are no values: the first row of a table without names is."""
    return 3 * sum(name in column.values for name, column in columns.items()) < len(columns)


def _may_be_id(column: TableColumn) -> bool:
    """Return whether values repeat as those of items and annotators do."""
    if column.words & NAME_WORDS["time"] and column.numbers is not None:
        return False
    n_values, n_rows = len(column.values), len(column.codes)
    return 2 <= n_values <= n_rows / 1.2 and 20 * column.n_present >= 19 * n_rows


def _name_score(column: TableColumn, role: str) -> float:
    if column.words & NAME_WORDS["work"]:
        return 1
    if find_known(KNOWN_NAMES[role], [column.name]):
        return 4
    if column.words & NAME_WORDS[role]:
        return 3 if column.words & NAME_WORDS["id"] or len(column.words) == 1 else 2
    if role == "annotator" and (column.is_mostly(_MTURK_WORKER) or column.is_mostly(_EMAIL)):
        return 3
    if role == "item" and column.is_mostly(LINK):
        return 2
    return 0


def _pair_score(item: TableColumn, annotator: TableColumn) -> float:
    """Return how well two columns name items and annotators; 0 if they cannot."""
    both = (item.codes >= 0) & (annotator.codes >= 0)
    first, second = item.codes[both], annotator.codes[both]
    n_pairs = len(np.unique(first * len(annotator.values) + second))
    n_ids = max(len(item.values), len(annotator.values))
    if len(first) < MIN_ROWS or 10 * n_pairs < 9 * len(first) or n_pairs < 1.2 * n_ids:
        return 0.0
    counts = [np.bincount(codes) for codes in (first, second)]
    spread = [count.std() / count.mean() for count in counts]
    shape = (len(item.values) > len(annotator.values)) + 0.5 * (spread[0] <= spread[1])
    names = _name_score(item, "item") + _name_score(annotator, "annotator")
    against = _name_score(item, "annotator") + _name_score(annotator, "item")
    return float(1 + shape + names - against + n_pairs / len(first))
