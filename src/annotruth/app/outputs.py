"""What commands write: tables, saved fits, reports, soft labels, verdicts, tasks."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from annotruth.app import console, named_files, values
from annotruth.app.named_files import OutputKind, check_existing
from annotruth.bindings import bound_for
from annotruth.errors import AnnotruthError, InputError, OutputError, hide_credentials

if TYPE_CHECKING:
    import pyarrow as pa
    import typer
    from typing_extensions import TypeIs

    from annotruth.analyses.advice.advice import Advice
    from annotruth.analyses.advice.changes import Changes
    from annotruth.analyses.advice.pairs.advice import PairAdvice
    from annotruth.io.tasks import TaskFormat
    from annotruth.io.writers import LazyTable, TableFormat
    from annotruth.models.base_fit import Readout
    from annotruth.models.em import ProgressReporter
    from annotruth.models.result import Fit
    from annotruth.questions.result import QuestionFits
    from annotruth.report.sections import FirstLines

AnyFit: TypeAlias = "Fit[Any] | QuestionFits"
"""A fit of labels, of comparisons or of sets of labels, or the fits of several questions."""

Paths: TypeAlias = Mapping[str, Iterable[str | Path | None]]
"""Paths by the argument or flag that names them."""


_FILE_KINDS: Mapping[str, OutputKind] = {"--report": "page", "--keep": "verdicts"}

# Flags that change nothing without another one.
_NEEDED = {
    "title": "report",
    "soft_readout": "soft",
    "label_studio": "predictions",
    "assign_format": "assign",
}


class Written(NamedTuple):
    """What was written, and what was not."""

    lines: list[str]  # one per output that was written, with its path
    failures: list[str]  # one message per output that the model does not have

    def raise_failures(self) -> None:
        """Raise an error for what was not written, after everything else."""
        if self.failures:
            raise InputError("; ".join(self.failures))


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The files that a command writes; each is None where it is not asked for."""

    # the folder of tables, their file format, and whether CSV files are safe for spreadsheets
    out: str | None = None
    format_: TableFormat = "csv"
    safe_cells: bool = False
    price: float | None = None  # of one label, for the workbook
    save: Path | None = None  # the folder of the saved fit
    report: Path | None = None
    title: str | None = None  # the heading of the report
    # the soft labels, and what they are
    soft: Path | None = None
    soft_readout: Readout | None = None
    keep: Path | None = None  # the verdicts on annotators
    # the predictions for Label Studio, and the tag of its project that takes them
    predictions: Path | None = None
    label_studio: str | None = None
    preferences: Path | None = None  # those of a ranking, for training
    # who should label what, and its format where the name does not say it
    assign: Path | None = None
    assign_format: str | None = None
    force: bool = False  # whether existing files are replaced

    def of_labels_only(self) -> dict[str, object]:
        """Return the outputs that comparisons do not have, by flag."""
        return {"--soft": self.soft, "--predictions": self.predictions}

    @property
    def task_format(self) -> TaskFormat | None:
        """The format of ``--assign``; None where it is not given."""
        if self.assign is not None:
            from annotruth.io.tasks import task_format

            return task_format(self.assign, self.assign_format)
        return None

    def check(
        self,
        inputs: Paths,
        also: Paths | None = None,
        *,
        tables: Iterable[str] = named_files.TABLES,
        several_questions: bool = False,
    ) -> None:
        """Refuse outputs that would replace an input, another output or somebody else's file.

        ``inputs``, ``also``: the paths that the command reads, and further ones that it writes.
        ``tables``: the names of tables in the folder of ``--out``.
        ``several_questions``: whether the fits of several questions are saved.
        """
        from annotruth.io.workbook import check_workbook
        from annotruth.io.writers import check_suffix, format_of

        self._check_flags()
        if self.soft is not None:
            check_suffix(self.soft)
        books = [path for path in (self.out, self.keep) if named_files.is_workbook(path)]
        if self.price is not None and not (books or self.save or also):
            raise InputError("--price is for --out FILE.xlsx, or for a fit that is saved: name one")
        for path in books:
            check_workbook(cast("str | Path", path))
        for path in (self.keep, self.preferences):
            if path is not None and not (path is self.keep and named_files.is_workbook(path)):
                format_of(path)
        names = ("report", "soft", "keep", "assign", "predictions", "preferences")
        files = {f"--{name}": getattr(self, name) for name in names}
        written: dict[str, Sequence[str | Path | None]] = {
            "--out": named_files.table_files(self.out, self.format_, tables),
            "--save": named_files.saved_files(self.save),
            **{flag: [path] for flag, path in files.items()},
        }
        named_files.check_outputs(inputs, {**(also or {}), **written})
        named_files.check_out(self.out, force=self.force, advice="assignments" in tables)
        saved: OutputKind = "questions" if several_questions else "fit"
        check_existing("--save", self.save, saved, force=self.force)
        for flag, path in files.items():
            check_existing(flag, path, _FILE_KINDS.get(flag, "file"), force=self.force)

    def _check_flags(self) -> None:
        """Refuse flags that change nothing, or names that a platform does not have."""
        _ = self.task_format
        for flag, needed in _NEEDED.items():
            if getattr(self, flag) and getattr(self, needed) is None:
                raise InputError(f"--{flag.replace('_', '-')} needs --{needed} FILE")
        one_file = named_files.is_table_file(self.out)
        if self.format_ != "csv" and (self.out is None or one_file):
            raise InputError(
                f"--format {self.format_} is for the tables of --out DIR, and the name of a file "
                "says its format: leave it out, or name a folder"
            )
        if self.price is not None:
            from annotruth.observations.options import Campaign

            Campaign(price=self.price)  # refuses what is no price
        written = [self.soft, Path(self.out) if self.out is not None and one_file else None]
        as_csv = [path for path in written if path is not None and path.suffix.lower() == ".csv"]
        in_folder = self.out is not None and not one_file and self.format_ == "csv"
        if self.safe_cells and not as_csv and not in_folder:
            raise InputError(
                "--safe-cells is for CSV files of --out and --soft: name one, or leave it out"
            )
        if self.predictions is not None:
            from annotruth.io.tasks import LabelControl, check_predictions_path

            check_predictions_path(self.predictions)
            LabelControl.parse(values.parse_pairs(self.label_studio, "--label-studio"))

    def write(
        self,
        fit: AnyFit,
        progress: ProgressReporter,
        *,
        source: str,
        arguments: str | None = None,
        truth: str | None = None,
        changes: Changes | None = None,
        quiet: bool,
    ) -> Written:
        """Write everything that is asked for.

        The fit is saved last, so that a command that fails can be repeated. ``source``,
        ``arguments``, ``truth`` and ``changes`` are for the report, as in `Fit.report`.
        """
        written = Written([], [])
        further: dict[str, Any] = {"arguments": arguments, "title": self.title}
        if fit.kind == "labels":
            further["changes"] = changes
        if self.out is not None and named_files.is_workbook(self.out):
            progress.start("writing the workbook")
            _one_fit(fit).write(self.out, source=source)
            written.lines.append(f"workbook written to {self.out}")
        elif self.out is not None:
            progress.start("writing tables")
            extra = {"fit.json": fit.to_json()}
            safe = self.safe_cells
            write_out(fit.tables(), self.out, self.format_, extra=extra, safe_cells=safe)
            written.lines.append(f"results written to {self.out}")
        if self.soft is not None:
            progress.start("writing soft labels")
            with _noted("soft", "soft labels", self.soft, written):
                self._write_soft_labels(fit, self.soft)
        if self.keep is not None:
            progress.start("writing verdicts on annotators")
            with _noted("keep", "verdicts on annotators", self.keep, written):
                if named_files.is_workbook(self.keep):
                    _one_fit(fit).write(self.keep, source=source, sheets=("Decisions",))
                else:
                    _write_for_people(fit.verdict_table(), self.keep)
        if self.preferences is not None and not is_questions(fit):
            with _noted("preferences", "preferences", self.preferences, written):
                _write_for_people(fit.table("preferences"), self.preferences)
        if self.predictions is not None:
            with _noted("predictions", "predictions", self.predictions, written):
                write_predictions(_of_labels(fit), self.predictions, self.label_studio)
        if self.report is not None:
            progress.start("writing report")
            fit.report(self.report, source=source, truth=truth, command=typed_command(), **further)
            written.lines.append(f"report written to {self.report}")
        if self.save is not None:
            progress.start("saving the fit")
            save_fit(fit, self.save, quiet=quiet)
            written.lines.append(f"fit saved to {self.save}")
        return written

    @staticmethod
    def first_lines(
        fit: AnyFit,
        progress: ProgressReporter,
        arguments: str,
        truth: str | None = None,
        *,
        shown: bool,
    ) -> FirstLines | None:
        """Return what a command says first of a fit, if anything is shown and reports have it."""
        if not shown or fit.kind not in ("labels", "comparisons"):
            return None
        progress.start("assessing the results")
        found: FirstLines = bound_for(fit.kind, "first_lines")(fit, arguments, truth)
        return found

    def priced(self, fit: AnyFit) -> Any:
        """Return a fit that remembers the price of a label, if one is given."""
        if self.price is None or is_questions(fit):
            return fit
        return replace(fit, campaign=replace(fit.campaign, price=self.price))

    def write_advice(
        self, advice: Advice | PairAdvice, assigned: pa.Table | None, source: str
    ) -> list[Path]:
        """Write what is asked for of advice; return the paths.

        ``assigned`` is the table of assignments, if they are asked for; ``source`` names the labels.
        """
        from annotruth.io import tasks

        of_labels = cast("Advice", advice) if hasattr(advice, "of_items") else None
        fit = self.priced(advice.fit)
        for path, sheets in ((self.out, None), (self.keep, ("Decisions",))):
            if path is not None and named_files.is_workbook(path):
                fit.write(path, source=source, advice=advice, sheets=sheets)
        if self.out is not None and not named_files.is_workbook(self.out):
            extra = {"fit.json": fit.to_json()}
            write_out(advice.tables(), self.out, extra=extra, safe_cells=True)
        if self.keep is not None and not named_files.is_workbook(self.keep):
            _write_for_people(advice.of_annotators.table(advice.fit), self.keep)
        if self.assign is not None:
            format = self.task_format
            if of_labels is None or format in ("csv", "parquet"):
                kind = None if of_labels is None else cast("TableFormat", format)
                _write_for_people(assigned, self.assign, kind)
            else:
                tasks.write_tasks(of_labels.tasks(), self.assign, cast("TaskFormat", format))
        if self.predictions is not None and of_labels is not None:
            write_predictions(of_labels.fit, self.predictions, self.label_studio)
        named = (self.out, self.keep, self.assign, self.predictions)
        return [Path(path) for path in named if path is not None]

    def _write_soft_labels(self, fit: AnyFit, path: Path) -> None:
        from annotruth.io.writers import format_of, write_soft_labels, write_table

        if is_questions(fit):
            table = fit.distribution_table(self.soft_readout)
            write_table(table, path, format_of(path), safe_cells=self.safe_cells)
            return
        targets, scale = fit.soft_label_table(self.soft_readout), fit.data.scale
        classes = scale.set_labels or scale.categories
        write_soft_labels(targets, classes, path, safe_cells=self.safe_cells)


