"""`annotruth fit --question all`: what is written and printed for several questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from annotruth.app import console
from annotruth.app.console import describe_metrics, finite, json_entries
from annotruth.app.outputs import Outputs
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions
    from annotruth.questions.result import QuestionFits


def check_options(outputs: Outputs, engine: str) -> None:
    """Refuse an engine and outputs that several questions do not have, before labels are read."""
    if engine == "spark":
        raise InputError(
            "--question all is fitted on this machine: leave out --engine spark, or name a question"
        )
    if outputs.predictions is not None:
        raise InputError("--predictions is for one question: name it (`--question NAME`)")
    if outputs.embed:
        raise InputError("--embed is for the report of one question: name it (`--question NAME`)")
    if outputs.soft is not None and outputs.soft.suffix.lower() == ".npz":
        raise InputError(
            "the soft labels of several questions are a long table: name a file that ends in .csv, "
            ".parquet or .json, or one question (`--question NAME`)"
        )


def measure(fits: QuestionFits, truth: str, read: ReadOptions) -> dict[str, dict[str, float]]:
    """Return the metrics of each question that has known truths."""
    from annotruth.api import evaluate
    from annotruth.questions.reading import question_named_in_errors, split_by_question

    metrics = {}
    for name, rows in split_by_question(truth, fits.questions, "truth", read.max_size).items():
        with question_named_in_errors(name):
            metrics[name] = evaluate(fits[name], rows, scores=read.scale == "ordinal")
    return metrics


def print_questions(
    fits: QuestionFits,
    metrics: Mapping[str, Mapping[str, float]],
    lines: Sequence[str],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the summary, the metrics and further lines; or one JSON object."""
    if as_json:
        entries: dict[str, Any] = {name: json_entries(fits[name]) for name in fits}
        for name, measured in metrics.items():
            entries[name]["metrics"] = {key: finite(value) for key, value in measured.items()}
        found = {"questions": entries, "sharing": fits.sharing.to_dict()}
        typer.echo(json.dumps(found, default=str))
    elif not quiet:
        console.show_lines(fits.summary())
        for name, measured in metrics.items():
            console.show_lines(f"{name}, {describe_metrics(measured)}")
        console.show_lines(lines)
