"""`annotruth fit`: fit a model to a file of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from annotruth.app import console, named_files, values
from annotruth.app.console import describe_metrics, finite, json_entries, print_result
from annotruth.app.options import ALL_QUESTIONS
from annotruth.app.outputs import Outputs, advice_arguments
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.models.result import Fit
    from annotruth.observations.options import ReadOptions
    from annotruth.questions.result import QuestionFits


def fit(
    *,
    context: typer.Context,
    labels: list[str],
    model: str | None = None,
    read: ReadOptions,
    gold: str | None = None,
    annotator_prior: str | None = None,
    classifier: Path | None = None,
    analyses: dict[str, Any],
    truth: str | None = None,
    settings: list[str] | None = None,
    warm_start: Path | None = None,
    outputs: Outputs,
    engine: Literal["memory", "gpu", "auto", "spark"] = "memory",
    master: str | None = None,
    storage: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Fit a model to labels: can they be trusted, and what to do next.

    With `--out`, write tables: the distribution of every item, the reliability of every annotator,
    and the probability that each label was serious.

    **Examples**

        annotruth fit labels.csv --out result --report report.html

        annotruth fit labels.csv --out results.xlsx --price 0.05

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
    several, on_spark = read.question == ALL_QUESTIONS, engine == "spark"
    if several:
        _check_several(outputs, engine)
    if on_spark:
        _check_distributed(labels, read, truth, outputs)
    book = next(filter(named_files.is_workbook, (outputs.out, outputs.keep)), None)
    if book is not None and read.memory is not None:
        raise InputError(f"{book}: a workbook needs all labels in memory: leave out --memory")
    model_options = values.parse_model_options(settings)
    model_options |= values.engine_option(engine, master, storage)
    outputs.check(
        {
            "LABELS": named_files.input_files(labels),
            "--warm-start": named_files.saved_files(warm_start),
            "--gold": [gold],
            "--truth": [truth],
            "--annotator-prior": [annotator_prior],
            "--classifier": [classifier],
            "--annotators": [analyses["annotators"]],
        },
        several_questions=several,
    )
    with console.running(quiet=quiet, as_json=as_json) as progress:
        from annotruth.api import fit as fit_labels  # slow to load

        result: Any = fit_labels(
            named_files.one_or_several(labels),
            model,
            gold=gold,
            annotator_prior=annotator_prior,
            classifier=classifier,
            warm_start=warm_start,
            read=read,
            progress=progress,
            **analyses,
            **model_options,
        )
        if not on_spark:
            result = outputs.priced(result)
            measure = _measure_questions if several else _measure
            metrics: Any = None if truth is None else measure(result, truth, read)
            arguments = advice_arguments(labels, context, outputs.save)
            written = outputs.write(
                result,
                progress,
                source=named_files.heading(labels),
                arguments=arguments,
                truth=truth,
                quiet=quiet,
            )
            first = outputs.first_lines(
                result, progress, arguments, truth, shown=not (quiet or as_json)
            )
    if on_spark:
        _show_distributed(result, outputs, as_json=as_json, quiet=quiet)
        return
    if several:
        _show_questions(result, metrics or {}, written.lines, as_json=as_json, quiet=quiet)
    else:
        print_result(
            result,
            metrics,
            written.lines,
            as_json=as_json,
            quiet=quiet,
            verbose=verbose,
            first=first,
        )
    written.raise_failures()


def _measure(fit: Fit, truth: str, read: ReadOptions) -> dict[str, float]:
    from annotruth.api import evaluate

    scores = read.scale == "ordinal"
    return evaluate(fit, truth, scores=scores, separator=read.separator, max_size=read.max_size)


def _check_several(outputs: Outputs, engine: str) -> None:
    """Refuse an engine and outputs that several questions do not have, before labels are read."""
    if engine == "spark":
        raise InputError(
            "--question all is fitted on this machine: leave out --engine spark, or name a question"
        )
    for flag, path in (("--out", outputs.out), ("--keep", outputs.keep)):
        if named_files.is_workbook(path):
            raise InputError(f"{flag} {path}: a workbook is for one question (`--question NAME`)")
    if outputs.price is not None:
        raise InputError("--price is for one question: name it (`--question NAME`)")
    if outputs.predictions is not None:
        raise InputError("--predictions is for one question: name it (`--question NAME`)")
    if outputs.soft is not None and outputs.soft.suffix.lower() == ".npz":
        raise InputError(
            "the soft labels of several questions are a long table: name a file that ends in .csv, "
            ".parquet or .json, or one question (`--question NAME`)"
        )


def _measure_questions(
    fits: QuestionFits, truth: str, read: ReadOptions
) -> dict[str, dict[str, float]]:
    """Return the metrics of each question that has known truths."""
    from annotruth.api import evaluate
    from annotruth.questions.fitting import question_named_in_errors, split_by_question

    metrics = {}
    for name, rows in split_by_question(truth, fits.questions, "truth", read.max_size).items():
        with question_named_in_errors(name):
            metrics[name] = evaluate(fits[name], rows, scores=read.scale == "ordinal")
    return metrics


def _show_questions(
    fits: QuestionFits,
    metrics: Mapping[str, Mapping[str, float]],
    lines: Sequence[str],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    if as_json:
        entries: dict[str, Any] = {name: json_entries(fits[name]) for name in fits}
        for name, measured in metrics.items():
            entries[name]["metrics"] = {key: finite(value) for key, value in measured.items()}
        console.show_json({"questions": entries, "sharing": fits.sharing.to_dict()})
    elif not quiet:
        console.show_lines(fits.summary())
        for name, measured in metrics.items():
            console.show_lines(f"{name}, {describe_metrics(measured)}")
        console.show_lines(lines)


def _check_distributed(
    labels: list[str], read: ReadOptions, truth: str | None, outputs: Outputs
) -> None:
    """Refuse sources, options and outputs of a fit that need all items in memory."""
    given: dict[str, object] = {
        "--truth": truth,
        "--sets": read.sets or None,
        "--separator": read.separator,
        "--save": outputs.save,
        "--report": outputs.report,
        "--soft": outputs.soft,
        "--keep": outputs.keep,
        "--predictions": outputs.predictions,
        "--price": outputs.price,
    }
    for flag, value in given.items():
        if value is not None:
            raise InputError(f"{flag} needs all items in memory: leave it out with --engine spark")
    if named_files.is_workbook(outputs.out):
        raise InputError(f"--out {outputs.out}: Spark writes tables to a folder: name one")
    if outputs.format_ == "json":
        raise InputError("Spark writes csv or parquet: pass --format csv or --format parquet")
    if outputs.safe_cells:
        raise InputError("--safe-cells is not for tables that Spark writes: leave it out")
    if len(labels) > 1:
        raise InputError("--engine spark reads one source: name a folder of files, or a table")


def _show_distributed(fit: Fit, outputs: Outputs, *, as_json: bool, quiet: bool) -> None:
    """Write fit.json and the tables of a fit on Spark, in place of existing ones, and print it."""
    from annotruth.engines.spark.cluster import errors_in_one_line
    from annotruth.engines.spark.storage import SharedFolder

    with closing(fit):
        lines = []
        if outputs.out is not None:
            assert fit.frames is not None
            for name in fit.frames:
                with errors_in_one_line(f"cannot write {name} to {outputs.out}"):
                    writer = fit.frames[name].write.mode("overwrite").option("header", True)
                    path = f"{outputs.out}/{name}.{outputs.format_}"
                    writer.format(outputs.format_).save(path)
            with SharedFolder(outputs.out).create("fit.json") as file:
                file.write(fit.to_json().encode())
            lines = [f"results written to {outputs.out}"]
        print_result(fit, None, lines, as_json=as_json, quiet=quiet)
