"""The scale of labels: its categories, their order, and the number each stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError, listed, shown
from annotruth.labels.frames import as_arrow, as_numpy, make_column

ScaleKind = Literal["auto", "nominal", "ordinal"]


@dataclass(frozen=True, eq=False)
class Scale:
    """The categories of labels, as they were written, and the number each stands for.

    Attributes
    ----------
    kind
        "nominal" (no order: cat, dog) or "ordinal" (bad < fair < good).
    categories
        The categories in order, in the user's own type.
    values
        The value of each category in an expectation: the category itself where categories are
        numbers, otherwise its place 1..N.
    edges
        Where categories are bins of numbers, the edges of the bins.
    reason
        Where nobody said what the scale is, why numbers are taken as ordinal or not.

    Examples
    --------
    >>> Scale.ordinal(["bad", "fair", "good"]).values
    array([1., 2., 3.])
    >>> Scale.ordinal([10, 0, 5]).names
    ['0', '5', '10']
    """

    kind: Literal["nominal", "ordinal"]
    categories: pa.Array
    values: NDArray[np.float64]
    edges: NDArray[np.float64] | None = None
    reason: str = ""

    def __len__(self) -> int:
        return len(self.categories)

    @property
    def is_ordinal(self) -> bool:
        """Whether the categories have an order."""
        return self.kind == "ordinal"

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest value on the scale."""
        ends = self.values if self.edges is None else self.edges
        return float(ends[0]), float(ends[-1])

    @property
    def names(self) -> list[str]:
        """The categories as text, for column names and messages."""
        return [_name(category) for category in self.categories.to_pylist()]

    @classmethod
    def ordinal(cls, categories: Sequence[Any]) -> Scale:
        """Return an ordered scale; numbers are ordered by value, text keeps the given order."""
        return _scale_of_listed(categories, "ordinal")

    @classmethod
    def nominal(cls, categories: Sequence[Any]) -> Scale:
        """Return a scale of classes without an order."""
        return _scale_of_listed(categories, "nominal")

    def with_order(self) -> Scale:
        """Return the scale as ordinal, unless it is nominal for another reason than evidence."""
        return replace(self, kind="ordinal", reason="") if self.reason else self

    def reordered(self, order: NDArray[np.integer[Any]]) -> Scale:
        """Return the scale with its categories in another order."""
        return replace(
            self, categories=self.categories.take(as_arrow(order)), values=self.values[order]
        )

    def codes_of(self, values: pa.Array) -> NDArray[np.int32]:
        """Return the code of each value, -1 where it is not a category of this scale.

        Numbers match by value ("2", 2 and 2.0 are the same) or fall into a bin; text matches
        exactly.
        """
        numbers, ours = parse_numbers(values), parse_numbers(self.categories)
        if numbers is not None and self.edges is not None:
            inside = (numbers >= self.edges[0]) & (numbers <= self.edges[-1])
            bin_number = np.searchsorted(self.edges, numbers, side="right") - 1
            codes = np.where(inside, np.minimum(bin_number, len(self) - 1), -1)
        elif numbers is not None and ours is not None:
            order = np.argsort(ours)
            place = np.minimum(np.searchsorted(ours[order], numbers), len(self) - 1)
            codes = np.where(ours[order][place] == numbers, order[place], -1)
        else:
            code_of = {name: code for code, name in enumerate(self.names)}
            names = [_name(value) for value in values.to_pylist()]
            if pa.types.is_boolean(self.categories.type):
                names = [name.lower() for name in names]
            codes = np.array([code_of.get(name, -1) for name in names], dtype=np.int64)
        return codes.astype(np.int32)


def infer_scale(
    observed: pa.Array,
    *,
    kind: ScaleKind = "auto",
    categories: Sequence[Any] | None = None,
    from_text: bool = False,
) -> tuple[Scale, NDArray[np.int32]]:
    """Return the scale of the observed label values, and the code of each of them.

    With "auto", numbers and listed categories are ordinal, everything else is nominal; whether numbers
    are the codes of classes, the labels decide later (`annotruth.labels.order`). With
    ``from_text`` (a CSV, where nothing has a type) labels that are all numbers become numbers.
    """
    if categories is not None:
        scale = _scale_of_listed(
            categories, "ordinal" if kind == "auto" else kind, observed=observed
        )
    else:
        scale = _scale_of_observed(observed, kind, from_text=from_text)
    return scale, scale.codes_of(observed)


def parse_numbers(values: pa.Array) -> NDArray[np.float64] | None:
    """Return the values as finite numbers, or None if one of them is not a number.

    Integers too large to be exact as doubles are ids, not numbers.
    """
    values = to_plain(values)
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


def to_plain(values: Any) -> Any:
    """Return values without the layouts that Arrow functions lack: dictionaries and string views."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds text, in any of Arrow's layouts."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def to_categories(numbers: NDArray[np.float64]) -> pa.Array:
    """Return numbers as categories: integers if all of them are whole, so that 1.0 is named 1."""
    whole = bool((numbers == np.round(numbers)).all() and (np.abs(numbers) < 2**53).all())
    return as_arrow(numbers.astype(np.int64) if whole else numbers)


def _scale_of_observed(observed: pa.Array, kind: ScaleKind, *, from_text: bool) -> Scale:
    numbers = parse_numbers(observed)
    if numbers is None:
        texts = observed.take(pc.sort_indices(observed.cast(pa.string())))
        chosen: Literal["nominal", "ordinal"] = "nominal" if kind == "auto" else kind
        if chosen == "ordinal" and not pa.types.is_boolean(observed.type):
            raise InputError(
                "an ordinal scale of text needs an order: pass categories from lowest to highest "
                f"(`--categories A,B,C`; found: {listed(texts)})"
            )
        return Scale(chosen, texts, np.arange(1.0, len(texts) + 1))
    values, first = np.unique(numbers, return_index=True)
    stays_text = is_text(observed.type) and not from_text
    categories = observed.take(as_arrow(first)) if stays_text else to_categories(values)
    return Scale("ordinal" if kind == "auto" else kind, categories, values)


def _scale_of_listed(
    categories: Sequence[Any],
    kind: Literal["nominal", "ordinal"],
    observed: pa.Array | None = None,
) -> Scale:
    """Return a scale of listed categories.

    ``observed`` holds the labels: listed numbers stay text where the labels are text.
    """
    if isinstance(categories, str | set | frozenset) or len(categories) == 0:
        raise InputError(f"categories must be a list of at least one category, not {categories!r}")
    try:
        given = pa.array(list(categories))
    except (pa.ArrowException, OverflowError, UnicodeError):
        # Of mixed types, or integers beyond 64 bits.
        given = make_column("categories", [_to_text(category) for category in categories])
    if given.null_count:
        raise InputError("categories contain an empty one: name every category")
    numbers = parse_numbers(given)
    as_text = numbers is None or (observed is not None and parse_numbers(observed) is None)
    keys = given.cast(pa.string()).to_pylist() if as_text else numbers.tolist()  # type: ignore[union-attr]
    repeated = sorted(str(key) for key, count in Counter(keys).items() if count > 1)
    if repeated:
        raise InputError(f"categories name {listed(repeated)} twice: list each category once")
    if as_text:
        return Scale(kind, given, np.arange(1.0, len(given) + 1))
    values = np.sort(np.asarray(keys))
    return Scale(kind, to_categories(values), values)


def _to_text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # an integer of thousands of digits
        raise InputError(f"categories name {shown(value)}: list numbers or text") from None


def _name(value: Any) -> str:
    """Return a category as text; booleans as true and false, as in files."""
    return str(value).lower() if isinstance(value, bool) else str(value)
