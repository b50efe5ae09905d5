"""`annotruth report`: the report of a saved fit, or of labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotruth.app import named_files, options
from annotruth.app.named_files import check_existing
from annotruth.app.output_flags import EmbedOption, ForceOption
from annotruth.app.outputs import advice_arguments, refuse_embedding, typed_command

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


@options.takes_read_options(without=("memory",))
def report(
    *,
    context: typer.Context,
    data: options.FitOrLabels,
    model: options.ModelOption = None,
    read: ReadOptions,
    gold: options.GoldOption = None,
    annotator_prior: options.AnnotatorPriorOption = None,
    truth: options.TruthOption = None,
    settings: options.SettingsOption = None,
    page: Annotated[
        Path,
        # The report was written with --out in version 0.1.
        typer.Option("--report", metavar="FILE", help="Write the report here: one HTML file."),
    ] = Path("report.html"),
    out: Annotated[Path | None, typer.Option(hidden=True)] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The name of the labels in the heading.",
            show_default="the name of FIT|LABELS",
        ),
    ] = None,
    embed: EmbedOption = False,
    force: ForceOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Write the report of a saved fit, or of labels.

    A saved fit is not fitted again; labels are fitted first.

    **Examples**

        annotruth report fit --report report.html

        annotruth report labels.csv --truth truth.csv
    """
    from annotruth.app import console

    page = page if out is None else out
    inputs = {"--gold": [gold], "--truth": [truth], "--annotator-prior": [annotator_prior]}
    named_files.check_outputs(
        {"FIT|LABELS": named_files.input_files(data), **inputs}, {"--report": [page]}
    )
    check_existing("--report", page, "page", force=force)
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet) as progress,
    ):
        from annotruth import advising, api  # slow to load

        name, command = source or named_files.heading(data), typed_command()
        saved = (
            api.load(data[0]) if len(data) == 1 and named_files.is_saved(Path(data[0])) else None
        )
        if saved is not None and saved.kind != "labels":
            refuse_embedding(embed)
            read.refuse_options_of_data(
                "labels",
                model=model,
                gold=gold,
                annotator_prior=annotator_prior,
                **options.parse_model_options(settings),
            )
            progress.start("writing report")
            saved.report(
                page,
                source=name,
                truth=truth,
                command=command,
                arguments=advice_arguments(data, context),
            )
        else:
            fit = advising.fit_or_load(
                saved or named_files.one_or_several(data),
                model,
                gold=gold,
                annotator_prior=annotator_prior,
                progress=progress,
                read=read,
                **options.parse_model_options(settings),
            )
            progress.start("writing report")
            fit.report(
                page,
                source=name,
                truth=truth,
                command=command,
                arguments=advice_arguments(data, context),
                embed=embed,
            )
    if not quiet:
        console.show_lines(f"report written to {page}")
