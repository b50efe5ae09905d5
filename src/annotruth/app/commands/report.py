"""`annotruth report`: the report of a saved fit, or of labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from annotruth.app import console, named_files, values
from annotruth.app.outputs import advice_arguments, typed_command

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


def report(
    *,
    context: typer.Context,
    data: list[str],
    model: str | None = None,
    read: ReadOptions,
    gold: str | None = None,
    annotator_prior: str | None = None,
    truth: str | None = None,
    settings: list[str] | None = None,
    page: Path = Path("report.html"),
    title: str | None = None,
    source: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Write the report of a saved fit, or of labels.

    A saved fit is not fitted again; labels are fitted first.

    **Examples**

        annotruth report fit --report report.html

        annotruth report labels.csv --truth truth.csv

        annotruth report fit --report report.pdf --title "Support tickets, May"
    """
    inputs = {"--gold": [gold], "--truth": [truth], "--annotator-prior": [annotator_prior]}
    named_files.check_outputs(
        {"FIT|LABELS": named_files.input_files(data), **inputs}, {"--report": [page]}
    )
    named_files.check_existing("--report", page, "page", force=force)
    with console.running(quiet=quiet) as progress:
        from annotruth import advising, api  # slow to load

        is_saved = len(data) == 1 and named_files.is_saved(Path(data[0]))
        found: Any = api.load(data[0]) if is_saved else named_files.one_or_several(data)
        known: dict[str, Any] = {"model": model, "gold": gold, "annotator_prior": annotator_prior}
        known |= values.parse_model_options(settings)
        if is_saved and found.kind != "labels":
            read.refuse_options_of_data("labels", **known)
        else:
            found = advising.fit_or_load(found, progress=progress, read=read, **known)
        progress.start("writing report")
        found.report(
            page,
            source=source or named_files.heading(data),
            title=title,
            truth=truth,
            command=typed_command(),
            arguments=advice_arguments(data, context),
        )
    if not quiet:
        console.show_lines(f"report written to {page}")
