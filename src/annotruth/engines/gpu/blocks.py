"""Labels on the card that a kernel reads: all of them, or those of some items and folds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from annotruth.engines.gpu.device import check_room
from annotruth.engines.gpu.session import GPUSession
from annotruth.kernels.shared import NEVER, NOT_SAMPLED


@dataclass(frozen=True, eq=False)
class LabelBlock:
    """Labels on the card, sorted by item and category."""

    session: GPUSession  # the session they belong to
    begin: Any  # where the labels of each item begin, and one word per label
    label: Any
    known: Any  # the category of each item's known truth, or -1; None if none is known
    item: Any = None  # which of the session's items these are; None: all of them
    fold: Any = None  # the fold of each label; None where no label is held out

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.begin) - 1

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.label)

    def arguments(self) -> tuple[Any, ...]:
        """Return what a kernel takes first: where labels begin, labels, known truths, and items."""
        return self.begin, self.label, self.known, np.int64(self.n_items)

    def of_items(self, values: Any) -> Any:
        """Return an array of the session's items for the items of the block."""
        return values if self.item is None else values[self.item]

    def item_of_label(self) -> Any:
        """Return the place of each label's item in the block."""
        xp = self.session.device.xp
        labels = xp.arange(self.n_labels, dtype=np.uint32)
        return xp.searchsorted(self.begin[1:], labels, side="right").astype(np.uint32)

    @cached_property
    def by_row(self) -> tuple[Any, Any, np.int64]:
        """The labels sorted by row, annotator x categories + category: rows, items, their number."""
        session, shift = self.session, np.uint32(self.session.category_shift)
        mask = (np.uint32(1) << shift) - np.uint32(1)
        check_room(session.device, 40 * self.n_labels, "the labels sorted by annotator")
        row = (self.label & mask) * np.uint32(session.n_categories)
        row += self.label >> shift
        order = session.device.xp.argsort(row, kind="stable")
        return row[order], self.item_of_label()[order], np.int64(self.n_labels)

    def where(self, is_kept: Any) -> LabelBlock:
        """Return the block of the labels that are kept, without items that have none of them."""
        session, xp = self.session, self.session.device.xp
        check_room(session.device, 20 * self.n_labels, "the labels of a sample")
        n_before = xp.zeros(self.n_labels + 1, np.int64)
        n_before[1:] = xp.cumsum(is_kept)
        begin = n_before[self.begin.astype(np.int64)]
        item = xp.flatnonzero(begin[1:] > begin[:-1])
        return LabelBlock(
            session,
            xp.concatenate([begin[item], begin[-1:]]).astype(np.uint32),
            self.label[is_kept],
            None if self.known is None else self.known[item],
            item if self.item is None else self.item[item],
            None if self.fold is None else self.fold[is_kept],
        )


def all_labels(session: GPUSession) -> LabelBlock:
    """Return all labels of a session."""
    return session.cached(
        "all labels", lambda: LabelBlock(session, session.begin, session.label, session.known)
    )


def sampled_labels(session: GPUSession, fold: str) -> LabelBlock:
    """Return the labels of items that are in folds; ``fold`` is the name of the array of folds."""

    def make() -> LabelBlock:
        folds = session.array(fold, np.int8)
        block = LabelBlock(session, session.begin, session.label, session.known, fold=folds)
        return block.where(folds != np.int8(NOT_SAMPLED))

    return session.cached("sampled labels", make)


def kept_labels(session: GPUSession, fold: str, held: int) -> LabelBlock:
    """Return the labels that are kept while the fold ``held`` is held out; all if it is NEVER."""
    if held == NEVER:
        return all_labels(session)
    sampled = sampled_labels(session, fold)
    return session.cached(
        f"labels but those of fold {held}", lambda: sampled.where(sampled.fold != np.int8(held))
    )
