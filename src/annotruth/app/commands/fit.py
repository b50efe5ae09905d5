"""`annotruth fit`: fit a model to a file of labels."""

from __future__ import annotations

from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from annotruth.app import options
from annotruth.app.outputs import Outputs, print_result, takes_outputs
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.io.options import ReadOptions
    from annotruth.models.distributed_fit import DistributedFit


class EngineChoice(StrEnum):
    """Where passes over the labels run.

    Examples
    --------
    >>> [choice.value for choice in EngineChoice]
    ['memory', 'spark']
    """

    memory = "memory"
    spark = "spark"


@options.takes_read_options()
@takes_outputs()
def fit(
    *,
    labels: Annotated[
        str,
        typer.Argument(
            metavar="LABELS",
            help=f"{options.LABELS_HELP} With --engine spark also a folder, or a table by name.",
        ),
    ],
    model: options.ModelOption = None,
    read: ReadOptions,
    gold: options.GoldOption = None,
    annotator_prior: options.AnnotatorPriorOption = None,
    truth: options.TruthOption = None,
    settings: options.SettingsOption = None,
    outputs: Outputs,
    engine: Annotated[
        EngineChoice, typer.Option(help="Where the passes over the labels run.")
    ] = EngineChoice.memory,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Spark runs: local[4], spark://host:7077, yarn, or sc://host for Connect.",
            show_default="as Spark is configured, else this machine",
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A folder that all of Spark's machines can reach."),
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Fit a model to a file of labels and print a summary.

    With `--out`, write tables: the distribution of every item, the reliability of every annotator,
    and the probability that each label was serious.

    **Examples**

        annotruth fit labels.csv --out result --report report.html

        annotruth fit labels.csv --model auto

        annotruth fit votes.csv --scale ordinal --truth mos.csv --json

        annotruth fit ratings.csv --columns item=film,annotator=user,label=stars

        annotruth fit words.csv --categories "bad,fair,good" --set tol=1e-8

        annotruth fit label-studio.json --question sentiment --soft targets.npz --keep people.csv

        annotruth fit labels.csv --soft targets.csv --soft-readout opinion

        annotruth fit sliders.csv --bins 10

        annotruth fit huge.parquet --memory 1GB --out result --format parquet

        annotruth fit labels.csv --model gpm --save fit

        annotruth fit crowd.labels --engine spark --master yarn --storage hdfs:///tmp --out result
    """
    from annotruth.api import evaluate
    from annotruth.api import fit as fit_labels
    from annotruth.app import console

    model_options = options.parse_settings(settings)
    if engine is EngineChoice.spark:
        from annotruth.app import on_spark

        on_spark.check_options({"--truth": truth, **outputs.local_only()}, outputs.format_.value)
        if outputs.safe_cells:
            raise InputError("--safe-cells is not for tables that Spark writes: leave it out")
        model_options["engine"] = on_spark.make_engine(master, storage)
    elif master is not None or storage is not None:
        raise InputError("--master and --storage need --engine spark")
    outputs.check(
        {
            "LABELS": [labels],
            "--gold": [gold],
            "--truth": [truth],
            "--annotator-prior": [annotator_prior],
        }
    )
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        result = fit_labels(
            labels,
            model,
            gold=gold,
            annotator_prior=annotator_prior,
            read=read,
            progress=progress,
            **model_options,
        )
    if engine is EngineChoice.spark:
        with closing(cast("DistributedFit", result)) as distributed:
            lines = []
            if outputs.out is not None:
                on_spark.write_tables(distributed, outputs.out, outputs.format_.value)
                lines = [f"written to {outputs.out}"]
            print_result(distributed, None, lines, as_json=as_json, quiet=quiet)
        return
    scores = read.scale == "ordinal"
    metrics = (
        None if truth is None else evaluate(result, truth, scores=scores, max_size=read.max_size)
    )
    written = outputs.write(result, source=Path(labels).name, quiet=quiet)
    print_result(result, metrics, written.lines, as_json=as_json, quiet=quiet)
    written.raise_failures()
