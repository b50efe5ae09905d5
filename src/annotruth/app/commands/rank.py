"""`annotruth rank`: rank items by a file of pair comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from annotruth.app import console, named_files, values
from annotruth.app.console import print_result
from annotruth.app.outputs import Outputs, advice_arguments
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


def rank(
    *,
    context: typer.Context,
    votes: list[str],
    model: str | None = None,
    groups: str | None = None,
    by: str | None = None,
    beside: str | None = None,
    read: ReadOptions,
    truth: str | None = None,
    settings: list[str] | None = None,
    analyses: dict[str, Any],
    warm_start: Path | None = None,
    outputs: Outputs,
    engine: Literal["memory", "spark"] = "memory",
    master: str | None = None,
    storage: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Rank items by pair comparisons and print a summary.

    With `--out`, write tables: the score and rank of every item with intervals, the reliability and
    behavior of every annotator, and the probability that each comparison was serious.

    **Examples**

        annotruth rank votes.csv --out result --report ranking.html

        annotruth rank arena.jsonl --columns annotator=judge_id

        annotruth rank votes.csv --groups auto --save ranking

        annotruth rank arena.jsonl --by language --report ranking.html

        annotruth rank votes.csv --covariates length_difference --json

        annotruth rank votes.csv --machine gpt-4 --report ranking.html

        annotruth rank votes.csv --truth grades.csv --model bradley-terry

        annotruth rank huge.parquet --memory 1GB --out result --format parquet

        annotruth rank arena.jsonl --preferences training.parquet

        annotruth rank votes.parquet --model crowd-bt --engine spark --master yarn
    """
    model_options = values.parse_model_options(settings)
    if groups is not None and "n_groups" in model_options:
        raise InputError("--groups and --set n_groups say the same: leave out one of them")
    if groups is not None:
        model_options["n_groups"] = _parse_groups(groups)
    model_options |= values.engine_option(engine, master, storage)
    outputs.check(
        {
            "VOTES": named_files.input_files(votes),
            "--warm-start": named_files.saved_files(warm_start),
            "--truth": [truth],
        }
    )
    with console.running(quiet=quiet, as_json=as_json) as progress:
        from annotruth import api, ranking  # slow to load

        fit = ranking.rank(
            named_files.one_or_several(votes),
            model,
            by=by,
            beside=beside,
            warm_start=warm_start,
            progress=progress,
            read=read,
            **analyses,
            **model_options,
        )
        metrics = None if truth is None else api.evaluate(fit, truth, max_size=read.max_size)
        written = outputs.write(
            fit,
            progress,
            source=named_files.heading(votes),
            arguments=advice_arguments(votes, context, outputs.save),
            truth=truth,
            quiet=quiet,
        )
    print_result(fit, metrics, written.lines, as_json=as_json, quiet=quiet)
    written.raise_failures()


def _parse_groups(text: str) -> str | int:
    """Return the number of taste groups, or "auto"."""
    if text != "auto" and not (text.isdecimal() and int(text) > 0):
        raise InputError(f"--groups takes a number of groups or auto, not {text!r}")
    return text if text == "auto" else int(text)
