"""Simulated labels, made by all cores: 10 per item, 5 categories."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.observations import Labels, Scale

PER_ITEM, N_CATEGORIES = 10, 5
_CHUNK = 1_000_000  # items

Drawn = tuple[NDArray[np.uint8], NDArray[np.int32]]
"""Categories and annotators, items x labels per item; the categories of an item rise."""


def make_labels(n_labels: int, n_annotators: int, *, power_law: bool = False) -> Labels:
    """Return labels that are right with probability 0.7.

    With a power law, annotator s has a share of 1/s of the labels.
    """

    def draw(rng: np.random.Generator, n_items: int) -> Drawn:
        shape = (n_items, PER_ITEM)
        truth = rng.integers(N_CATEGORIES, size=(n_items, 1), dtype=np.uint8)
        drawn = rng.integers(N_CATEGORIES, size=shape, dtype=np.uint8)
        category = np.where(rng.random(shape, dtype=np.float32) < 0.7, truth, drawn)
        category.sort(axis=1)
        if power_law:
            return category, np.exp(rng.random(shape) * np.log(n_annotators)).astype(np.int32)
        return category, rng.integers(n_annotators, size=shape, dtype=np.int32)

    return _make(n_labels, n_annotators, draw, Scale.nominal(list("abcde")))


_RELIABILITIES = np.array([0.1, 0.7, 0.95], dtype=np.float32)
_SPREAD = np.float32(0.2)  # standard deviation of opinions, as a share of the scale


def make_opinions(n_labels: int, n_annotators: int) -> Labels:
    """Return labels from 1 to 5 around each item's mean opinion, some of them random."""
    reliability = np.random.default_rng(1).choice(_RELIABILITIES, n_annotators)

    def draw(rng: np.random.Generator, n_items: int) -> Drawn:
        shape = (n_items, PER_ITEM)
        annotator = rng.integers(n_annotators, size=shape, dtype=np.int32)
        opinion = rng.random((n_items, 1), dtype=np.float32)
        opinion = opinion + _SPREAD * rng.standard_normal(shape, dtype=np.float32)
        serious = np.clip(N_CATEGORIES * opinion, 0, N_CATEGORIES - 1).astype(np.uint8)
        drawn = rng.integers(N_CATEGORIES, size=shape, dtype=np.uint8)
        is_serious = rng.random(shape, dtype=np.float32) < reliability[annotator]
        labels = np.where(is_serious, serious, drawn)
        order = np.argsort(labels, axis=1)
        return np.take_along_axis(labels, order, axis=1), np.take_along_axis(
            annotator, order, axis=1
        )

    return _make(n_labels, n_annotators, draw, Scale.ordinal([1, 2, 3, 4, 5]))


def _make(
    n_labels: int,
    n_annotators: int,
    draw: Callable[[np.random.Generator, int], Drawn],
    scale: Scale,
) -> Labels:
    """Return labels of items that are drawn in chunks."""
    n_items = n_labels // PER_ITEM
    category = np.empty((n_items, PER_ITEM), dtype=np.uint8)
    annotator = np.empty((n_items, PER_ITEM), dtype=np.int32)

    def fill(first: int) -> None:
        chunk = slice(first, min(first + _CHUNK, n_items))
        rng = np.random.default_rng(first)
        category[chunk], annotator[chunk] = draw(rng, chunk.stop - first)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n_items, _CHUNK)))
    annotator.reshape(-1)[:n_annotators] = np.arange(n_annotators)  # everybody has a label
    return _as_labels(category, annotator.reshape(-1), n_annotators, scale)


def _as_labels(
    category: NDArray[np.uint8], annotator: NDArray[np.int32], n_annotators: int, scale: Scale
) -> Labels:
    n_items = len(category)
    is_first = np.ones(category.shape, dtype=np.bool_)
    is_first[:, 1:] = category[:, 1:] != category[:, :-1]
    cell = np.flatnonzero(is_first)
    n_cells = is_first.sum(axis=1, dtype=np.uint8)
    return Labels(
        items=pa.array(np.arange(n_items)),
        annotators=pa.array(np.arange(n_annotators)),
        scale=scale,
        item_ptr=np.append(0, np.cumsum(n_cells, dtype=np.int64)),
        cell_category=category.reshape(-1)[cell].astype(np.int32),
        cell_ptr=np.append(cell, category.size),
        annotator=annotator,
        row=np.empty(0, dtype=np.int64),
        known=np.full(n_items, -1, dtype=np.int32),
    )