def write_out(
    tables: Mapping[str, pa.Table | LazyTable],
    out: str | Path,
    format: TableFormat = "csv",
    *,
    extra: Mapping[str, str],
    safe_cells: bool,
) -> None:
    """Write the first table to the file that ``--out`` names, or all of them to the folder."""
    from annotruth.io.writers import format_of, write_table, write_tables

    if named_files.is_table_file(out):
        first = next(iter(tables.values()))
        write_table(first, out, format_of(out), safe_cells=safe_cells)
    else:
        write_tables(tables, out, format=format, extra=extra, safe_cells=safe_cells)


def _write_for_people(
    table: pa.Table | None, path: str | Path, format: TableFormat | None = None
) -> None:
    """Write a table with cells that a spreadsheet does not run."""
    from annotruth.io.writers import format_of, write_table

    write_table(table, path, format or format_of(path), safe_cells=True)


def write_predictions(fit: Fit, path: Path, label_studio: str | None) -> None:
    """Write the labels of a fit as predictions for Label Studio."""
    from annotruth.io import tasks
    from annotruth.models.base_fit import now

    names = values.parse_pairs(label_studio, "--label-studio")
    day = (fit.fitted_at or now()).date()
    tasks.write_predictions(
        fit.tables()["items"],
        fit.data.covariates.items,
        fit.data.scale,
        path,
        version=f"annotruth {fit.model} {day.isoformat()}",
        control=tasks.LabelControl.parse(names),
    )


