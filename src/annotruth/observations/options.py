"""How labels are made of a table and read from a file, and what was found in the file."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, get_args

import pyarrow as pa

from annotruth.errors import InputError, NoQuestionsError, did_you_mean, option, setting, shown
from annotruth.observations import validate
from annotruth.observations.columns.names import TIME_ROLES, check_column_roles
from annotruth.observations.layout import DuplicatePolicy
from annotruth.observations.scale import Bins, ScaleKind

A = TypeVar("A")
Function = TypeVar("Function", bound=Callable[..., Any])

ALL_QUESTIONS = "all"
"""The value of ``question`` for every question of a file."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for reading labels or comparisons from a file or a table.

    Functions that read labels take them as keywords, ``at.fit("labels.csv", scale="ordinal")``,
    or as one object, ``at.fit("labels.csv", read=options)``.

    Parameters
    ----------
    columns
        The column names of the roles "item", "annotator" and "label", where they are not named
        so: ``{"item": "film", "label": "stars"}``. Further roles are "time", "order" and
        "seconds": when a label was given, as which of the annotator's, and how long it took.
    scale
        "nominal", "ordinal", or "auto": text is nominal, listed categories are ordinal, and of
        numbers the labels decide (`annotruth.observations.scale.judge_order`).
    categories
        All categories, lowest first; those that no label names count too.
    duplicates
        What to do when an annotator labelled an item twice: "refuse" (identical rows count once,
        other labels are an error), "keep" (two votes) or "last" (the later label replaces the
        earlier one).
    bins
        For numbers on a continuous scale: the number of bins of equal width, or the edges of the
        bins. Each bin is a category whose value is its centre.
    covariates
        Further columns to keep with the labels, such as the time of a label.
    content
        Columns that hold what the items are: text, or the URL or path of an image, audio or video.
        The report shows them. They become covariates of items: of rows that differ, the first.
    sets
        Whether an answer is a set of labels: a list, text with a ``separator``, or all rows of an
        item and annotator, with one label each. Columns of lists are sets without it.
    separator
        The text between the labels of a set in one cell, such as "|"; implies ``sets``. An empty
        cell is no answer, and a cell that holds only the separator is the empty set.
    input_format
        The format of a file ("wide", "mturk", ...), where it is not recognised as it should be.
    question
        The question to take, where a file has labels for several; or "all", for `annotruth.fit`: every
        question is fitted (see `annotruth.QuestionFits`). In a long table, the column ``question`` names
        the question of each label, or the one that ``columns={"question": NAME}`` says; otherwise a
        question is a column of answers.
    query
        What to read from a database: one SELECT, such as "select item, annotator, label from votes".
        Files need it only if several tables have the columns of labels. Of an Excel file, the name of a
        sheet, by default the first.
    memory
        How much memory the labels and the fit may take, such as "1GB": the labels then stay on
        disk, in the folder for temporary files, and the result is the same. For files that hold
        a long table, and a model that supports it, such as robust-gpm or dawid-skene.
    max_size
        How much memory reading a file may take, such as "20GB": its content, decompressed, and
        24 bytes per value. By default 500 MB, or 200 times the size of the file if that is more,
        but at most three quarters of the machine's memory.
    drop
        Annotators to leave out: a list of ids; or a path or a frame with a column ``annotator``, and
        with a column ``verdict``, as in ``fit.keep()``, those to drop; of the workbook of
        ``fit.write()``, those whom somebody decided not to pay. A .txt file holds one id per line.
    further
        Of comparisons: further columns to keep as they are, such as a category.
    outcomes
        Of comparisons: what the values of the winner stand for, where that is not known:
        ``{"0": "tie", "1": "left", "2": "right"}``.

    Examples
    --------
    >>> ReadOptions(scale="ordinal", duplicates="last").scale
    'ordinal'
    """

    columns: Mapping[str, str] | None = None
    scale: ScaleKind = "auto"
    categories: Sequence[Any] | None = None
    duplicates: DuplicatePolicy = "refuse"
    bins: Bins | None = None
    covariates: Sequence[str] = ()
    content: Sequence[str] = ()
    sets: bool = False
    separator: str | None = None
    input_format: str | None = None
    question: str | None = None
    query: str | None = None
    memory: str | int | None = None
    max_size: str | int | None = None
    drop: Any = ()
    further: Sequence[str] = ()
    outcomes: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        validate.check_choice("scale", self.scale, get_args(ScaleKind))
        validate.check_choice("duplicates", self.duplicates, get_args(DuplicatePolicy))
        check_column_roles(self.columns)
        validate.check_column_names("covariates", self.covariates)
        validate.check_column_names("content", self.content)
        separator: object = self.separator
        question: object = self.question
        if not (question is None or isinstance(question, str)):
            raise InputError(f"question is {shown(question)}: give the name of one, or 'all'")
        outcomes: object = self.outcomes
        if not (outcomes is None or isinstance(outcomes, Mapping)):
            raise InputError(
                f"outcomes is {shown(outcomes)}: give a mapping from winners to left, right and tie"
            )
        if self.bins is not None and (self.categories is not None or self.scale == "nominal"):
            raise InputError(
                "bins make an ordinal scale of their own: leave out the categories and the scale"
            )
        if separator is not None and not (isinstance(separator, str) and separator):
            raise InputError(
                f"{option('separator')} is {shown(separator)}: give the text between labels, such as '|'"
            )
        if self.has_sets and (self.scale == "ordinal" or self.bins is not None):
            raise InputError("sets of labels have no order: leave out the scale and the bins")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all options."""
        return tuple(each.name for each in fields(cls))

    @classmethod
    def of(cls, options: ReadOptions | None, keywords: Mapping[str, Any]) -> ReadOptions:
        """Return the options given as one object or as keywords; unknown names are refused."""
        combined, others = cls.split(options, keywords)
        for name in others:
            raise InputError(
                f"unknown option {name!r}: choose from {', '.join(cls.names())}"
                f"{did_you_mean(name, cls.names())}"
            )
        return combined

    @classmethod
    def split(
        cls, options: ReadOptions | None, keywords: Mapping[str, Any]
    ) -> tuple[ReadOptions, dict[str, Any]]:
        """Return the options, and those keywords that are none of them.

        The options are given either as one object or as keywords.
        """
        known = {name: value for name, value in keywords.items() if name in cls.names()}
        others = {name: value for name, value in keywords.items() if name not in known}
        if options is None:
            return cls(**known), others
        for name in known:
            raise InputError(f"{name} is given beside {cls.__name__}: give it there")
        if not isinstance(options, cls):
            raise InputError(f"{type(options).__name__} was given: {cls.__name__} is needed")
        return options, others

    @property
    def label_columns(self) -> Mapping[str, str] | None:
        """The names of the columns of items, annotators and labels that are given."""
        if self.columns is None:
            return None
        return {role: name for role, name in self.columns.items() if role not in TIME_ROLES}

    @property
    def time_columns(self) -> dict[str, str]:
        """The names of the columns of times that are given."""
        named = self.columns or {}
        return {role: str(name) for role, name in named.items() if role in TIME_ROLES}

    @property
    def has_sets(self) -> bool:
        """Whether the caller says that answers are sets of labels."""
        return self.sets or self.separator is not None

    @property
    def infers_scale(self) -> bool:
        """Whether nothing is said about the scale."""
        return self.scale == "auto" and self.categories is None and self.bins is None

    def with_categories(self, categories: Sequence[Any] | None) -> ReadOptions:
        """Return the options with these categories, unless the caller gave categories or bins."""
        if categories is None or self.categories is not None or self.bins is not None:
            return self
        return replace(self, categories=categories)

    def changed(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if not _is_unset(getattr(self, each.name), each.default)
        }

    @property
    def drops_annotators(self) -> bool:
        """Whether there are annotators to leave out."""
        return "drop" in self.changed()

    def refuse_options_of_files(self, data: object) -> None:
        """Refuse options that are for files only; dicts of dicts have a format, too."""
        for name in ("input_format", "query", "memory"):
            has_format = name == "input_format" and isinstance(data, Mapping)
            if getattr(self, name) is not None and not has_format:
                raise InputError(f"{option(name)} is for files: leave it out")

    def refuse_options_of_data(self, what: str, **given: Any) -> None:
        """Refuse options for reading or fitting ``what``, such as labels, where a fit is given instead.

        Further options are ``given``, None where they are not. ``drop`` is for fits, too.
        """
        named = [
            option(name) if name in _OF_FITTING else setting(name)
            for name, value in given.items()
            if value is not None
        ]
        named += [option(name) for name in self.changed() if name != "drop"]
        if named:
            raise InputError(
                f"{', '.join(named)}: only for {what}, and this is a fit; leave them out, or give "
                f"the {what}"
            )


