"""Output of the command line: results to stdout, all else to stderr in single lines."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TextIO

from annotruth.errors import AnnotruthWarning, InputError, concise, printable, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.models.em import ProgressReporter
    from annotruth.models.result import Fit
    from annotruth.report.sections import FirstLines

_GAP = 2  # between columns, as Rich pads them
_MIN_COLUMN = 10  # characters
_STARTED = time.monotonic()  # the command
_BETWEEN_LINES = 10.0  # seconds


def print_error(message: object) -> None:
    """Print one line to stderr: an error or a warning."""
    _print(f"annotruth: {concise(str(message))}", sys.stderr)


def exit_interrupted() -> NoReturn:
    """Exit after Ctrl-C."""
    print_error("interrupted; no file was partly written")
    # If Ctrl-C came while Python executed a string, as for a dataclass, it ends the process by SIGINT in
    # place of the exit code, unless it has executed another string since.
    exec("")  # noqa: S102
    sys.exit(1)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; it is None if the caller closed it, as by `2>&-`."""
    return stream is not None and stream.isatty()


@contextmanager
def warnings_in_one_line(*, quiet: bool) -> Iterator[None]:
    """Show warnings of annotruth as single lines on stderr; with ``quiet`` show none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", AnnotruthWarning)
        yield
    if not quiet:
        # The metrics and the report match the same truths, and give the same warning.
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            print_error(f"warning: {message}")


@contextmanager
def progress_line(*, quiet: bool) -> Iterator[ProgressReporter]:
    """Show stages and iterations on one line of stderr; where that is no terminal, now and then in lines.

    Open it before slow imports, and close it before results are printed.
    """
    if quiet or not is_terminal(sys.stderr):
        from annotruth.models.em import ProgressReporter

        reporter = ProgressReporter()
        after = math.inf if quiet else _seconds_to_first_line()
        with nullcontext() if math.isinf(after) else _lines_now_and_then(reporter, after):
            yield reporter
        return
    from annotruth.app.progress import terminal_line

    with terminal_line(_STARTED) as line:
        yield line


def _seconds_to_first_line() -> float:
    given = os.environ.get("ANNOTRUTH_PROGRESS_SECONDS", "2")
    try:
        return max(0.0, float(given))
    except ValueError:
        raise InputError(
            f"ANNOTRUTH_PROGRESS_SECONDS is {shown(given)}: give a number of seconds"
        ) from None


@contextmanager
def _lines_now_and_then(reporter: ProgressReporter, after: float) -> Iterator[None]:
    """Print what a command is doing after some seconds, and then what is new every ten seconds."""
    ended = threading.Event()

    def show() -> None:
        before, wait = "", after
        while not ended.wait(wait):
            if (line := _progress_text(reporter, time.monotonic() - began)) != before:
                print_error(line)
            before, wait = line, _BETWEEN_LINES

    began = time.monotonic()
    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _progress_text(reporter: ProgressReporter, seconds: float) -> str:
    """Return the stage and its iteration; the limit of iterations is seldom reached."""
    stage, latest = reporter.stage or "starting", reporter.latest
    at = "" if latest is None else f": iteration {latest.n_iter:,} of at most {latest.max_iter:,}"
    return f"{stage}{at}, {seconds:.0f} s so far"


@contextmanager
def running(*, quiet: bool, as_json: bool = False) -> Iterator[ProgressReporter]:
    """Show warnings and progress of a command, unless it is quiet; with ``as_json`` no progress."""
    with warnings_in_one_line(quiet=quiet), progress_line(quiet=quiet or as_json) as progress:
        yield progress


def show_json(entries: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    _print(json.dumps(entries, default=str), sys.stdout)


def waiting_line(folder: object, *, quiet: bool) -> Callable[[], None] | None:
    """Return a function that says that another process is writing a fit."""
    message = f"waiting for another process that is writing {folder} ..."
    return None if quiet else partial(print_error, message)


def show_table(title: str, table: pa.Table, *, max_rows: int = 10, digits: int = 2) -> None:
    """Print the first rows of a table, numbers with the given number of decimals.

    Where the table is too wide, the widest columns are cut short.
    """
    import pyarrow as pa
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [
        [_cell(value, digits) for value in row.values()]
        for row in table.slice(0, max_rows).to_pylist()
    ]
    console = Console(highlight=False, soft_wrap=True)
    grid = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    widths = [max(map(cell_len, cells)) for cells in zip(table.column_names, *rows, strict=True)]
    gaps = _GAP * (len(widths) - 1)
    limit = max(_MIN_COLUMN, console.width)
    while limit > _MIN_COLUMN and sum(min(width, limit) for width in widths) + gaps > console.width:
        limit -= 1
    widths = [min(width, limit) for width in widths]
    console.width = max(console.width, sum(widths) + gaps)  # in less, Rich omits columns
    for name, column, width in zip(table.column_names, table.columns, widths, strict=True):
        numeric = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        grid.add_column(Text(name), justify=justify, width=width, no_wrap=True)
    for row in rows:
        grid.add_row(*map(Text, row))
    if table.num_rows > max_rows:
        grid.caption = f"{table.num_rows - max_rows:,} more"
        grid.caption_justify = "left"
    console.print(grid)


def show_lines(lines: str | Sequence[str]) -> None:
    """Print lines, with control characters written as escapes."""
    for text in [lines] if isinstance(lines, str) else lines:
        for line in text.split("\n"):
            _print(printable(line), sys.stdout)


def _print(line: str, stream: TextIO | None) -> None:
    if stream is None:  # closed by the caller; print would take stdout instead
        return
    # Typer's echo writes UTF-8 to a terminal that has only ASCII.
    print(line, file=stream, flush=True)


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}f}" if isinstance(value, float) else printable(str(value))


_COLORS = {"good": "32", "fair": "33", "bad": "31", "command": "1"}  # of terminals
# What begins the lines of a summary on the computation, which few read.
_ON_COMPUTATION = ("converged after ", "log-likelihood ")


def show_first_lines(first: FirstLines) -> None:
    """Print the first screen of a report, its verdict and the next command in color on a terminal."""
    trust = first.trust
    word = f"{_colored(trust.word, trust.tone)}{'.' if trust.sentence else ''}"
    _print(f"{first.question} {word} {printable(trust.sentence)}".strip(), sys.stdout)
    show_lines(first.lines)
    if first.next:
        _print(f"Next: {_colored(printable(first.next), 'command')}", sys.stdout)
    show_lines("")


def _colored(text: str, name: str) -> str:
    if (
        not is_terminal(sys.stdout)
        or os.environ.get("NO_COLOR")
        or os.environ.get("TERM") == "dumb"
    ):
        return text
    return f"\x1b[{_COLORS[name]}m{text}\x1b[0m"


def print_result(
    fit: Fit[Any],
    metrics: Mapping[str, float] | None,
    lines: Sequence[str],
    *,
    as_json: bool,
    quiet: bool,
    verbose: bool = False,
    first: FirstLines | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print the first lines, the summary, the metrics and further lines; or one JSON object.

    ``more`` are entries of that object.
    ``verbose``: with the lines on the computation.
    """
    if as_json:
        entries = json_entries(fit) | dict(more or {})
        if metrics is not None:
            entries["metrics"] = {name: finite(value) for name, value in metrics.items()}
        show_json(entries)
    elif not quiet:
        if first is not None:
            show_first_lines(first)
        summary = fit.summary().split("\n")
        show_lines([each for each in summary if verbose or not each.startswith(_ON_COMPUTATION)])
        if verbose:
            show_lines(f"{time.monotonic() - _STARTED:.1f} seconds")
        if metrics is not None:
            show_lines(describe_metrics(metrics))
        show_lines(lines)