def typed_command() -> str:
    """Return the command line as it was typed, for the heading of a report."""
    return shlex.join(["annotruth", *map(hide_credentials, sys.argv[1:])])


def advice_arguments(data: Iterable[str], context: typer.Context, saved: Path | None = None) -> str:
    """Return what to type after `annotruth next` and `annotruth plan` for advice on this fit.

    It is the folder of a saved fit; otherwise the data with those options of this command that both
    commands have, too, which make the same fit.
    """
    words = [str(saved)] if saved is not None else [*data, *_typed_options(context)]
    return shlex.join(map(hide_credentials, words))


def _typed_options(context: typer.Context) -> Iterator[str]:
    """Yield the words of typed options that the commands for advice have, too."""
    commands = cast(Any, context.find_root().command).commands
    names = [{each.name for each in commands[command].params} for command in ("next", "plan")]
    shared = set.intersection(*names) - {"as_json", "quiet"}
    for option in context.command.params:
        source = context.get_parameter_source(option.name)
        if option.name not in shared or source is None or source.name != "COMMANDLINE":
            continue
        if option.param_type_name == "option":
            value = context.params[option.name]
            for each in value if isinstance(value, list | tuple) else [value]:
                yield option.opts[0]
                if each is not True:
                    yield str(each)


def is_questions(fit: AnyFit) -> TypeIs[QuestionFits]:
    """Return whether these are the fits of several questions."""
    return fit.kind == "questions"


def _one_fit(fit: AnyFit) -> Fit[Any]:
    """Return a fit; refuse those of several questions."""
    if is_questions(fit):
        raise InputError("a workbook is for one question: name it (`--question NAME`)")
    return fit


def _of_labels(fit: AnyFit) -> Fit:
    """Return a fit of labels; refuse one of comparisons, for an output that only labels have."""
    if is_questions(fit) or fit.kind != "labels":
        what = "sets of labels" if fit.model == "sets" else "comparisons"
        raise InputError(f"this is a fit of {what}, which has none")
    return fit


def save_fit(fit: AnyFit, folder: Path, *, quiet: bool) -> None:
    """Save a fit; say so if another process is writing to the folder."""
    from annotruth.models.storage import locked

    with locked(folder, on_wait=console.waiting_line(folder, quiet=quiet)):
        fit.save(folder)


@contextmanager
def _noted(flag: str, what: str, path: Path, written: Written) -> Iterator[None]:
    """Note that an output was written, or that it was not because the model does not have it."""
    try:
        yield
    except OutputError:
        raise
    except AnnotruthError as error:
        written.failures.append(f"--{flag} {path} was not written: {error}")
    else:
        written.lines.append(f"{what} written to {path}")
