"""The server and its tools, over standard input and output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from annotruth.analyses.advice.advice import advise
from annotruth.analyses.advice.pairs.advice import advise_pairs
from annotruth.errors import AnnotruthError, InputError
from annotruth.io.opened import open_labels
from annotruth.mcp.folder import Folder
from annotruth.mcp.results import (
    ExplainResult,
    FitResult,
    NextResult,
    OpenResult,
    explain_result,
    fit_result,
    next_result,
    open_result,
)
from annotruth.observations.options import ReadOptions

INSTRUCTIONS = (
    "annotruth recovers the truth from labels that several unreliable people gave the same items, and ranks "
    "items by pair comparisons. Begin with open, then fit (or rank); say the verdict first, and never call "
    "somebody a spammer who is not in question. explain_item and explain_annotator say why."
)

File = Annotated[
    str, Field(description="a file in the folder of the server, or a saved fit's folder")
]
Columns = Annotated[
    dict[str, str] | None,
    Field(
        description='which column is what, e.g. {"item": "film", "annotator": "who", "label": "stars"}'
    ),
]
Name = Annotated[str | int, Field(description="the id, as in the file")]
Page = Annotated[str | None, Field(description="a new .html file in the folder, for the report")]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


class Tools:
    """The tools, which agents call by the names of the methods."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def open(self, path: File, question: str | None = None) -> OpenResult:
        """Say what a file seems to hold, and how to fit it: its columns, labels or comparisons."""
        with self._call():
            read = ReadOptions(question=question, max_size=self.folder.max_size)
            return open_result(open_labels(self.folder.existing(path), read), path)

    def fit(
        self,
        path: File,
        model: str | None = None,
        columns: Columns = None,
        scale: Literal["auto", "nominal", "ordinal"] | None = None,
        question: str | None = None,
        gold: Annotated[
            str | None, Field(description="a file of known truths: item, label")
        ] = None,
        report: Page = None,
    ) -> FitResult:
        """Fit labels: can they be trusted, who is in question, which items need labels, what to do next."""
        given = {"model": model, "columns": columns, "scale": scale, "question": question}
        return self._fit(path, "labels", report, given, gold)

    def rank(
        self,
        path: File,
        model: str | None = None,
        columns: Columns = None,
        by: Annotated[str | None, Field(description="a column: one board per value")] = None,
        report: Page = None,
    ) -> FitResult:
        """Rank items by pair comparisons: the verdict, the best items, who is in question."""
        return self._fit(
            path, "comparisons", report, {"model": model, "columns": columns, "by": by}
        )

    def next(
        self,
        path: File,
        budget: Annotated[int | None, Field(description="how many labels to spend")] = None,
    ) -> NextResult:
        """Say which items to label (or pairs to compare) next, whom to ask and whom to drop.

        Of a file that was fitted before, that is by the last fit.
        """
        with self._call() as warnings:
            fit = self.folder.fitted(path)
            if fit.kind not in ("labels", "comparisons"):
                raise InputError(f"{path} has {fit.kind}: advice is for labels and comparisons")
            advice: Any = (advise if fit.kind == "labels" else advise_pairs)(fit, budget)
            return next_result(advice, warnings)

    def explain_item(self, path: File, item: Name) -> ExplainResult:
        """Say what the last fit of a file says of one item, and why: distribution, who said what."""
        with self._call() as warnings:
            return explain_result(self.folder.fitted(path).item(item), warnings)

    def explain_annotator(self, path: File, annotator: Name) -> ExplainResult:
        """Say what the last fit of a file says of one annotator, and why: verdict, doubtful labels."""
        with self._call() as warnings:
            return explain_result(self.folder.fitted(path).annotator(annotator), warnings)

    def _fit(
        self,
        path: str,
        kind: str,
        report: str | None,
        given: dict[str, Any],
        gold: str | None = None,
    ) -> FitResult:
        options = {name: value for name, value in given.items() if value is not None}
        with self._call() as warnings:
            page = None if report is None else self.folder.new(report, ".html")
            if gold is not None:
                options["gold"] = self.folder.existing(gold)
            fit = self.folder.fitted(path, kind, **options)
            if page is not None:
                fit.report(page, source=path)
            return fit_result(fit, path, warnings, [] if report is None else [report])

    @contextmanager
    def _call(self) -> Iterator[list[str]]:
        """Record the warnings of a call; errors that annotruth raises on purpose are its result."""
        try:
            with self.folder.recorded() as warnings:
                yield warnings
        except AnnotruthError as error:
            raise ToolError(str(error)) from None


def make_server(root: Path, max_size: str | None = None) -> MCPServer[Any]:
    """Return a server whose tools read files of a folder."""
    tools = Tools(Folder(root.resolve(), max_size))
    server: MCPServer[Any] = MCPServer(
        "annotruth", instructions=INSTRUCTIONS, version=version("annotruth"), log_level="WARNING"
    )
    for name in ("open", "fit", "rank", "next", "explain_item", "explain_annotator"):
        annotations = _WRITES if name in ("fit", "rank") else _READS
        server.add_tool(getattr(tools, name), annotations=annotations)
    return server
