"""Exports of crowdsourcing platforms: CrowdFlower, Mechanical Turk and Toloka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, listed, shown
from annotruth.io.formats.cells import ANSWER_PREFIX, with_form_columns
from annotruth.io.formats.matrix import is_empty
from annotruth.io.formats.source import INPUT_PREFIX, ITEM_FIELD, Format, Record, Source
from annotruth.io.formats.votes import (
    Votes,
    choose_question,
    chosen,
    counted,
    differing,
    pass_question,
    with_note,
)
from annotruth.observations.columns.names import (
    ColumnsNotFoundError,
    check_further_columns,
    pass_column,
    pass_columns,
)
from annotruth.observations.columns.responses import with_boxes
from annotruth.observations.options import ALL_QUESTIONS, ParsedLabels
from annotruth.observations.pairs.columns import PairColumns, find_pair_columns
from annotruth.observations.validate import missing

# CrowdFlower, later Figure Eight and Appen: one row per judgment of a unit.

_UNIT, _CONTRIBUTOR, _TAINTED = "_unit_id", "_worker_id", "_tainted"
_GOLD = ("_gold", ":gold")  # after the name of a question
_GOLD_REASON = "_gold_reason"


def _read_crowdflower(source: Source) -> ParsedLabels:
    """Read one answer of every judgment; the answers of test questions are gold."""
    if _CONTRIBUTOR not in source.names and "annotator" not in source.columns:
        raise InputError(
            "this is an aggregated report, which has one answer per unit and not who gave it: "
            "download the full report instead"
        )
    item, worker = source.column("item", _UNIT), source.column("annotator", _CONTRIBUTOR)
    rows: list[Record] = source.table(list(source.names)).to_pylist()
    question, note = _question_of_report(source, rows, item, worker)
    golds = [name for suffix in _GOLD if (name := question + suffix) in source.names]
    check_further_columns("content", source.names, source.read.content, ())
    votes = Votes(content={name: [] for name in source.read.content})
    several, tainted, n_empty = set(), 0, 0
    for row in rows:
        if row[question] is None:
            n_empty += 1
            continue
        votes.add(row[item], row[worker], _choices(row[question]), row)
        tainted += str(row.get(_TAINTED)).lower() == "true"
        for accepted in (_choices(row[name]) for name in golds if row[name]):
            if len(accepted) > 1:
                several.add(row[item])
            else:
                votes.add_gold(row[item], accepted)
    parsed = votes.parsed(
        counted(len(rows), "judgment"),
        f"items by {item}",
        with_note(f"question {question}", note),
        counted(tainted, "tainted judgment{s} included"),
        counted(
            len(several),
            "test question with several accepted answers is not gold",
            "test questions with several accepted answers are not gold",
        ),
    )
    origin = {"item": item, "annotator": worker, "label": question}
    unused = {"without an answer": n_empty}
    return replace(parsed, from_text=source.from_text, origin=origin, unused=unused)


def _question_of_report(
    source: Source, rows: Sequence[Record], item: str, worker: str
) -> tuple[str, str]:
    """Return the question: a column with a gold column, or that differs between judgments."""
    if "label" in source.columns:
        return source.column("label", ""), ""
    names = [
        name
        for name in source.names
        if not name.startswith(("_", "orig__")) and not name.endswith((*_GOLD, _GOLD_REASON))
    ]
    if source.read.question not in (None, ALL_QUESTIONS):
        return chosen(names, source.read.question, "question"), ""
    answers = differing(rows, itemgetter(_UNIT), names)
    with_gold = {
        n.removesuffix(suffix) for n in source.names for suffix in _GOLD if n.endswith(suffix)
    }
    questions = [name for name in names if name in answers or name in with_gold]
    if not questions:
        names = [name for name in names if any(not is_empty(row[name] or "") for row in rows)]
    if questions or len(names) == 1:
        return choose_question(
            questions or names,
            source.read.question,
            lambda: source.table(list(dict.fromkeys([item, worker, *questions]))),
            item=item,
            annotator=worker,
        )
    raise InputError(
        f"the question could be any of {listed(names)}, as no column differs between the judgments "
        f"of a unit: {pass_question(names[0])}"
        if names
        else "there is no question with a label: nothing to fit"
    )


def _choices(cell: object) -> list[str]:
    """Return the choices in a cell, which has one per line where several could be ticked."""
    return [choice for line in str(cell).splitlines() if (choice := line.strip())]


# What the exports of Mechanical Turk and Toloka have in common: prefixes of columns.


def _starting_with(prefix: str, names: Iterable[str]) -> list[str]:
    """Return the rest of the names that start with a prefix."""
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _answer_of(question: str | None, prefix: str, names: Iterable[str]) -> str:
    """Return the column that holds the answers to a question, or to the only one."""
    wanted = question and question.removeprefix(prefix)
    return prefix + chosen(_starting_with(prefix, names), wanted, "question")


def _answers(
    source: Source, prefix: str, item: str, worker: str, others: Iterable[str]
) -> tuple[str, pa.Table, str]:
    """Return the column of the answers that the caller names or asks for, the table, and a note.

    Boxes are one column of a question.
    """
    given = [source.column("label", "")] if "label" in source.columns else []
    of_answers = given or [name for name in source.names if name.startswith(prefix)]
    table = source.table(list(dict.fromkeys([item, worker, *of_answers, *others])))
    if given:
        return given[0], table, ""
    table = with_form_columns(table)
    names = [name for name in table.column_names if name.startswith(prefix)]
    table, names = with_boxes(table, names)
    wanted = source.read.question
    answer, note = choose_question(
        _starting_with(prefix, names),
        wanted and wanted.removeprefix(prefix),
        lambda: table,
        item=item,
        annotator=worker,
        prefix=prefix,
    )
    return prefix + answer, table, note


def _renamed(table: pa.Table, columns: tuple[str, str, str], others: Mapping[str, str]) -> pa.Table:
    """Return a long table of item, annotator and label, and of others by their new names."""
    chosen_columns = table.select([*columns, *others.values()])
    return chosen_columns.rename_columns(["item", "annotator", "label", *others])


# The results of a Mechanical Turk batch: one row per assignment.

_REVIEW, _REASON = "AssignmentStatus", "Reject"  # filled in where a rejection is yet to be uploaded


def is_batch(names: Iterable[str]) -> bool:
    """Return whether a table has the columns of the results of a batch."""
    return {"HITId", "WorkerId"} <= set(names)


def _read_batch(source: Source) -> ParsedLabels:
    """Read the labels of all assignments that were not rejected.

    An item is a HIT, or the item that annotruth made the HIT for.
    """
    if "label" not in source.columns and not _starting_with(ANSWER_PREFIX, source.names):
        problem = f"no column starts with {ANSWER_PREFIX!r} (found: {listed(source.names)})"
        known = {"item": "HITId", "annotator": "WorkerId"}
        raise ColumnsNotFoundError(
            f"{problem}: if this has one row per label, {pass_columns(known | {'label': ''})}",
            problem,
            known,
        )
    ours = f"{INPUT_PREFIX}{ITEM_FIELD}"
    item = source.column("item", ours if ours in source.names else "HITId")
    worker = source.column("annotator", "WorkerId")
    review = review_columns(source.names)
    further = [name for name in source.read.content if name in source.names]
    times = source.time_columns({"time": "SubmitTime", "seconds": "WorkTimeInSeconds"})
    others = [*review, *further, *times.values()]
    answer, table, note = _answers(source, ANSWER_PREFIX, item, worker, others)
    kept = without_rejected(table)
    left_out = table.num_rows - kept.num_rows
    return ParsedLabels(
        _renamed(kept, (item, worker, answer), {name: name for name in further} | times),
        origin={"item": item, "annotator": worker, "label": answer, **times},
        from_text=source.from_text,
        unused={"rejected": left_out},
        notes=(
            counted(table.num_rows, "assignment"),
            f"items by {item}",
            with_note(f"answer {answer.removeprefix(ANSWER_PREFIX)}", note),
            counted(left_out, "rejected left out", "rejected left out"),
        ),
    )


def review_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that say whether an assignment was rejected."""
    return [name for name in (_REVIEW, _REASON) if name in names]


