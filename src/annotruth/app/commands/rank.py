"""`annotruth rank`: rank items by a file of pair comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from annotruth.app import console, named_files, values
from annotruth.app.console import print_result
from annotruth.app.outputs import Outputs, advice_arguments

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


def rank(
    *,
    context: typer.Context,
    votes: list[str],
    model: str | None = None,
    by: str | None = None,
    beside: str | None = None,
    read: ReadOptions,
    truth: str | None = None,
    settings: list[str] | None = None,
    analyses: dict[str, Any],
    outputs: Outputs,
    as_json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Rank items by pair comparisons: who is first, and how sure is that.

    With `--out`, write tables: the score and rank of every item with intervals, the reliability and
    behavior of every annotator, and the probability that each comparison was serious.

    **Examples**

        annotruth rank votes.csv --out result --report ranking.html

        annotruth rank arena.jsonl --columns annotator=judge_id

        annotruth rank votes.csv --save ranking

        annotruth rank arena.jsonl --by language --report ranking.html

        annotruth rank votes.csv --covariates length_difference --json

        annotruth rank votes.csv --machine gpt-4 --report ranking.html

        annotruth rank votes.csv --truth grades.csv --model bradley-terry

        annotruth rank arena.jsonl --preferences training.parquet
    """
    model_options = values.parse_model_options(settings)
    outputs.check(
        {
            "VOTES": named_files.input_files(votes),
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
            progress=progress,
            read=read,
            **analyses,
            **model_options,
        )
        fit = outputs.priced(fit)
        metrics = None if truth is None else api.evaluate(fit, truth, max_size=read.max_size)
        arguments = advice_arguments(votes, context, outputs.save)
        written = outputs.write(
            fit,
            progress,
            source=named_files.heading(votes),
            arguments=arguments,
            truth=truth,
            quiet=quiet,
        )
        first = outputs.first_lines(fit, progress, arguments, shown=not (quiet or as_json))
    print_result(
        fit,
        metrics,
        written.lines,
        as_json=as_json,
        quiet=quiet,
        verbose=verbose,
        first=first,
    )
    written.raise_failures()
