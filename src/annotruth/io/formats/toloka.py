"""Toloka's assignments: columns INPUT:, OUTPUT:, GOLDEN: and ASSIGNMENT:."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, listed, shown
from annotruth.io.formats.source import Format, ParsedLabels, Source
from annotruth.io.formats.votes import chosen, counted
from annotruth.observations.frames import pass_column
from annotruth.observations.validate import missing

_WORKER, _TASK, _STATUS = "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id", "ASSIGNMENT:status"
_NOT_ACCEPTED = ["REJECTED", "SKIPPED", "EXPIRED", "ACTIVE"]


def _recognise(source: Source) -> bool:
    return _WORKER in source.names and any(name.startswith("OUTPUT:") for name in source.names)


def _read(source: Source) -> ParsedLabels:
    """Read the outputs of assignments that were submitted and not rejected."""
    if "label" in source.columns:
        output = source.column("label", "")
    else:
        outputs = [n.removeprefix("OUTPUT:") for n in source.names if n.startswith("OUTPUT:")]
        wanted = source.question and source.question.removeprefix("OUTPUT:")
        output = "OUTPUT:" + chosen(outputs, wanted, "question")
    item, worker = _item(source), source.column("annotator", _WORKER)
    golden = output.replace("OUTPUT:", "GOLDEN:", 1)
    more = [name for name in (golden, _STATUS) if name in source.names and name != output]
    times = source.time_columns({"time": "ASSIGNMENT:submitted"})
    table = source.table([item, worker, output, *more, *times.values()])
    n_rows = table.num_rows
    if _STATUS in more:
        rejected = pc.is_in(table.column(_STATUS).cast(pa.string()), pa.array(_NOT_ACCEPTED))
        table = table.filter(pc.invert(rejected))
    gold = _find_gold(table, item, golden, output) if golden in more else None
    return ParsedLabels(
        table.select([item, worker, output, *times.values()]).rename_columns(
            ["item", "annotator", "label", *times]
        ),
        from_text=source.from_text,
        gold=gold,
        notes=(
            counted(n_rows, "answer", "answers"),
            f"items by {item}",
            f"output {output.removeprefix('OUTPUT:')}",
            counted(
                n_rows - table.num_rows, "rejected left out", "rejected or unfinished left out"
            ),
            counted(gold.num_rows if gold else 0, "golden task is gold", "golden tasks are gold"),
        ),
    )


def _item(source: Source) -> str:
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


FORMATS = (Format("toloka", "Toloka assignments", _recognise, _read),)
