"""`annotruth next`: which items need labels, how many, whom to ask and whom to drop."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annotruth.app import named_files, options
from annotruth.app.named_files import check_existing, check_out
from annotruth.app.output_flags import ForceOption, LabelStudioOption, PredictionsOption
from annotruth.app.outputs import Paths, check_predictions, write_out, write_predictions
from annotruth.errors import InputError, counted

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.analyses.advice.advice import Advice
    from annotruth.io.tasks import TaskFormat
    from annotruth.observations.options import ReadOptions

_MAX_ROWS = 10


@options.takes_read_options(without=("memory",))
def next_(
    *,
    data: options.FitOrLabels,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many labels to spend.",
            show_default="all that are worth it in this round",
        ),
    ] = None,
    model: options.ModelOption = None,
    read: ReadOptions,
    gold: options.GoldOption = None,
    annotator_prior: options.AnnotatorPriorOption = None,
    settings: options.SettingsOption = None,
    out: Annotated[
        Path | None, options.out_option("items, annotators and assignments", first="items")
    ] = None,
    keep: options.KeepOption = None,
    assign: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write who should label which item here: .csv or .parquet (item, annotator), "
            ".json (tasks for Label Studio) or .jsonl (tasks for Prodigy).",
        ),
    ] = None,
    assign_format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The format of --assign: csv, parquet, label-studio, prodigy or mturk.",
            show_default="by the end of FILE",
        ),
    ] = None,
    predictions: PredictionsOption = None,
    label_studio: LabelStudioOption = None,
    force: ForceOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """List which items need labels, whom to ask and whom to drop.

    Takes the folder of a saved fit, or labels, which it fits first. A label is worth as much as it
    is expected to bring an item's distribution closer to the truth; an item on which annotators
    are known to be divided needs no more labels. Ask in rounds: new labels change the advice.

    Of a saved ranking or a file of pair comparisons, list which pairs to compare next and whom to
    ask: those whose comparison is expected to make the order of the items most certain.

    **Examples**

        annotruth next labels.csv

        annotruth next labels.csv --budget 500 --out next.csv --keep people.csv

        annotruth next fit --assign tasks.json

        annotruth next fit --assign batch.csv --assign-format mturk

        annotruth fit labels.csv --save fit && annotruth next fit

        annotruth next answers.csv --scale nominal --gold known.csv --json

        annotruth next ranking --budget 100
    """
    from annotruth.app import console

    outputs = _NextOutputs(
        out=out,
        keep=keep,
        assign=assign,
        task_format=_task_format(assign, assign_format),
        predictions=predictions,
        label_studio=label_studio,
    )
    known = {"--gold": gold, "--annotator-prior": annotator_prior}
    inputs = {flag: [path] for flag, path in known.items()}
    outputs.check({"FIT|LABELS": named_files.input_files(data), **inputs}, force=force)
    with (
        console.warnings_in_one_line(quiet=quiet),
        console.progress_line(quiet=quiet or as_json) as progress,
    ):
        from annotruth import advising, ranking  # slow to load
        from annotruth.analyses.advice.pairs.advice import PairAdvice
        from annotruth.app import pair_advice

        source = named_files.one_or_several(data)
        shared: dict[str, Any] = {"model": model, "progress": progress, "read": read}
        shared |= options.parse_model_options(settings)

        def of_labels() -> Advice:
            return advising.next_labels(
                source, budget, gold=gold, annotator_prior=annotator_prior, **shared
            )

        def of_comparisons() -> PairAdvice:
            pair_advice.check_assign_format(outputs.task_format)
            return ranking.next_comparisons(source, budget, **shared)

        of_labels_only = {**known, "--predictions": predictions}
        advice = pair_advice.choose_path(read, model, of_labels_only, of_labels, of_comparisons)
    if isinstance(advice, PairAdvice):
        pair_advice.write_pair_advice(advice, out=out, keep=keep, assign=assign)
        if as_json or not quiet:
            pair_advice.show_pair_advice(advice, as_json=as_json)
    else:
        assigned = None if assign is None else advice.assignment_table()
        outputs.write(advice, assigned)
        if as_json:
            typer.echo(json.dumps(_entries(advice, assigned)))
        elif not quiet:
            _show(advice, assigned)
    if not (as_json or quiet):
        for path in outputs.paths():
            console.show_lines(f"written to {path}")


@dataclass(frozen=True, kw_only=True)
class _NextOutputs:
    """The files that `annotruth next` writes, as the flags name them; None is nothing."""

    out: Path | None
    keep: Path | None
    assign: Path | None
    task_format: TaskFormat | None
    predictions: Path | None
    label_studio: str | None

    def check(self, inputs: Paths, *, force: bool) -> None:
        """Refuse outputs that would replace an input, another output or somebody else's file."""
        from annotruth.io import writers

        if self.keep is not None:
            writers.format_of(self.keep)
        check_predictions(self.predictions, self.label_studio)
        names = ("items", "annotators", "assignments", "comparisons")
        tables = {"--out": named_files.table_files(self.out, names=names)}
        files = self._files()
        named_files.check_outputs(inputs, tables | {flag: [path] for flag, path in files.items()})
        check_out(self.out, force=force)
        for flag, path in files.items():
            check_existing(flag, path, "file", force=force)

    def write(self, advice: Advice, assigned: pa.Table | None) -> None:
        """Write what is asked for; ``assigned`` is the table of assignments."""
        from annotruth.io import writers

        if self.out is not None:
            extra = {"fit.json": advice.fit.to_json()}
            write_out(advice.tables(), self.out, extra=extra, safe_cells=True)
        if self.keep is not None:
            verdicts = advice.of_annotators.table(advice.fit)
            writers.write_table(verdicts, self.keep, writers.format_of(self.keep), safe_cells=True)
        if self.assign is not None:
            assert self.task_format is not None
            _write_assignments(advice, assigned, self.assign, self.task_format)
        if self.predictions is not None:
            write_predictions(advice.fit, self.predictions, self.label_studio)

    def paths(self) -> list[Path]:
        """Return the paths that are written."""
        return [path for path in (self.out, *self._files().values()) if path is not None]

    def _files(self) -> dict[str, Path | None]:
        return {"--keep": self.keep, "--assign": self.assign, "--predictions": self.predictions}


