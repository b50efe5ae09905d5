"""From nested records to a long table of labels."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from annotruth import errors
from annotruth.errors import InputError, listed, option, shown
from annotruth.io.formats.source import Record, Source
from annotruth.observations.columns.candidates import describe_others, label_candidates
from annotruth.observations.columns.names import TIME_ROLES, ColumnsNotFoundError
from annotruth.observations.columns.questions import QuestionsFoundError, take_all_questions
from annotruth.observations.frames import make_column
from annotruth.observations.options import ALL_QUESTIONS, ParsedLabels

JOINED = " + "
"""What is between several choices in one category (`category_of`)."""


@dataclass
class Votes:
    """Labels collected from nested records, and the known truths among them.

    Lists of choices are labels if each has one choice; otherwise all of them are sets of labels.
    """

    items: list[Any] = field(default_factory=list)
    annotators: list[Any] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    gold: dict[Any, Any] = field(default_factory=dict)
    n_several: int = 0
    content: dict[str, list[Any]] = field(default_factory=dict)
    times: list[Record] = field(default_factory=list)

    def add(
        self,
        item: Any,
        annotator: Any,
        label: Any,
        about: Record | None = None,
        times: Record | None = None,
    ) -> None:
        """Add a label, or a list of choices.

        ``about`` is what the item is, by name; those names are kept that ``content`` has. ``times``
        are the time, the order and the seconds of the label, where they are known.
        """
        self.times.append(times or {})
        for name, values in self.content.items():
            value = (about or {}).get(name)
            values.append(None if value is None else str(value))
        self.items.append(check_scalar(item))
        self.annotators.append(check_scalar(annotator))
        self.labels.append(self._checked(label))

    def add_gold(self, item: Any, label: Any) -> None:
        """Add a known truth, unless the label is empty."""
        item, label = check_scalar(item), self._checked(label)
        if label not in (None, []) and self.gold.setdefault(item, label) != label:
            raise InputError(
                f"item {shown(item)} has two truths, {_shown_choices(self.gold[item])} and "
                f"{_shown_choices(label)}: keep one"
            )

    def parsed(self, *notes: str, **unused: int) -> ParsedLabels:
        """Return the long table; truths of items without labels are left out and counted.

        ``unused`` are rows that were left out, by reason.
        """
        has_sets = self.n_several > 0
        table, gold = self._tables(has_sets)
        n_gold = 0 if gold is None else len(gold)
        n_left_out = len(self.gold) - n_gold
        return ParsedLabels(
            table,
            gold=gold,
            unused=unused,
            notes=(
                *notes,
                counted(n_gold, "truth{s} taken as gold"),
                counted(
                    n_left_out, "truth of an item without labels", "truths of items without labels"
                ),
                counted(self.n_several, "answer{s} of several labels"),
            ),
            as_sets=None if has_sets else partial(self._tables, True),
        )

    def _tables(self, has_sets: bool) -> tuple[pa.Table, pa.Table | None]:
        """Return the long table, and the known truths of its items, with labels or sets of them."""
        labels = [_as_set(label) if has_sets else _single(label) for label in self.labels]
        labelled = {
            item for item, label in zip(self.items, labels, strict=True) if label is not None
        }
        gold = {
            item: _as_set(truth) if has_sets else _single(truth)
            for item, truth in self.gold.items()
            if item in labelled
        }
        ids = _ids([*self.items, *gold])
        table = pa.table(
            {
                "item": ids.slice(0, len(self.items)),
                "annotator": _ids(self.annotators),
                "label": make_column("label", labels),
                **{name: pa.array(some, pa.string()) for name, some in self.content.items()},
                **self._times_by_role(),
            }
        )
        if not gold:
            return table, None
        truths = make_column("gold", [*gold.values()])
        return table, pa.table({"item": ids.slice(len(self.items)), "label": truths})

    def _times_by_role(self) -> dict[str, pa.Array]:
        """Return the times of labels by role, as text; roles that no label has are left out."""
        by_role = {role: [one.get(role) for one in self.times] for role in TIME_ROLES}
        return {
            role: make_column(role, [None if one is None else str(one) for one in values])
            for role, values in by_role.items()
            if any(one is not None for one in values)
        }

    def _checked(self, label: Any) -> Any:
        """Return a label, or the different choices of a list in order."""
        if not isinstance(label, list):
            return check_scalar(label)
        chosen = sorted(_distinct(label), key=str)
        self.n_several += len(chosen) > 1
        return chosen


class FormAnswer(NamedTuple):
    """What an annotator answered to one question about an item: choices are a list."""

    item: Any
    annotator: Any
    question: str
    value: Any
    times: Record | None = None


def labels_of(
    answers: Sequence[FormAnswer],
    source: Source,
    *notes: str,
    from_text: bool = False,
    unused: Mapping[str, int] | None = None,
) -> ParsedLabels:
    """Return the labels of the question that the caller asks for, or of the only one.

    Comments and times are read only if they are named.
    ``unused`` are rows that were left out, by reason.
    """
    given = [(each.item, each.annotator, each.question, each.value) for each in answers]
    question, note = choose_answered(given, source.read.question)
    votes = Votes()
    for answer in answers:
        if answer.question == question:
            votes.add(answer.item, answer.annotator, answer.value, times=answer.times)
    said = with_note(f"question {question}", note)
    parsed = votes.parsed(notes[0], said, *notes[1:], **(unused or {}))
    return replace(parsed, from_text=from_text)


def _as_set(label: Any) -> list[Any] | None:
    """Return a set of labels as a list of texts; a single label is a set of one."""
    if label is None:
        return None
    return [str(each) for each in (label if isinstance(label, list) else [label])]


def _shown_choices(label: Any) -> str:
    """Return a label or choices as a message shows them."""
    return listed(map(shown, label if isinstance(label, list) else [label]))


def _single(label: Any) -> Any:
    """Return the only label of a list, None if it is empty."""
    if not isinstance(label, list):
        return label
    return label[0] if label else None


def category_of(label: Any) -> Any:
    """Return the category of a label: of a list of choices the set of them, None if it is empty."""
    if not isinstance(label, list):
        return check_scalar(label)
    chosen = _distinct(label)
    if len(chosen) > 1:
        return JOINED.join(sorted(map(str, chosen)))
    return chosen[0] if chosen else None


def _distinct(choices: list[Any]) -> list[Any]:
    return list(dict.fromkeys(check_scalar(one) for one in choices if one is not None))


def check_scalar(value: Any) -> Any:
    """Return a label or id, None for NaN; refuse what is nested."""
    if isinstance(value, dict | list):
        raise InputError(f"{shown(value)} is not a label or id: labels are text or numbers")
    return None if isinstance(value, float) and math.isnan(value) else value


def mapping(value: Any, what: str) -> Record:
    """Return an object; refuse anything else under its name."""
    if not isinstance(value, dict):
        raise InputError(f"{what} is {shown(value)}, not an object: export the file again")
    return value


def sequence(value: Any, what: str) -> list[Any]:
    """Return a list, empty for None; refuse anything else under its name."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{what} is {shown(value)}, not a list: export the file again")
    return value