def without_rejected(table: pa.Table) -> pa.Table:
    """Return the rows of assignments that were not rejected."""
    rejected = np.zeros(table.num_rows, dtype=bool)
    if _REVIEW in table.column_names:
        status = pc.utf8_lower(pc.utf8_trim_whitespace(table.column(_REVIEW).cast(pa.string())))
        rejected |= pc.fill_null(pc.equal(status, "rejected"), False).to_numpy()
    if _REASON in table.column_names:
        rejected |= ~missing(table.column(_REASON))
    return table.filter(pa.array(~rejected))


def batch_columns(
    names: Sequence[str],
    given: Mapping[str, str] | None,
    covariates: Sequence[str],
    question: str | None,
) -> PairColumns:
    """Return the columns of a batch: two inputs, the worker, and an answer.

    Where there are more than two inputs, those of known names are taken, such as Input.model_a and
    Input.model_b.
    """
    given = dict(given or {})
    if "winner" not in given:
        given["winner"] = _answer_of(question, ANSWER_PREFIX, names)
    given.setdefault("annotator", "WorkerId")
    if not {"left", "right"} & given.keys():
        given |= _sides(_starting_with(INPUT_PREFIX, names))
    return find_pair_columns(names, given, covariates)


def _sides(inputs: Sequence[str]) -> dict[str, str]:
    try:
        found = find_pair_columns([*inputs, "annotator", "winner"]).by_role
        left, right = found["left"], found["right"]
    except (InputError, KeyError):
        if len(inputs) != 2:
            return {}
        left, right = inputs
    return {"left": f"{INPUT_PREFIX}{left}", "right": f"{INPUT_PREFIX}{right}"}