def _task_format(assign: Path | None, name: str | None) -> TaskFormat | None:
    """Return the format of ``--assign``; None where it is not given."""
    if assign is not None:
        from annotruth.io.tasks import task_format

        return task_format(assign, name)
    if name is not None:
        raise InputError("--assign-format needs --assign FILE")
    return None


def _entries(advice: Advice, assigned: pa.Table | None) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    entries = advice.to_dict()
    if assigned is not None:
        entries["unassigned"] = assigned["annotator"].null_count
    return entries


def _write_assignments(advice: Advice, assigned: pa.Table, path: Path, format: TaskFormat) -> None:
    """Write the table of assignments, or tasks for a labelling tool."""
    from annotruth.io.tasks import write_tasks
    from annotruth.io.writers import write_table

    if format == "csv" or format == "parquet":
        write_table(assigned, path, format, safe_cells=True)
    else:
        write_tasks(advice.tasks(), path, format)


def _show(advice: Advice, assigned: pa.Table | None) -> None:
    """Print the summary, and the first rows of the tables."""
    from annotruth.app import console

    console.show_lines(advice.summary())
    if advice.fit.is_void:
        return
    if advice.n_add:
        console.show_lines("")
        to_label = _to_label(advice.item_table())
        console.show_table("Items with the highest gain", to_label, max_rows=_MAX_ROWS)
    console.show_lines("")
    people = advice.annotator_table().sort_by([("information", "ascending")])
    shown = people.select([*people.column_names[:4], "information"])  # reasons are too long
    console.show_table("Annotators, least informative first", shown, max_rows=_MAX_ROWS)
    if assigned is not None and len(assigned):
        console.show_lines("")
        console.show_table("Assignments, highest gain first", assigned, max_rows=_MAX_ROWS)
        if missing := assigned["annotator"].null_count:
            why = advice.of_annotators.why_nobody("labelled the item")
            console.show_lines(f"{counted(missing, 'label')} without an annotator: {why}")


def _to_label(items: pa.Table) -> pa.Table:
    """Return the items that get labels, the highest gain first."""
    import pyarrow.compute as pc

    some = items.filter(pc.greater(items["add"], 0)).sort_by([("gain", "descending")])
    # Tables are printed with two digits, which are too few for gains.
    gain = [f"{value:.3f}" for value in some["gain"].slice(0, _MAX_ROWS).to_pylist()]
    gain += [""] * (some.num_rows - len(gain))
    return some.set_column(some.column_names.index("gain"), "gain", [gain]).select(
        ["item", "n_labels", "add", "gain", "why"]
    )