_OF_FITTING = ("model", "gold", "annotator_prior", "drop")  # all others are options of the model


def names_keywords(keywords: type) -> Callable[[Function], Function]:
    """Return a decorator that lists the keywords of ``**options`` in a function's signature.

    Notebooks and `inspect.signature` then show and complete them; ``...`` stands for their defaults.
    """
    kind = inspect.Parameter.KEYWORD_ONLY

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        further = [
            inspect.Parameter(name, kind, default=..., annotation=annotation.__forward_arg__)
            for name, annotation in inspect.get_annotations(keywords).items()
            if name not in signature.parameters
        ]
        signature = signature.replace(parameters=[*own, *further])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What a saved fit remembers for the next labels of its campaign, and for its workbooks."""

    columns: Mapping[str, str] = field(default_factory=dict)
    question: str | None = None
    drop: Sequence[str] = field(default_factory=list)
    """The ids of the annotators that were left out."""
    price: float | None = None
    """The price of one label."""

    def __post_init__(self) -> None:
        price: object = self.price
        if price is not None and not (
            isinstance(price, int | float) and math.isfinite(price) and price >= 0
        ):
            raise InputError(f"price is {shown(price)}: give the price of one label, such as 0.05")

    def changed(self) -> dict[str, Any]:
        """Return what there is to remember, as JSON types."""
        entries: dict[str, Any] = {"columns": dict(self.columns), "question": self.question}
        entries |= {"drop": list(self.drop), "price": self.price}
        return {name: value for name, value in entries.items() if value not in (None, {}, [])}

    def after(self, read: ReadOptions, dropped: Sequence[str]) -> Campaign:
        """Return what to remember after reading with these options, and leaving these ids out."""
        return replace(
            self,
            columns=dict(read.columns or self.columns),
            question=read.question or self.question,
            drop=list(dict.fromkeys([*self.drop, *dropped])),
        )

    def read(self, load: Callable[[ReadOptions], A], read: ReadOptions) -> A:
        """Return what ``load`` reads with the columns and the question of the campaign.

        Options that are given come first. A table without these columns, or of one question, is read as
        any other.
        """
        of_data = {name for name in ("columns", "question") if name not in read.changed()}
        known = {name: value for name, value in self.changed().items() if name in of_data}
        try:
            return load(replace(read, **known))
        except InputError as error:
            name = "question" if isinstance(error, NoQuestionsError) else "columns"
            if name in known:
                with suppress(InputError):
                    return replace(self, **{name: getattr(Campaign(), name)}).read(load, read)
            raise


@dataclass(frozen=True, kw_only=True)
class ParsedSource:
    """What was found in a source, for the summary and for messages."""

    from_text: bool = False
    """Whether the columns have no types, as in a CSV."""
    notes: Sequence[str] = ()
    """What was found and left out."""
    unused: Mapping[str, int] = field(default_factory=dict)
    """How many rows were left out, by reason, such as "rejected"; zeros do not count."""
    title: str = ""
    """The name of the format; empty for a table of one row per label or comparison."""

    @property
    def read_as(self) -> str:
        """Return one line on how the source was read."""
        notes = ", ".join(note for note in self.notes if note)
        if not self.title:
            return notes
        return f"{self.title} ({notes})" if notes else self.title

    @property
    def na_is_empty(self) -> bool:
        """Whether a label of NA is a missing one: a platform's export has empty cells for these."""
        return self.from_text and not self.title

    @property
    def kind(self) -> str:
        """What several files must have in common."""
        return self.title or ("a text table" if self.from_text else "a table with types")


