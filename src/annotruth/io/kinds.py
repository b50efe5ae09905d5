"""How comparisons are read; `Kind` is that of labels or of comparisons, with the same methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pyarrow as pa

from annotruth.errors import InputError, NoQuestionsError, option, shorten
from annotruth.io import formats
from annotruth.io.formats import crowdsourcing
from annotruth.io.formats.source import Source
from annotruth.io.label_kind import LabelKind, all_columns
from annotruth.io.sources import (
    LabelFile,
)
from annotruth.observations import Comparisons
from annotruth.observations.columns.candidates import (
    propose_pair_columns,
)
from annotruth.observations.columns.names import (
    ColumnsNotFoundError,
    pass_columns,
)
from annotruth.observations.disk import Disk
from annotruth.observations.frames import to_arrow
from annotruth.observations.options import ALL_QUESTIONS, ReadOptions
from annotruth.observations.pairs.build import ComparisonBuilder, ParsedComparisons, parse_table
from annotruth.observations.pairs.columns import ROLES, PairColumns, find_pair_columns

# Options of labels, which have no meaning for comparisons.
_OF_LABELS = (
    *("scale", "categories", "duplicates", "bins", "sets", "separator", "content"),
    *("input_format", "memory"),
)


@dataclass
class PairKind:
    """Tables of one row per comparison, or of ranks; of several files, one after the other."""

    read: ReadOptions
    columns: PairColumns | None = None  # of the table chosen from last

    table: ClassVar = Comparisons
    function: ClassVar = "annotruth.rank"
    kept_options: ClassVar = frozenset({"drop"})

    def check_options(self) -> None:
        """Refuse options of labels, and all questions at once."""
        if self.read.question == ALL_QUESTIONS:
            raise InputError(
                f"all questions at once are for labels: name one question ({option('question')})"
            )
        changed = self.read.changed()
        for name in (name for name in _OF_LABELS if name in changed):
            raise InputError(f"{option(name)} is for labels, not for comparisons: leave it out")

    def builder(self, disk: Disk | None = None) -> ComparisonBuilder:
        """Return a builder of comparisons, which are in memory."""
        return ComparisonBuilder(self.read.outcomes)

    def parse_data(self, data: Any) -> tuple[ParsedComparisons, str]:
        """Return the comparisons in a frame or plain Python data."""
        table, frame = to_arrow(data, self.choose, ROLES["sides"])
        if self.columns is None:
            self.choose(table.column_names)
        return self.parse(table), frame

    def choose(self, names: list[str], *, from_text: bool = False) -> list[str]:
        """Return the columns of comparisons to read, and keep what they are."""
        read = self.read
        is_batch = crowdsourcing.is_batch(names)
        if is_batch:
            columns = crowdsourcing.batch_columns(
                names, read.columns, read.covariates, read.question
            )
        elif read.question is not None:
            raise NoQuestionsError(
                f"a table of comparisons has no questions: leave out {option('question')}"
            )
        else:
            columns = find_pair_columns(names, read.columns, read.covariates, read.further)
        self.columns = columns
        return [*columns.names(), *(crowdsourcing.review_columns(names) if is_batch else ())]

    def parse(
        self, table: pa.Table, *, from_text: bool = False, note: str = ""
    ) -> ParsedComparisons:
        """Return the comparisons of a table; of a batch, those that were not rejected."""
        assert self.columns is not None
        if not crowdsourcing.review_columns(table.column_names):
            parsed = parse_table(table, self.columns, from_text=from_text)
            return replace(parsed, notes=(note, *parsed.notes))
        kept = crowdsourcing.without_rejected(table)
        n_rejected = table.num_rows - kept.num_rows
        rejected = f"{n_rejected:,} rejected left out" if n_rejected else ""
        parsed = parse_table(kept, self.columns, from_text=from_text)
        notes = (*parsed.notes, rejected)
        unused = {"rejected": n_rejected}
        return replace(parsed, title="MTurk batch results", notes=notes, unused=unused)

    def with_decimal_points(self, parsed: ParsedComparisons, data: pa.Buffer) -> ParsedComparisons:
        """Return the comparisons as they are: winners are no numbers with decimals."""
        return parsed

    def recognise(self, source: Source, *, is_long: bool = True) -> ParsedComparisons | None:
        """Return the comparisons of an export in JSON or Python; None for a table."""
        parsed = formats.recognise_comparisons(source)
        if parsed is None and source.kind == "json" and not source.in_lines:
            return self.parse(source.record_table(self.choose))
        return parsed

    def read_several(self, path: Path) -> None:
        """Return None: no folder or zip holds comparisons of several users."""

    def parse_by_values(
        self,
        load: Callable[[], pa.Table],
        error: ColumnsNotFoundError,
        *,
        from_text: bool = False,
    ) -> NoReturn:
        """Raise ``error``, with the columns that could be the pair, the annotator and the winner."""
        found = propose_pair_columns(all_columns(load, error), self.read.columns)
        if not found:
            raise error
        raise ColumnsNotFoundError(
            f"{error.problem}; by their values, "
            f"{', '.join(f'the {role} may be {shorten(name)}' for role, name in found.items())}: "
            f"{pass_columns(found)}",
            error.problem,
            error.known,
        )

    def check_label(self, names: Sequence[str], load: Callable[[], pa.Table]) -> None:
        """Accept every table: comparisons have no label."""

    def made_alike(
        self, parts: Mapping[LabelFile, ParsedComparisons]
    ) -> Mapping[LabelFile, ParsedComparisons]:
        """Return the comparisons of several files as they are."""
        return parts


Kind = LabelKind | PairKind
