"""Sides in the order of codes, and comparisons in an order that depends on no name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats, mix_bits
from annotruth.observations.frames import as_arrow
from annotruth.observations.layout import Colors, RowCodes, canonical_orders

if TYPE_CHECKING:
    from annotruth.observations.pairs.table import Comparisons


Code = TypeVar("Code", bound=np.integer[Any])
OutcomeCode = TypeVar("OutcomeCode", bound=np.integer[Any])

EXCHANGED = np.array([1, 0, 2])
"""The code of each outcome with sides exchanged."""


def in_order_of_codes(
    left: NDArray[Code], right: NDArray[Code], outcome: NDArray[OutcomeCode]
) -> tuple[NDArray[Code], NDArray[Code], NDArray[OutcomeCode]]:
    """Return pairs with the smaller code on the left, and the outcomes exchanged where needed."""
    swapped = left > right
    return (
        np.where(swapped, right, left),
        np.where(swapped, left, right),
        np.where(swapped, EXCHANGED.astype(outcome.dtype)[outcome], outcome),
    )


def covariates_in_order_of_codes(
    left: NDArray[Code], right: NDArray[Code], covariates: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return covariates, which are differences, negated where `in_order_of_codes` exchanges sides."""
    swapped = left > right
    return {name: np.where(swapped, -values, values) for name, values in covariates.items()}


_ANNOTATOR = 2 * len(EXCHANGED)  # what an annotator is in a comparison, after what items can be


def in_canonical_order(data: Comparisons) -> Comparisons:
    """Return comparisons with items, annotators and rows in an order that follows from the votes.

    Names and the order of rows do not matter for it, nor do sides where they are not known. Contexts
    are left out.
    """
    left, right = data.left.astype(np.int64), data.right.astype(np.int64)
    annotator = data.annotator_of_comparison()
    # What the left and the right items are: winners, losers or tied, and on which side.
    of_left = data.outcome.astype(np.int64)
    of_right = len(EXCHANGED) + of_left if data.sides_known else EXCHANGED[of_left]
    # Labels of comparisons, given by items and annotators, say what these are in a comparison.
    rows = RowCodes(
        np.tile(np.arange(data.n_comparisons), 3),
        np.concatenate([left, right, data.n_items + annotator]),
        np.concatenate([of_left, of_right, np.full(data.n_comparisons, _ANNOTATOR)]),
    )
    first = (_colors_of_comparisons(data), _colors_of_nodes(data), _distinct_colors(_ANNOTATOR + 1))
    nodes = canonical_orders(rows, first)[0].annotator
    items, annotators = nodes[nodes < data.n_items], nodes[nodes >= data.n_items] - data.n_items
    place = np.argsort(items)
    left, right, outcome = place[left], place[right], data.outcome
    covariates = dict(data.covariates)
    if not data.sides_known:
        covariates = covariates_in_order_of_codes(left, right, covariates)
        left, right, outcome = in_order_of_codes(left, right, outcome)
    annotator = np.argsort(annotators)[annotator]
    keys: list[NDArray[Any]] = [*covariates.values(), outcome, right, left, annotator]
    order = np.lexsort(keys)
    made = data.from_codes(
        *(codes[order] for codes in (left, right, annotator, outcome)),
        items=data.items.take(as_arrow(items)),
        annotators=data.annotators.take(as_arrow(annotators)),
        covariates={name: values[order] for name, values in covariates.items()},
        sides_known=data.sides_known,
        frame=data.frame,
    )
    weight = data.annotator_weight
    return replace(made, annotator_weight=None if weight is None else weight[annotators])


def _colors_of_comparisons(data: Comparisons) -> Colors:
    """Return hashes of the covariates, as seen from the winner where sides are not known."""
    colors = np.ones(data.n_comparisons, dtype=np.uint64)
    for values in data.covariates.values():
        seen = np.asarray(values, dtype=np.float64)
        if not data.sides_known:
            seen = np.choose(data.outcome, [seen, -seen, abs(seen)])
        colors = mix_bits(colors + mix_bits((seen + 0.0).view(np.uint64)))  # -0.0 is 0.0
    return colors


def _colors_of_nodes(data: Comparisons) -> Colors:
    """Return hashes of items, which are alike, and of annotators, by their weights."""
    item, annotator = _distinct_colors(2)
    of_annotators = np.full(data.n_annotators, annotator)
    if data.annotator_weight is not None:
        weight = np.ascontiguousarray(data.annotator_weight, dtype=np.float64)
        of_annotators = mix_bits(of_annotators + mix_bits(weight.view(np.uint64)))
    return np.concatenate([np.full(data.n_items, item), of_annotators])


def _distinct_colors(n: int) -> Colors:
    return mix_bits(np.arange(1, n + 1, dtype=np.uint64))  # not 0, whose hash is 0
