"""`annotruth rank`: rank items by a file of pair comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annotruth.app import named_files, options
from annotruth.app.console import finite, print_result
from annotruth.app.outputs import RANK_OUTPUTS, Outputs, advice_arguments, takes_outputs
from annotruth.app.read_flags import RANK_READ_FLAGS
from annotruth.errors import InputError
from annotruth.models.pairs.registry import DEFAULT_PAIR_MODEL, PAIR_MODELS

if TYPE_CHECKING:
    from annotruth.models.result import RankFit
    from annotruth.observations.options import ReadOptions


class RankEngineChoice(StrEnum):
    """Where passes over the votes run."""

    memory = "memory"
    gpu = "gpu"
    spark = "spark"


@options.takes_read_options(RANK_READ_FLAGS)
@takes_outputs(RANK_OUTPUTS)
def rank(
    *,
    context: typer.Context,
    votes: Annotated[
        list[str],
        typer.Argument(
            metavar="VOTES",
            help="Comparisons with columns left, right, annotator, winner (left, right, tie, or the "
            "item); or winner, loser, annotator; or what an arena, crowd-kit or a platform exports; "
            "in the file formats of `annotruth fit`, also several files. Or the folder of a saved "
            "ranking, whose comparisons are fitted again.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(PAIR_MODELS)}.",
            show_default=DEFAULT_PAIR_MODEL,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="The number of taste groups of annotators, each with scores of its own; auto "
            "chooses it by held-out comparisons.",
            show_default="1",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of VOTES, such as category or language: one board per value, those with few "
            "votes drawn towards all, and where the order differs.",
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to show beside the scores: the name that two columns of numbers have in common, such "
            "as cost of cost_a and cost_b.",
        ),
    ] = None,
    read: ReadOptions,
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Known grades (item, grade; higher is better) to measure the ranking against.",
        ),
    ] = None,
    settings: options.SettingsOption = None,
    machines: options.MachinesOption = None,
    machine_margin: options.MachineMarginOption = None,
    warm_start: Annotated[
        Path | None,
        typer.Option(
            metavar="FIT",
            help="Start from the parameters of this saved ranking, with its model and options "
            "unless others are given; VOTES are all votes again.",
        ),
    ] = None,
    outputs: Outputs,
    engine: Annotated[
        RankEngineChoice,
        typer.Option(
            help="Where the passes over the votes run: on this machine, on an NVIDIA card, or on Spark."
        ),
    ] = RankEngineChoice.memory,
    master: options.MasterOption = None,
    storage: options.StorageOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
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
    from annotruth.app import console

    model_options = options.parse_model_options(settings)
    if groups is not None and "n_groups" in model_options:
        raise InputError("--groups and --set n_groups say the same: leave out one of them")
    model_options |= _groups(groups)
    model_options |= options.engine_option(engine.value, master, storage)
    outputs.check(
        {
            "VOTES": named_files.input_files(votes),
            "--warm-start": named_files.saved_files(warm_start),
            "--truth": [truth],
        }
    )
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
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
        metrics = None
        if truth is not None:
            metrics = api.evaluate(fit, truth, max_size=read.max_size)
        written = outputs.write(
            fit,
            progress,
            source=named_files.heading(votes),
            arguments=advice_arguments(votes, context, outputs.save),
            truth=truth,
            quiet=quiet,
        )
    print_result(
        fit, metrics, written.lines, as_json=as_json, quiet=quiet, entries=rank_entries(fit)
    )
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
