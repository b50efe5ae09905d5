"""`Advice`: which items need more labels, which have enough, and whom to ask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.advice.crowd import Crowd, judge
from annotruth.advice.spending import NOBODY, assign, share_out
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.labels.formatting import counted
from annotruth.labels.frames import from_arrow
from annotruth.labels.validate import is_whole
from annotruth.models.base_fit import TOO_FEW
from annotruth.models.em import ProgressCallback
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.model import RobustGPM

LEAST_GAIN = 0.001
"""Labels that gain less, in squared Hellinger distance, are not asked for.

Opinions on five categories are there after some 20 labels by reliable people, a class when it is
certain to some 0.999.
"""

_ALIKE = 0.75  # an item is called divided where the second label has this share of the first's
_LOAD = 4 / 3  # nobody is given more than this many times an even share


@dataclass(frozen=True, eq=False)
class Advice:
    """Where the next labels are worth most.

    Attributes
    ----------
    crowd
        What the labels so far say of items and annotators.
    budget
        How many labels there were to spend; None where there was no limit.
    add
        How many labels each item should get next.
    uncertainty
        The expected squared Hellinger distance of each item's distribution from its truth.
    gain
        By how much one more label would lower it, by one of those to ask.
    divided
        Whether the two leading categories of each item have nearly the same share.
    """

    crowd: Crowd
    budget: int | None
    add: Codes
    uncertainty: Floats
    gain: Floats
    divided: NDArray[np.bool_]

    @property
    def fit(self) -> Fit:
        """What the labels so far say."""
        return self.crowd.fit

    @property
    def n_add(self) -> int:
        """How many labels are asked for."""
        return int(self.add.sum())

    @property
    def done(self) -> NDArray[np.bool_]:
        """Which items have labels enough."""
        return self.gain < LEAST_GAIN

    def items(self) -> Any:
        """Return one row an item, in the order they came: labels to add, their gain, and why."""
        return from_arrow(self.item_table(), self.fit.data.frame)

    def annotators(self) -> Any:
        """Return one row an annotator: what a label of theirs is worth, whether to ask, and why."""
        return from_arrow(self.crowd.table(), self.fit.data.frame)

    def assignments(self, most: int | None = None) -> Any:
        """Return who should label what: item, annotator, most urgent first.

        Nobody gets an item they have labelled. Where nobody is left the annotator is missing:
        ask somebody new.

        Parameters
        ----------
        most
            At most so many labels an annotator; a third above an even share where none is given.
        """
        data = self.fit.data
        item, annotator = self.assigned(most)
        table = pa.table(
            {
                "item": data.items.take(pa.array(item)),
                "annotator": data.annotators.take(pa.array(annotator, mask=annotator == NOBODY)),
            }
        )
        return from_arrow(table, data.frame)

    def assigned(self, most: int | None = None) -> tuple[Codes, Codes]:
        """Return the assignments in codes; `NOBODY` stands for somebody new."""
        crowd = self.crowd
        if most is None:
            most = math.ceil(_LOAD * self.n_add / np.count_nonzero(crowd.may_ask))
        elif not is_whole(most) or most < 1:
            raise InputError(f"most is {most!r}: give a whole number from 1")
        return assign(self.fit.data, self.add, self.gain, crowd.worth, crowd.may_ask, most)

    def item_table(self) -> pa.Table:
        """Make the items' table in Arrow."""
        data = self.fit.data
        return pa.table(
            {
                "item": data.items,
                "n_labels": data.labels_per_item,
                "add": self.add,
                "uncertainty": self.uncertainty,
                "gain": self.gain,
                "why": self._why(),
            }
        )

    def summary(self) -> str:
        """Tell the advice in a few lines."""
        data, done, crowd = self.fit.data, self.done, self.crowd
        n_items = int(np.count_nonzero(self.add))
        told = f"add {counted(self.n_add, 'label')} to {counted(n_items, 'item')}"
        if self.budget is not None and self.n_add < self.budget:
            told += f"; the other {self.budget - self.n_add:,} of the budget would change little"
        stop, n_divided = np.count_nonzero(done), np.count_nonzero(done & self.divided)
        ask = np.count_nonzero(crowd.may_ask)
        lines = [
            f"{self.fit.model} on {data.describe()}",
            told,
            f"stop labelling {stop:,} of {data.n_items:,} items; {n_divided:,} of them are divided",
            f"ask {ask:,} of {data.n_annotators:,} annotators: their labels tell most",
        ]
        if unclear := np.count_nonzero(crowd.unclear):
            who = counted(int(unclear), "annotator has", "annotators have")
            lines.append(f"{who} {TOO_FEW}: try them on known items")
        return "\n".join(lines)

    def _why(self) -> pa.Array:
        """Say why each item gets labels, or none."""
        leads = self.fit.item_columns["may_lead"]
        several = pc.match_substring(leads, "|").to_numpy(zero_copy_only=False)
        cases = [
            (self.fit.data.known >= 0, "truth known"),
            (self.done & self.divided, "divided, and known to be"),
            (self.done, "settled"),
            (self.add == 0, "others gain more"),
            (several, "open which leads: "),
            (np.ones(len(self.add), dtype=bool), "open how far it leads: "),
        ]
        case = np.select([where for where, _ in cases], range(len(cases)))
        told = pa.array([text for _, text in cases]).take(pa.array(case))
        # Those that get labels say between what they are open.
        named = pc.if_else(pa.array(self.add > 0), leads, "")
        return pc.binary_join_element_wise(told, named, "")


def advise(
    labels: Labels,
    budget: int | None = None,
    *,
    model: RobustGPM | None = None,
    progress: ProgressCallback | None = None,
) -> Advice:
    """Fit the labels and say where more are worth most; ``budget`` of them, or all worth it."""
    if budget is not None and (not is_whole(budget) or budget < 1):
        raise InputError(f"budget is {budget!r}: give a whole number of labels from 1")
    crowd = judge(labels, model, progress)
    typical = crowd.typical_rates()
    uncertainty, gain = np.empty(labels.n_items), np.empty(labels.n_items)
    divided = np.zeros(labels.n_items, dtype=bool)
    for lo, hi, part in crowd.beliefs():
        uncertainty[lo:hi] = part.uncertainty()
        gain[lo:hi] = part.gain(typical)
        divided[lo:hi] = _divided(part.distribution())
    known = labels.known >= 0
    uncertainty[known] = gain[known] = 0.0
    return Advice(
        crowd=crowd,
        budget=budget,
        add=share_out(budget, uncertainty, gain, LEAST_GAIN),
        uncertainty=uncertainty,
        gain=gain,
        divided=divided & ~known,
    )


def _divided(distribution: Floats) -> NDArray[np.bool_]:
    """Mark items whose two leading categories have nearly the same share."""
    if distribution.shape[1] < 2:
        return np.zeros(len(distribution), dtype=bool)
    second, first = np.partition(distribution, -2, axis=1)[:, -2:].T
    alike: NDArray[np.bool_] = second >= _ALIKE * first
    return alike
