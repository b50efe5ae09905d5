"""The options for reading as keywords of functions, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from annotruth.observations.layout import DuplicatePolicy
from annotruth.observations.scale import Bins, ScaleKind


class ReadKeywordsOfOne(TypedDict, total=False):
    """The fields of `ReadOptions` but ``question``, as keywords of functions, for type checkers."""

    columns: Mapping[str, str] | None
    scale: ScaleKind
    categories: Sequence[Any] | None
    duplicates: DuplicatePolicy
    bins: Bins | None
    covariates: Sequence[str]
    content: Sequence[str]
    sets: bool
    separator: str | None
    input_format: str | None
    query: str | None
    memory: str | int | None
    max_size: str | int | None
    drop: Any
    further: Sequence[str]
    outcomes: Mapping[str, str] | None


class ReadKeywords(ReadKeywordsOfOne, total=False):
    """The fields of `ReadOptions` as keywords of functions, for type checkers."""

    question: str | None