# Toloka's assignments: columns INPUT:, OUTPUT:, GOLDEN: and ASSIGNMENT:.

_PERFORMER, _TASK, _STATUS = (
    "ASSIGNMENT:worker_id",
    "ASSIGNMENT:task_id",
    "ASSIGNMENT:status",
)
_NOT_ACCEPTED = ["REJECTED", "SKIPPED", "EXPIRED", "ACTIVE"]


def _read_toloka(source: Source) -> ParsedLabels:
    """Read the outputs of assignments that were submitted and not rejected."""
    item, worker = _item_of_toloka(source), source.column("annotator", _PERFORMER)
    times = source.time_columns({"time": "ASSIGNMENT:submitted"})
    further = [
        name
        for name in (_STATUS, *(name for name in source.names if name.startswith("GOLDEN:")))
        if name in source.names
    ]
    output, table, note = _answers(source, "OUTPUT:", item, worker, [*further, *times.values()])
    golden = output.replace("OUTPUT:", "GOLDEN:", 1)
    more = [name for name in (golden, _STATUS) if name in source.names and name != output]
    n_rows = table.num_rows
    if _STATUS in more:
        rejected = pc.is_in(table.column(_STATUS).cast(pa.string()), pa.array(_NOT_ACCEPTED))
        table = table.filter(pc.invert(rejected))
    gold = _find_gold(table, item, golden, output) if golden in more else None
    return ParsedLabels(
        _renamed(table, (item, worker, output), times),
        origin={"item": item, "annotator": worker, "label": output, **times},
        from_text=source.from_text,
        gold=gold,
        unused={"rejected or unfinished": n_rows - table.num_rows},
        notes=(
            counted(n_rows, "answer"),
            f"items by {item}",
            with_note(f"output {output.removeprefix('OUTPUT:')}", note),
            counted(
                n_rows - table.num_rows, "rejected left out", "rejected or unfinished left out"
            ),
            counted(gold.num_rows if gold else 0, "golden task is gold", "golden tasks are gold"),
        ),
    )


def _item_of_toloka(source: Source) -> str:
    """Return the column of the item: the input, if there is one column of it, else the task."""
    inputs = [name for name in source.names if name.startswith("INPUT:")]
    if "item" in source.columns or len(inputs) == 1:
        return source.column("item", inputs[0] if inputs else "")
    if _TASK in source.names:
        return _TASK
    raise InputError(f"the item could be any of {listed(inputs)}: {pass_column('item')}")


def _find_gold(table: pa.Table, item: str, golden: str, output: str) -> pa.Table | None:
    """Return the known truth of every golden task that has a label."""
    has_both = pa.array(~missing(table.column(output)) & ~missing(table.column(golden)))
    known = table.filter(has_both).select([item, golden]).rename_columns(["item", "label"])
    known = known.group_by(["item", "label"], use_threads=False).aggregate([])
    truths: dict[object, object] = {}
    for row in known.to_pylist():
        if truths.setdefault(row["item"], row["label"]) != row["label"]:
            raise InputError(
                f"item {shown(row['item'])} has two golden labels, {shown(truths[row['item']])} and "
                f"{shown(row['label'])}: keep one"
            )
    return known if known.num_rows else None


FORMATS = (
    Format(
        "crowdflower",
        "CrowdFlower or Appen report",
        lambda source: (
            _UNIT in source.names and not {_CONTRIBUTOR, "_unit_state"}.isdisjoint(source.names)
        ),
        _read_crowdflower,
    ),
    Format("mturk", "MTurk batch results", lambda source: is_batch(source.names), _read_batch),
    Format(
        "toloka",
        "Toloka assignments",
        lambda source: _PERFORMER in source.names and _starting_with("OUTPUT:", source.names) != [],
        _read_toloka,
    ),
)
