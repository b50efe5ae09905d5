"""The results of a Mechanical Turk batch whose tasks show two items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from annotruth.comparisons.columns import PairColumns, find_pair_columns
from annotruth.errors import InputError
from annotruth.io.formats.mturk import ANSWER_PREFIX
from annotruth.io.formats.source import INPUT_PREFIX
from annotruth.io.formats.votes import chosen


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