def describe_metrics(metrics: Mapping[str, float]) -> str:
    """Return how a fit does against the truth, in words."""
    figures = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
    return f"against the truth: {figures}"


def json_entries(fit: Fit[Any]) -> dict[str, Any]:
    """Return the object that ``fit --json`` and ``rank --json`` print."""
    entries: dict[str, Any] = {
        "model": fit.model,
        "n_items": fit.data.n_items,
        "n_annotators": fit.data.n_annotators,
    }
    end = {
        "n_iter": fit.n_iter,
        "converged": fit.converged,
        "stop_reason": fit.stop_reason,
        "log_likelihood": finite(fit.log_likelihood),
        "spammers": fit.n_spammers,
    }
    if fit.kind == "sets":
        labels = fit.data.scale.set_labels
        counts = {"n_answers": fit.data.n_labels, "n_labels": 0 if labels is None else len(labels)}
        return entries | counts | {"n_types": len(fit.parameters["types"])} | end
    if fit.kind == "comparisons":
        side_bias = None if fit.side_bias is None else fit.side_bias.tolist()
        entries |= {"n_comparisons": fit.data.n_comparisons, **end}
        entries |= {"verdict": fit.verdict, "parts": fit.n_parts, "side_bias": side_bias}
        return entries | fit.further_facts()
    from annotruth.models.fits.notes import to_dicts  # slow to load

    entries |= {"n_labels": fit.data.n_labels, "n_categories": fit.data.n_categories, **end}
    entries |= {"readout": fit.readout, "verdict": fit.verdict, "notes": to_dicts(fit.notes)}
    if fit.chosen is not None:
        entries["chosen"] = dict(fit.chosen)
    entries |= fit.further_facts()
    if fit.data.classifier is not None:
        from annotruth.models.evidence.classifier import judge_classifier

        entries["classifier"] = judge_classifier(fit)._asdict()
    return entries


def finite(value: float | None) -> float | None:
    """Return a finite number, or None, as JSON has no NaN."""
    return value if value is not None and math.isfinite(value) else None
