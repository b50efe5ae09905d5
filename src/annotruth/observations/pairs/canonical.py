"""Comparisons in an order that depends on no name and on no order of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, mix_bits
from annotruth.observations.frames import as_arrow
from annotruth.observations.layout import Colors, RowCodes, canonical_orders
from annotruth.observations.pairs.table import OUTCOMES, Comparisons
from annotruth.observations.pairs.votes import (
    EXCHANGED,
    covariates_in_order_of_codes,
    in_order_of_codes,
)

_ANNOTATOR = 2 * len(OUTCOMES)  # what an annotator is in a comparison, after what items can be


def in_canonical_order(data: Comparisons) -> Comparisons:
    """Return comparisons with items, annotators and rows in an order that follows from the votes.

    Names and the order of rows do not matter for it, nor do sides where they are not known. Contexts
    are left out.
    """
    left, right = data.left.astype(np.int64), data.right.astype(np.int64)
    annotator = data.annotator_of_comparison()
    # Labels of comparisons, given by items and annotators, say what these are in a comparison.
    rows = RowCodes(
        np.tile(np.arange(data.n_comparisons), 3),
        np.concatenate([left, right, data.n_items + annotator]),
        np.concatenate([*_parts_of_items(data), np.full(data.n_comparisons, _ANNOTATOR)]),
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
    made = Comparisons.from_codes(
        *(codes[order] for codes in (left, right, annotator, outcome)),
        items=data.items.take(as_arrow(items)),
        annotators=data.annotators.take(as_arrow(annotators)),
        covariates={name: values[order] for name, values in covariates.items()},
        sides_known=data.sides_known,
        frame=data.frame,
    )
    weight = data.annotator_weight
    return replace(made, annotator_weight=None if weight is None else weight[annotators])


def _parts_of_items(data: Comparisons) -> tuple[Codes, Codes]:
    """Return what the left and the right items are: winners, losers or tied, and on which side."""
    outcome = data.outcome.astype(np.int64)
    if data.sides_known:
        return outcome, len(OUTCOMES) + outcome
    return outcome, EXCHANGED[outcome]


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
