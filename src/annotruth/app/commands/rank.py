"""`annotruth rank`: rank items by a file of pair comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from annotruth.app import console, named_files, values
from annotruth.app.console import finite, print_result
from annotruth.app.outputs import Outputs, advice_arguments
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.models.result import RankFit
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
    machines: list[str] | None = None,
    machine_margin: float | None = None,
    warm_start: Path | None = None,
    outputs: Outputs,
    engine: Literal["memory", "gpu", "spark"] = "memory",
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

        annotruth rank votes.parquet --model bradley-terry --engine gpu

        annotruth rank votes.parquet --model crowd-bt --engine spark --master yarn
    """
    model_options = values.parse_model_options(settings)
    if groups is not None and "n_groups" in model_options:
        raise InputError("--groups and --set n_groups say the same: leave out one of them")
    model_options |= _groups(groups)
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
            machines=machines or (),
            machine_margin=machine_margin,
            by=by,
            beside=beside,
            warm_start=warm_start,
            progress=progress,
            read=read,
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
    entries = rank_entries(fit)
    print_result(fit, metrics, written.lines, as_json=as_json, quiet=quiet, entries=entries)
    written.raise_failures()


def _groups(text: str | None) -> dict[str, Any]:
    """Return the model's option for taste groups."""
    if text is None:
        return {}
    if text != "auto" and not (text.isdecimal() and int(text) > 0):
        raise InputError(f"--groups takes a number of groups or auto, not {text!r}")
    return {"n_groups": text if text == "auto" else int(text)}


def rank_entries(fit: RankFit) -> Mapping[str, Any]:
    """Return the object that ``rank --json`` prints."""
    return {
        "model": fit.model,
        "n_items": fit.data.n_items,
        "n_annotators": fit.data.n_annotators,
        "n_comparisons": fit.data.n_comparisons,
        "n_iter": fit.n_iter,
        "converged": fit.converged,
        "stop_reason": fit.stop_reason,
        "log_likelihood": finite(fit.log_likelihood),
        "spammers": fit.n_spammers,
        "verdict": fit.verdict,
        "parts": fit.n_parts,
        "side_bias": None if fit.side_bias is None else fit.side_bias.tolist(),
        **fit.further_facts(),
    }
