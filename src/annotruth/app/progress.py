"""The progress line: what a command is doing, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Line
from rich.table import Column
from rich.text import Text

from annotruth.errors import one_line
from annotruth.models.em import Progress, ProgressReporter


@contextmanager
def terminal_line(started: float) -> Iterator[TerminalLine]:
    """Show a line with the stage, a bar if its length is known, and the time since the start.

    It is redrawn in a thread of its own, so it moves whatever the command is doing, and removed at
    the end.
    """
    console = Console(stderr=True)
    line = TerminalLine()
    columns = (
        SpinnerColumn("dots" if console.encoding.startswith("utf") else "line"),
        _StageColumn(line),
        _KnownBarColumn(),
        TimeElapsedColumn(),
    )
    with Line(*columns, console=console, transient=True, redirect_stdout=False) as drawn:
        drawn.add_task("", total=None)
        (line.task,) = drawn.tasks
        line.task.start_time = started
        line.refresh = drawn.refresh  # so that short stages appear, too
        yield line


class TerminalLine(ProgressReporter):
    """The stage that `terminal_line` shows."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.refresh: Callable[[], None] = lambda: None
        self._stage, self._iteration = "starting", ""

    def start(self, stage: str, *, done: int = 0, total: int = 0) -> None:
        """Show a stage, with a bar if it is one of several."""
        self._stage, self._iteration = one_line(stage), ""
        if self.task is not None:
            self.task.total, self.task.completed = total or None, done
        self.refresh()

    def __call__(self, progress: Progress) -> None:
        """Show the number of an iteration, where it is not one of many fits."""
        if self.task is None or self.task.total is None:
            self._iteration = f", iteration {progress.n_iter:,}"

    @property
    def text(self) -> str:
        """What the line says now."""
        return self._stage + self._iteration


class _StageColumn(TextColumn):
    def __init__(self, line: TerminalLine) -> None:
        super().__init__("", table_column=Column(no_wrap=True, overflow="ellipsis"))
        self._line = line

    def render(self, task: Task) -> Text:
        return Text(self._line.text, end="")


class _KnownBarColumn(BarColumn):
    """A bar for stages of which the number is known, and nothing for others."""

    def render(self, task: Task) -> Text:  # type: ignore[override]
        return Text() if task.total is None else super().render(task)  # type: ignore[return-value]