@dataclass(frozen=True)
class ParsedLabels(ParsedSource):
    """Labels as a long table, with what else a format found in the file."""

    table: pa.Table
    columns: Mapping[str, str] | None = None
    """The column of each role, where they are not named item, annotator and label."""
    origin: Mapping[str, str] | None = None
    """The column of the file behind each role, where an export is a table."""
    gold: pa.Table | None = None
    """Known truths: item, label."""
    categories: Sequence[Any] | None = None
    """All categories, where the file names them."""
    nominal: bool = False
    """Whether labels are names or numbers of classes, and never a scale."""
    as_sets: Callable[[], tuple[pa.Table, pa.Table | None]] | None = None
    """Returns the table and the gold with sets of labels, where choices were read as single labels."""

    def options(self, read: ReadOptions) -> ReadOptions:
        """Return the options to make labels of the table, where the caller's leave that open."""
        options = replace(read, columns=self.columns)
        if self.nominal and options.infers_scale:
            options = replace(options, scale="nominal")
        return options.with_categories(self.categories)


def _is_unset(value: Any, default: Any) -> bool:
    # Arrays cannot be compared as a whole, so only text is.
    if isinstance(value, str):
        return bool(value == default)
    is_scalar = getattr(value, "shape", None) == ()  # an array of NumPy that has no length
    return value is default or (isinstance(value, Sized) and not is_scalar and len(value) == 0)
