"""The results of a Mechanical Turk batch: one row per assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, listed
from annotruth.io.formats.source import INPUT_PREFIX, ITEM_FIELD, Format, ParsedLabels, Source
from annotruth.io.formats.votes import chosen, counted
from annotruth.observations.frames import pass_columns
from annotruth.observations.pairs.columns import PairColumns, find_pair_columns
from annotruth.observations.validate import missing

ANSWER_PREFIX = "Answer."
_STATUS, _REASON = "AssignmentStatus", "Reject"  # filled in where a rejection is yet to be uploaded


def is_batch(names: Iterable[str]) -> bool:
    """Return whether a table has the columns of the results of a batch."""
    return {"HITId", "WorkerId"} <= set(names)


def _recognise(source: Source) -> bool:
    return is_batch(source.names)


def _read(source: Source) -> ParsedLabels:
    """Read the labels of all assignments that were not rejected.

    An item is a HIT, or the item that annotruth made the HIT for.
    """
    if "label" in source.columns:
        answer = source.column("label", "")
    else:
        names = {
            name.removeprefix(ANSWER_PREFIX): name
            for name in source.names
            if name.startswith(ANSWER_PREFIX)
        }
        if not names:
            raise InputError(
                f"no column starts with {ANSWER_PREFIX!r} (found: {listed(source.names)}): if this has one row "
                f"per label, {pass_columns({'item': 'HITId', 'annotator': 'WorkerId', 'label': ''})}"
            )
        wanted = source.question and source.question.removeprefix(ANSWER_PREFIX)
        answer = names[chosen(names, wanted, "question")]
    ours = f"{INPUT_PREFIX}{ITEM_FIELD}"
    item = source.column("item", ours if ours in source.names else "HITId")
    worker = source.column("annotator", "WorkerId")
    review = review_columns(source.names)
    further = [name for name in source.items_content if name in source.names]
    times = source.time_columns({"time": "SubmitTime", "seconds": "WorkTimeInSeconds"})
    read = [item, worker, answer, *review, *further, *times.values()]
    table = source.table(list(dict.fromkeys(read)))
    kept = without_rejected(table)
    left_out = table.num_rows - kept.num_rows
    return ParsedLabels(
        kept.select([item, worker, answer, *further, *times.values()]).rename_columns(
            ["item", "annotator", "label", *further, *times]
        ),
        from_text=source.from_text,
        notes=(
            counted(table.num_rows, "assignment", "assignments"),
            f"items by {item}",
            f"answer {answer.removeprefix(ANSWER_PREFIX)}",
            counted(left_out, "rejected left out", "rejected left out"),
        ),
    )


def review_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that say whether an assignment was rejected."""
    return [name for name in (_STATUS, _REASON) if name in names]


def without_rejected(table: pa.Table) -> pa.Table:
    """Return the rows of assignments that were not rejected."""
    rejected = np.zeros(table.num_rows, dtype=bool)
    if _STATUS in table.column_names:
        status = pc.utf8_lower(pc.utf8_trim_whitespace(table.column(_STATUS).cast(pa.string())))
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
        of_question = {
            n.removeprefix(ANSWER_PREFIX): n for n in names if n.startswith(ANSWER_PREFIX)
        }
        wanted = question and question.removeprefix(ANSWER_PREFIX)
        given["winner"] = of_question[chosen(of_question, wanted, "question")]
    given.setdefault("annotator", "WorkerId")
    if not {"left", "right"} & given.keys():
        inputs = [
            name.removeprefix(INPUT_PREFIX) for name in names if name.startswith(INPUT_PREFIX)
        ]
        given |= _sides(inputs)
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


FORMATS = (Format("mturk", "MTurk batch results", _recognise, _read),)
