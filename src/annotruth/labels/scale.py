"""The scale that labels were given on: which categories, in which order, worth which number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.labels.buffers import as_arrow, as_numpy
from annotruth.labels.formatting import listed

ScaleKind = Literal["auto", "nominal", "ordinal"]


@dataclass(frozen=True, eq=False)
class Scale:
    """Categories 1..N of the paper, as the user wrote them, and the number each stands for.

    Attributes
    ----------
    kind
        "nominal" (no order: cat, dog) or "ordinal" (bad < fair < good).
    categories
        The categories in order, in the user's own type.
    values
        What each category counts in an expectation: its own number when categories are
        numbers, otherwise its place 1..N.
    edges
        Where categories are bins of numbers, the edges of the bins.
    """

    kind: Literal["nominal", "ordinal"]
    categories: pa.Array
    values: NDArray[np.float64]
    edges: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.categories)

    @property
    def is_ordinal(self) -> bool:
        """Whether the categories have an order."""
        return self.kind == "ordinal"

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest number that the scale holds."""
        ends = self.values if self.edges is None else self.edges
        return float(ends[0]), float(ends[-1])

    @property
    def names(self) -> list[str]:
        """The categories as text, for column names and messages."""
        return [_name(category) for category in self.categories.to_pylist()]

    @classmethod
    def ordinal(cls, categories: Sequence[Any]) -> Scale:
        """Make an ordered scale; numbers are ordered by value, words keep the given order."""
        return _declared(categories, "ordinal")

    @classmethod
    def nominal(cls, categories: Sequence[Any]) -> Scale:
        """Make a scale of classes without an order."""
        return _declared(categories, "nominal")

    def codes_of(self, values: pa.Array) -> NDArray[np.int32]:
        """Find the code of each value, -1 where it is no category of this scale.

        Numbers match by value ("2", 2 and 2.0 are the same) or fall into a bin, words match by
        their text.
        """
        numbers, ours = numbers_behind(values), numbers_behind(self.categories)
        if numbers is not None and self.edges is not None:
            inside = (numbers >= self.edges[0]) & (numbers <= self.edges[-1])
            at = np.searchsorted(self.edges, numbers, side="right") - 1
            found = np.where(inside, np.minimum(at, len(self) - 1), -1)
        elif numbers is not None and ours is not None:
            order = np.argsort(ours)
            at = np.minimum(np.searchsorted(ours[order], numbers), len(self) - 1)
            found = np.where(ours[order][at] == numbers, order[at], -1)
        else:
            place = {name: code for code, name in enumerate(self.names)}
            names = [_name(value) for value in values.to_pylist()]
            if pa.types.is_boolean(self.categories.type):
                names = [name.lower() for name in names]
            found = np.array([place.get(name, -1) for name in names], dtype=np.int64)
        return found.astype(np.int32)


def scale_of(
    observed: pa.Array,
    *,
    kind: ScaleKind = "auto",
    categories: Sequence[Any] | None = None,
    from_text: bool = False,
) -> tuple[Scale, NDArray[np.int32]]:
    """Decide the scale of the observed label values and the code of each of them.

    ``auto`` takes numbers and words in a given order as ordinal, everything else as nominal.
    With ``from_text`` (a CSV, where nothing has a type) labels that all read as numbers become
    numbers.
    """
    if categories is not None:
        scale = _declared(categories, "ordinal" if kind == "auto" else kind, like=observed)
    else:
        scale = _observed_scale(observed, kind, from_text=from_text)
    return scale, scale.codes_of(observed)


def numbers_behind(values: pa.Array) -> NDArray[np.float64] | None:
    """Read the values as finite numbers, or return None when one of them is none.

    Integers that a double cannot tell from their neighbours are names, not numbers.
    """
    values = plain(values)
    if pa.types.is_boolean(values.type):
        return None
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values)
    try:
        numbers = values.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    # + 0.0 turns -0.0 into 0.0, so that both spell the same category.
    array = as_numpy(numbers) + 0.0
    exact = pa.types.is_floating(values.type) or (np.abs(array) < 2.0**53).all()
    return array if exact and np.isfinite(array).all() else None


def plain(values: Any) -> Any:
    """Undo the layouts for which Arrow lacks functions: dictionaries and views of text."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds text, in any of Arrow's layouts."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def whole_or_float(numbers: NDArray[np.float64]) -> pa.Array:
    """Write numbers as integers when all of them are whole, so that 1.0 reads 1."""
    whole = bool((numbers == np.round(numbers)).all() and (np.abs(numbers) < 2**53).all())
    return as_arrow(numbers.astype(np.int64) if whole else numbers)


def _observed_scale(observed: pa.Array, kind: ScaleKind, *, from_text: bool) -> Scale:
    numbers = numbers_behind(observed)
    if numbers is None:
        words = observed.take(pc.sort_indices(observed.cast(pa.string())))
        chosen: Literal["nominal", "ordinal"] = "nominal" if kind == "auto" else kind
        if chosen == "ordinal" and not pa.types.is_boolean(observed.type):
            raise InputError(
                "an ordinal scale of words needs their order: give the categories from lowest "
                f"to highest (found: {listed(words)})"
            )
        return Scale(chosen, words, np.arange(1.0, len(words) + 1))
    values, first = np.unique(numbers, return_index=True)
    spelled = is_text(observed.type) and not from_text
    categories = observed.take(as_arrow(first)) if spelled else whole_or_float(values)
    return Scale("ordinal" if kind == "auto" else kind, categories, values)


def _declared(
    categories: Sequence[Any],
    kind: Literal["nominal", "ordinal"],
    like: pa.Array | None = None,
) -> Scale:
    """Build a scale from categories that the user listed.

    ``like`` holds the observed labels: listed numbers stay words when the labels are words.
    """
    if isinstance(categories, str | set | frozenset) or len(categories) == 0:
        raise InputError(f"categories must be a list of at least one category, not {categories!r}")
    try:
        given = pa.array(list(categories))
    except (pa.ArrowException, OverflowError):
        given = pa.array([str(category) for category in categories])
    if given.null_count:
        raise InputError("categories contain an empty one: name every category")
    numbers = numbers_behind(given)
    words = numbers is None or (like is not None and numbers_behind(like) is None)
    keys = given.cast(pa.string()).to_pylist() if words else numbers.tolist()  # type: ignore[union-attr]
    twice = sorted(str(key) for key, count in Counter(keys).items() if count > 1)
    if twice:
        raise InputError(f"categories name {listed(twice)} twice: list each category once")
    if words:
        return Scale(kind, given, np.arange(1.0, len(given) + 1))
    values = np.sort(np.asarray(keys))
    return Scale(kind, whole_or_float(values), values)


def _name(value: Any) -> str:
    """Write a category as text; true and false as files spell them."""
    return str(value).lower() if isinstance(value, bool) else str(value)
