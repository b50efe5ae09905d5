"""The scale of labels: its categories, their order, and the number each stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError, listed, option, shown
from annotruth.kernels.arrays import Floats
from annotruth.observations.frames import as_arrow, as_numpy, make_column
from annotruth.observations.layout import Layout

ScaleKind = Literal["auto", "nominal", "ordinal"]

Bins = int | Sequence[float]
"""The number of bins of equal width, or the edges of the bins."""

MANY_NUMBERS = 25
"""With more distinct numbers than this, a scale is taken to be continuous."""

MAX_CODES = 12
"""More numbers than these are a scale in any case."""

LEADING_ZERO = r"^[-+]?0\d"
"""How codes begin that are no numbers."""

_BINARY_CODES = {(0, 1), (1, 2), (-1, 1)}
_MAX_LABELS = 200_000  # of the first items; these decide as well as all
_MIN_DISPUTED = 20  # items with different labels; standard errors of fewer are too uncertain
_RATIO = 0.8  # on a scale, alpha of classes is less than this share of alpha of the numbers
_LEAST_CONFUSED = 0.5  # on a scale, neighbours are confused more than this share of chance
_STANDARD_ERRORS = 2.0
_N_STEPS = 500  # of the fixed-point iteration, which converges geometrically


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
    set_labels
        Where categories are sets of labels, all labels in order (`annotruth.observations.sets`).

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
    set_labels: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.categories)

    @property
    def is_ordinal(self) -> bool:
        """Whether the categories have an order."""
        return self.kind == "ordinal"

    @property
    def has_sets(self) -> bool:
        """Whether the categories are sets of labels."""
        return self.set_labels is not None

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

    @property
    def takes_leading_zeros(self) -> bool:
        """Whether 00 is the number 0: in bins, and on scales of more than `MAX_CODES` numbers."""
        if self.edges is not None:
            return True
        is_long = self.is_ordinal and len(self) > MAX_CODES
        return is_long and parse_numbers(self.categories) is not None

    def codes_of(self, values: pa.Array) -> NDArray[np.int32]:
        """Return the code of each value, -1 where it is not a category of this scale.

        Numbers match by value ("2", 2 and 2.0 are the same) or fall into a bin; text matches
        exactly.
        """
        numbers = parse_numbers(values, leading_zeros=self.takes_leading_zeros)
        ours = parse_numbers(self.categories)
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
    are the codes of classes, the labels decide later (`judge_order`). With
    ``from_text`` (a CSV, where nothing has a type) labels that are all numbers become numbers.
    """
    if categories is not None:
        scale = _scale_of_listed(
            categories, "ordinal" if kind == "auto" else kind, observed=observed
        )
        numbers = parse_numbers(observed, leading_zeros=True)
        if numbers is not None and parse_numbers(scale.categories) is not None:
            observed = as_arrow(numbers)  # who lists numbers takes 02 for one
    else:
        scale = _scale_of_observed(observed, kind, from_text=from_text)
    return scale, scale.codes_of(observed)


NO_NUMBER = "(?i)^(?:nan|n/a|na|#n/a|<na>|null|nat)$"


def parse_numbers(values: pa.Array, *, leading_zeros: bool = False) -> NDArray[np.float64] | None:
    """Return the values as finite numbers, or None if one of them is not a number.

    Integers too large to be exact as doubles are ids. Text with leading zeros is a code, unless
    ``leading_zeros``: 007 and 7 may be two of them.
    """
    values = to_plain(values)
    if pa.types.is_boolean(values.type):
        return None
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values)
        if not leading_zeros and pc.any(pc.match_substring_regex(values, LEADING_ZERO)).as_py():
            return None
    try:
        numbers = values.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    # + 0.0 turns -0.0 into 0.0, so that both spell the same category.
    array = as_numpy(numbers) + 0.0
    exact = pa.types.is_floating(values.type) or (np.abs(array) < 2.0**53).all()
    return array if exact and np.isfinite(array).all() else None