def chosen(names: Iterable[str], wanted: str | None, what: str) -> str:
    """Return the question that the caller asks for, or the only one there is.

    If all are asked for, raise their names: they are then read one by one.
    """
    known = list(dict.fromkeys(names))
    if wanted == ALL_QUESTIONS and known:
        raise QuestionsFoundError(known)
    if wanted not in (None, ALL_QUESTIONS):
        if wanted not in known:
            raise InputError(f"no {what} {wanted!r} (found: {listed(known)})")
        return wanted
    if not known:
        raise InputError(f"there is no {what} with a label: nothing to fit")
    if len(known) > 1:
        raise InputError(
            f"there are several {what}s, {listed(known)}: {pass_question(known[0])}; "
            f"{take_all_questions()}"
        )
    return known[0]


def choose_question(
    names: Iterable[str],
    wanted: str | None,
    load: Callable[[], pa.Table],
    *,
    item: str,
    annotator: str,
    prefix: str = "",
    what: str = "question",
    are_questions: bool = False,
) -> tuple[str, str]:
    """Return the question that the caller asks for, or the only one that has labels, and a note.

    Comments, times, hidden fields and the like are no questions. ``load`` returns the table with the
    columns of items, annotators and, after a prefix, of each question; it is called if there are
    several. Of columns that ``are_questions`` of a tool, texts and times are none.
    """
    known = list(dict.fromkeys(names))
    if len(known) < 2 or wanted not in (None, ALL_QUESTIONS):
        return chosen(known, wanted, what), ""
    columns = [f"{prefix}{name}" for name in known]
    found, others = label_candidates(load(), columns, item, annotator, are_questions=are_questions)
    found = [replace(each, name=each.name.removeprefix(prefix)) for each in found]
    if not found:
        return chosen(known, wanted, what), ""
    if wanted == ALL_QUESTIONS:
        labels = {each.name for each in found}
        raise QuestionsFoundError(name for name in known if name in labels)
    rest = [each.name.removeprefix(prefix) for each in others]
    note = describe_others(rest, option("question", "NAME"))
    if len(found) == 1:
        return found[0].name, note
    problem = f"there are several {what}s, {', '.join(each.preview for each in found[:3])}" + (
        f" and {len(found) - 3:,} more" if len(found) > 3 else ""
    )
    message = (
        f"{problem}: {pass_question(*(each.name for each in found[:3]))}; {take_all_questions()}"
    )
    raise ColumnsNotFoundError(f"{message}; {note}" if note else message, problem)


