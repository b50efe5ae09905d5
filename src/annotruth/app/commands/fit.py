"""`annotruth fit`: fit a model to a file of labels."""

from __future__ import annotations

from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annotruth.app import named_files, options
from annotruth.app.console import json_entries, print_result
from annotruth.app.outputs import Outputs, advice_arguments, takes_outputs

if TYPE_CHECKING:
    from annotruth.models.result import Fit
    from annotruth.observations.options import ReadOptions


class EngineChoice(StrEnum):
    """Where passes over the labels run."""

    memory = "memory"
    gpu = "gpu"
    auto = "auto"
    spark = "spark"


@options.takes_read_options()
@takes_outputs()
def fit(
    *,
    context: typer.Context,
    labels: Annotated[
        list[str],
        typer.Argument(
            metavar="LABELS",
            help=f"{options.LABELS_HELP} Or the folder of a saved fit, whose labels are fitted "
            "again. With --engine spark also a folder of files, or a table by name.",
        ),
    ],
    model: options.ModelOption = None,
    read: ReadOptions,
    gold: options.GoldOption = None,
    annotator_prior: options.AnnotatorPriorOption = None,
    classifier: options.ClassifierOption = None,
    annotators: options.TraitsOption = None,
    by: options.ByOption = None,
    machines: options.MachinesOption = None,
    machine_margin: options.MachineMarginOption = None,
    truth: options.TruthOption = None,
    settings: options.SettingsOption = None,
    warm_start: Annotated[
        Path | None,
        typer.Option(
            metavar="FIT",
            help="Start from the parameters of this saved fit, with its model, options and scale "
            "unless others are given; LABELS are all labels again, such as a later export.",
        ),
    ] = None,
    outputs: Outputs,
    engine: Annotated[
        EngineChoice,
        typer.Option(
            metavar="ENGINE",
            help="Where the passes over the labels run: memory (this machine), gpu (an NVIDIA card: "
            "gpm, dawid-skene and robust-gpm), auto (the faster of the two), or spark.",
        ),
    ] = EngineChoice.memory,
    master: options.MasterOption = None,
    storage: options.StorageOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Fit a model to a file of labels and print a summary.

    With `--out`, write tables: the distribution of every item, the reliability of every annotator,
    and the probability that each label was serious.

    **Examples**

        annotruth fit labels.csv --out result --report report.html

        annotruth fit labels.csv --model auto

        annotruth fit ratings.csv --scale ordinal --truth mos.csv --json

        annotruth fit ratings.csv --columns item=film,annotator=user,label=stars

        annotruth fit words.csv --categories "bad,fair,good" --set tol=1e-8

        annotruth fit label-studio.json --question sentiment --keep people.csv

        annotruth fit label-studio.json --question all --report report.html

        annotruth fit labels.csv --soft targets.csv --soft-readout opinion

        annotruth fit labels.csv --classifier probabilities.csv --soft targets.csv

        annotruth fit labels.csv --annotators people.csv --by gender --out result

        annotruth fit labels.csv --machine gpt-4 --machine llama-3

        annotruth fit sliders.csv --bins 10

        annotruth fit tags.csv --separator "|" --truth true-tags.csv

        annotruth fit huge.parquet --memory 1GB --out result --format parquet

        annotruth fit monday.csv tuesday.csv

        annotruth fit 'exports/*.json' --out result

        gzip -cd labels.csv.gz | annotruth fit -

        annotruth fit labels.csv --save fit && annotruth fit fit --model gpm

        annotruth fit all-labels.csv --warm-start fit --save fit2

        annotruth fit crowd.votes --engine spark --master yarn --storage hdfs:///tmp
    """
    from annotruth.app import console

    several = read.question == options.ALL_QUESTIONS
    if several:
        from annotruth.app import on_questions

        on_questions.check_options(outputs, engine.value)
    on_spark = engine is EngineChoice.spark
    if on_spark:
        from annotruth.app.on_spark import check_options

        check_options(labels, read, truth, outputs)
    model_options = options.parse_model_options(settings)
    model_options |= options.engine_option(engine.value, master, storage)
    outputs.check(
        {
            "LABELS": named_files.input_files(labels),
            "--warm-start": named_files.saved_files(warm_start),
            "--gold": [gold],
            "--truth": [truth],
            "--annotator-prior": [annotator_prior],
            "--classifier": [classifier],
            "--annotators": [annotators],
        },
        several_questions=several,
    )
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        from annotruth.api import fit as fit_labels  # slow to load

        result: Any = fit_labels(
            named_files.one_or_several(labels),
            model,
            gold=gold,
            annotator_prior=annotator_prior,
            classifier=classifier,
            annotators=annotators,
            by=by,
            machines=machines or (),
            machine_margin=machine_margin,
            warm_start=warm_start,
            read=read,
            progress=progress,
            **model_options,
        )
        if not on_spark:
            measure = on_questions.measure if several else _measure
            metrics: Any = None if truth is None else measure(result, truth, read)
            written = outputs.write(
                result,
                progress,
                source=named_files.heading(labels),
                arguments=advice_arguments(labels, context, outputs.save),
                truth=truth,
                quiet=quiet,
            )
    if on_spark:
        _show_distributed(result, outputs, as_json=as_json, quiet=quiet)
        return
    if several:
        on_questions.print_questions(
            result, metrics or {}, written.lines, as_json=as_json, quiet=quiet
        )
    else:
        entries = json_entries(result)
        print_result(result, metrics, written.lines, as_json=as_json, quiet=quiet, entries=entries)
    written.raise_failures()


def _measure(fit: Fit, truth: str, read: ReadOptions) -> dict[str, float]:
    """Return how a fit does against the truth."""
    from annotruth.api import evaluate

    scores = read.scale == "ordinal"
    return evaluate(fit, truth, scores=scores, separator=read.separator, max_size=read.max_size)


def _show_distributed(fit: Fit, outputs: Outputs, *, as_json: bool, quiet: bool) -> None:
    """Write the tables of a fit on Spark, print the result, and remove the files behind it."""
    from annotruth.app.on_spark import write_tables

    with closing(fit):
        lines = []
        if outputs.out is not None:
            write_tables(fit, outputs.out, outputs.format_.value)
            lines = [f"results written to {outputs.out}"]
        entries = json_entries(fit)
        print_result(fit, None, lines, as_json=as_json, quiet=quiet, entries=entries)