def with_decimal_points(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return numbers with decimal commas as text with points; None for everything else."""
    if not is_text(column.type) or not pc.any(pc.match_substring(column, ",")).as_py():
        return None
    cells = pc.utf8_trim_whitespace(column)
    empty = pc.or_(pc.equal(cells, ""), pc.match_substring_regex(cells, NO_NUMBER))
    numbers = pc.match_substring_regex(cells, r"^-?[0-9]+(?:,[0-9]+)?$")
    if not pc.all(pc.or_(numbers, empty)).as_py():
        return None
    return pc.replace_substring(cells, ",", ".")


def first_not_number(values: pa.Array, *, leading_zeros: bool = False) -> Any:
    """Return the first value that `parse_numbers` does not take for a number, for messages."""
    each = (values.slice(k, 1) for k in range(len(values)))
    numbers = ((one, parse_numbers(one, leading_zeros=leading_zeros)) for one in each)
    return next((one for one, number in numbers if number is None), values)[0].as_py()


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
    is_slider = kind != "nominal" and len(observed.unique()) > MAX_CODES
    numbers = parse_numbers(observed, leading_zeros=is_slider)
    if numbers is None:
        texts = observed.take(pc.sort_indices(observed.cast(pa.string())))
        chosen: Literal["nominal", "ordinal"] = "nominal" if kind == "auto" else kind
        if chosen == "ordinal" and not pa.types.is_boolean(observed.type):
            raise InputError(
                "an ordinal scale of text needs an order: pass categories from lowest to highest "
                f"({option('categories', ['A', 'B', 'C'])}; found: {listed(texts)})"
            )
        return Scale(chosen, texts, np.arange(1.0, len(texts) + 1))
    values, first = np.unique(numbers, return_index=True)
    stays_text = is_text(observed.type) and not from_text and parse_numbers(observed) is not None
    categories = observed.take(as_arrow(first)) if stays_text else to_categories(values)
    return Scale("ordinal" if kind == "auto" else kind, categories, values)


def _scale_of_listed(
    categories: Any,
    kind: Literal["nominal", "ordinal"],
    observed: pa.Array | None = None,
) -> Scale:
    """Return a scale of listed categories.

    ``observed`` holds the labels: listed numbers stay text where the labels are text.
    """
    is_list = isinstance(categories, Sized) and not isinstance(categories, str | set | frozenset)
    if not is_list or getattr(categories, "shape", None) == () or len(categories) == 0:
        raise InputError(
            f"categories must be a list of at least one category, not {shown(categories)}"
        )
    try:
        given = pa.array(list(categories))
    except (pa.ArrowException, OverflowError, UnicodeError):
        # Of mixed types, or integers beyond 64 bits.
        try:
            texts = [str(category) for category in categories]
        except ValueError:  # of an integer of thousands of digits
            value = max((each for each in categories if isinstance(each, int)), key=abs)
            raise InputError(f"categories name {shown(value)}: list numbers or text") from None
        given = make_column("categories", texts)
    if pa.types.is_nested(given.type):
        raise InputError(f"categories are {shown(categories)}: list numbers or text")
    if given.null_count:
        raise InputError("categories contain an empty one: name every category")
    numbers = parse_numbers(given)
    if observed is not None and parse_numbers(observed, leading_zeros=True) is None:
        numbers = None
    keys = given.cast(pa.string()).to_pylist() if numbers is None else numbers.tolist()
    counts = Counter(keys)
    named = zip(given.to_pylist(), keys, strict=True)
    repeated = sorted({str(category) for category, key in named if counts[key] > 1})
    if repeated:
        raise InputError(f"categories name {listed(repeated)} twice: list each category once")
    if numbers is None:
        return Scale(kind, given, np.arange(1.0, len(given) + 1))
    values = np.sort(np.asarray(keys))
    return Scale(kind, to_categories(values), values)


def _name(value: Any) -> str:
    """Return a category as text; booleans as true and false, as in files."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def take_binary_codes_as_classes(scale: Scale) -> Scale:
    """Return the numbers 0 and 1, 1 and 2, or -1 and 1 as the codes of two classes."""
    if scale.is_ordinal and tuple(scale.values) in _BINARY_CODES:
        return _as_classes(scale, "there are only two")
    return scale


def judge_order(scale: Scale, layout: Layout) -> Scale:
    r"""Return numbers as a scale or as the codes of classes, as the labels decide, with the reason.

    On a scale, annotators who disagree give neighbouring labels, so labels agree better as numbers than
    as classes. Krippendorff's :math:`\alpha` is compared for both: numbers are classes if
    :math:`0.8\,\alpha_\mathrm{interval} - \alpha_\mathrm{nominal}` is below 0 by two standard errors, over
    items; or if some neighbours are confused clearly less than half as often as chance would have it,
    because classes that come in pairs, 0 with 1 and 2 with 3, agree well as numbers, too. With too few
    labels to tell, and with more than `MAX_CODES` numbers or fractions, numbers are a scale.
    """
    values = scale.values
    few = 2 < len(scale) <= MAX_CODES
    if not (scale.is_ordinal and few) or (values != np.round(values)).any():
        return scale
    counts = _label_counts(layout, len(scale))
    counts = counts[counts.sum(axis=1) > 1]
    n_disputed = np.count_nonzero(np.count_nonzero(counts, axis=1) > 1)
    why = "the labels do not show otherwise"
    as_scale = f"numbers taken as a scale: {{}}; {option('scale', 'nominal')} takes them as classes"
    if n_disputed < _MIN_DISPUTED:
        return replace(scale, reason=as_scale.format(why))
    as_numbers, of_numbers = _alpha(counts, (values[:, None] - values) ** 2)
    as_classes, of_classes = _alpha(counts, (values[:, None] != values).astype(np.float64))
    difference = _RATIO * as_numbers - as_classes
    influence = _RATIO * of_numbers - of_classes
    error = _STANDARD_ERRORS * np.sqrt((influence**2).sum())
    alphas = f"(alpha {as_numbers:.2f}) than as classes ({as_classes:.2f})"
    if difference < -error:
        return _as_classes(scale, f"labels do not agree clearly better as numbers {alphas}")
    apart = _rarely_confused_neighbours(counts)
    if len(apart):
        low, high = scale.names[apart[0]], scale.names[apart[0] + 1]
        return _as_classes(scale, f"{low} and {high} are hardly ever confused")
    if difference > error:
        why = f"labels agree better as numbers {alphas}"
    return replace(scale, reason=as_scale.format(why))


def _as_classes(scale: Scale, why: str) -> Scale:
    reason = f"numbers taken as classes: {why}; {option('scale', 'ordinal')} takes them as a scale"
    return replace(scale, kind="nominal", reason=reason)


def _label_counts(layout: Layout, n_categories: int) -> Floats:
    """Return how many labels of each category the first items have, items x categories."""
    labels_before = layout.cell_ptr[layout.item_ptr]
    n_items = max(int(np.searchsorted(labels_before, _MAX_LABELS, side="right")) - 1, 1)
    n_items = min(n_items, len(layout.item_ptr) - 1)
    cells = slice(0, int(layout.item_ptr[n_items]))
    item = np.repeat(np.arange(n_items), np.diff(layout.item_ptr[: n_items + 1]))
    counts = np.zeros((n_items, n_categories))
    counts[item, layout.cell_category[cells]] = np.diff(layout.cell_ptr[: cells.stop + 1])
    return counts


def _alpha(counts: Floats, difference: Floats) -> tuple[float, Floats]:
    """Return Krippendorff's alpha for squared differences of categories, and its influence function.

    Alpha is 1 - observed / expected disagreement. The sum of squared influences is the variance of
    alpha over samples of items.
    """
    per_item = counts.sum(axis=1)
    total = counts.sum(axis=0)
    n = total.sum()
    observed = (counts @ difference * counts).sum(axis=1) / (per_item - 1.0)
    expected = total @ difference @ total / (n - 1.0)
    ratio = observed.sum() / expected
    gradient = (2.0 * difference @ total - expected) / (n - 1.0)  # of expected, per label
    return 1.0 - ratio, (ratio * (counts @ gradient) - observed) / expected


def _rarely_confused_neighbours(counts: Floats) -> NDArray[np.intp]:
    """Return neighbours that are confused clearly less than half as often as chance would have it.

    Chance is quasi-independence: of the pairs of different labels of an item, a pair of categories has
    a share that is a product of a factor per category.
    """
    pairs = counts.T @ (counts / (counts.sum(axis=1, keepdims=True) - 1.0))
    np.fill_diagonal(pairs, 0.0)
    margin = pairs.sum(axis=1)
    factor = np.sqrt(margin)
    for _ in range(_N_STEPS):
        others = factor.sum() - factor
        factor = np.sqrt(factor * margin / np.maximum(others, np.finfo(np.float64).tiny))
    least = _LEAST_CONFUSED * factor[1:] * factor[:-1]
    return np.flatnonzero(least - np.diag(pairs, 1) > _STANDARD_ERRORS * np.sqrt(least))