def choose_answered(
    given: Sequence[tuple[Any, Any, str, Any]], wanted: str | None, what: str = "question"
) -> tuple[str, str]:
    """Return the question, as `choose_question` does, of (item, annotator, question, label)."""

    def load() -> pa.Table:
        names = dict.fromkeys(name for _, _, name, _ in given)
        columns: Mapping[str, list[str | None]] = {
            "item": [str(item) for item, *_ in given],
            "annotator": [str(annotator) for _, annotator, *_ in given],
            **{f"label {name}": [None] * len(given) for name in names},
        }
        for row, (_, _, name, label) in enumerate(given):
            value = category_of(label)
            columns[f"label {name}"][row] = None if value is None else str(value)
        return pa.table({name: pa.array(some, pa.string()) for name, some in columns.items()})

    names = (name for _, _, name, _ in given)
    return choose_question(
        names,
        wanted,
        load,
        item="item",
        annotator="annotator",
        prefix="label ",
        what=what,
        are_questions=True,
    )


def with_note(text: str, note: str) -> str:
    """Return a text with a note in brackets, if there is one."""
    return f"{text} ({note})" if note else text


def pass_question(*names: str) -> str:
    """Return what to do, in a message, where there are several questions."""
    each = [option("question", name) for name in names]
    return f"choose one{', such as' if len(each) == 1 else ' with'} {' or '.join(each)}"


def differing(
    rows: Iterable[Record], item: Callable[[Record], Any], names: Sequence[str]
) -> list[str]:
    """Return the fields that differ between rows of one item: answers, not data of the item."""
    first: dict[tuple[str, str], str] = {}
    found: dict[str, None] = {}
    for row in rows:
        for name in names:
            if name not in found and row.get(name) is not None:
                given = row[name]
                value = given if isinstance(given, str) else json.dumps(given, sort_keys=True)
                if first.setdefault((str(item(row)), name), value) != value:
                    found[name] = None
    return [name for name in names if name in found]


def refuse_regions(question: str, kind: str) -> NoReturn:
    """Refuse boxes, polygons, spans and the like, which belong to a part of an item."""
    raise InputError(
        f"the regions of {question!r} ({kind}) are not classes: boxes, polygons and spans are not "
        "read, only choices, ratings, numbers and taxonomies for whole items; write the classes "
        "as a table with the columns item, annotator, label"
    )


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, whose {s} is for several; an empty text for zero."""
    if "{s}" in one:
        one, many = one.replace("{s}", ""), one.replace("{s}", "s")
    return errors.counted(number, one, many) if number else ""


def _ids(values: list[Any]) -> pa.Array:
    """Return a column of ids; where numbers and text are mixed, all as text."""
    if len({type(value) for value in values if value is not None}) > 1:
        values = [None if value is None else str(value) for value in values]
    return make_column("id", values)
