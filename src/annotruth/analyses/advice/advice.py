"""`Advice`: which items need labels, whom to ask, whom to drop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from annotruth.analyses.advice.annotators import (
    NOBODY,
    AnnotatorAdvice,
    Workload,
    annotator_advice,
    even_workload,
)
from annotruth.analyses.advice.generic import OpinionBasis, ScoreBasis, one_coin_classes
from annotruth.analyses.advice.items import (
    LEAST_GAIN,
    MAX_PER_ROUND,
    ItemAdvice,
    item_advice,
    share_out,
)
from annotruth.analyses.advice.latent_classes import LatentClassBasis
from annotruth.errors import InputError, counted
from annotruth.io.tasks import Task
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import Estimator
from annotruth.models.base_fit import table_of
from annotruth.models.fits.notes import to_dicts
from annotruth.models.registry import MODELS, get_model
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.frames import from_arrow
from annotruth.observations.validate import is_integer

# What completion offers.
AdviceBasis: TypeAlias = LatentClassBasis | OpinionBasis | ScoreBasis
"""What advice needs to know of a fit: how uncertain items are, and what labels gain."""


@dataclass(frozen=True, eq=False)
class Advice:
    """Which items need labels, whom to ask and whom to drop, by one fit.

    Attributes
    ----------
    fit
        The fit that the advice is drawn from.
    budget
        How many labels there are to spend; None for no limit.
    add
        How many labels each item should get in the next round.
    of_items
        The status of every item, and why.
    of_annotators
        The verdict on every annotator, and why.

    Examples
    --------
    >>> import annotruth as at
    >>> made = at.simulate.crowd(n_items=40, n_annotators=12, labels_per_item=4, seed=1)
    >>> advice = at.next_labels(made.labels, budget=30)
    >>> advice.n_add
    30
    >>> list(advice.items().columns)
    ['item', 'n_labels', 'status', 'add', 'why', 'uncertainty', 'gain']
    """

    fit: Fit
    budget: int | None
    add: Codes
    of_items: ItemAdvice
    of_annotators: AnnotatorAdvice

    def __repr__(self) -> str:
        return f"Advice({self.lines()[0]}: {self.fit.model} on {self.fit.data.describe()})"

    @property
    def n_add(self) -> int:
        """How many labels to add in all."""
        return int(self.add.sum())

    def items(self) -> Any:
        """Return one row per item: status, labels to add, why, uncertainty and gain."""
        return from_arrow(self.item_table(), self.fit.data.frame)

    def annotators(self) -> Any:
        """Return one row per annotator: verdict, whether to ask, reason, and information."""
        return from_arrow(self.annotator_table(), self.fit.data.frame)

    def assignments(self, max_per_annotator: int | None = None) -> Any:
        """Return which annotator should label which item, the highest gain first.

        Nobody gets an item they have labelled. Where all of those to ask have labelled an item, the
        annotator is missing: find a new one.

        Parameters
        ----------
        max_per_annotator
            How many labels one annotator gets at most; beyond it, the annotator is missing. If not
            given, it is a third above an even share, and those who have as many get more only where
            all others of those to ask have labelled the item.
        """
        return from_arrow(self.assignment_table(max_per_annotator), self.fit.data.frame)

    def assignment_table(self, max_per_annotator: int | None = None) -> pa.Table:
        """Return the table of assignments in Arrow."""
        data = self.fit.data
        item, annotator = self.assigned(max_per_annotator)
        return pa.table(
            {
                "item": data.items.take(pa.array(item)),
                "annotator": data.annotators.take(pa.array(annotator, mask=annotator == NOBODY)),
            }
        )

    def tasks(self) -> list[Task]:
        """Return one task per item that needs labels, for labelling tools; highest gain first."""
        data = self.fit.data
        item, annotator = self.assigned()
        names = data.annotators.take(pa.array(annotator, mask=annotator == NOBODY)).to_pylist()
        starts = np.flatnonzero(np.diff(item, prepend=-1)).tolist()  # an item's are consecutive
        rows = pa.array(item[starts])
        ids = data.items.take(rows).to_pylist()
        content = pa.table({n: c.take(rows) for n, c in data.covariates.items.items()}).to_pylist()
        gain = self.of_items.gain[item[starts]].tolist()
        return [
            Task(
                ids[n],
                content[n] if content else {},
                [name for name in names[start:end] if name is not None],
                end - start,
                gain[n],
            )
            for n, (start, end) in enumerate(pairwise([*starts, len(item)]))
        ]

    def assigned(self, max_per_annotator: int | None = None) -> tuple[Codes, Codes]:
        """Return the assignments as codes; `NOBODY` stands for a new annotator."""
        if max_per_annotator is None:
            return self._evenly_assigned
        if not is_integer(max_per_annotator) or max_per_annotator < 1:
            raise InputError(
                f"max_per_annotator is {max_per_annotator!r}: give a whole number from 1"
            )
        workload = Workload(self.of_annotators, max_per_annotator, is_strict=True)
        return assign(self.fit.data, self.add, self.of_items.gain, workload)

    @cached_property
    def _evenly_assigned(self) -> tuple[Codes, Codes]:
        workload = even_workload(self.of_annotators, self.n_add)
        return assign(self.fit.data, self.add, self.of_items.gain, workload)

    def item_table(self) -> pa.Table:
        """Return the table of items in Arrow."""
        data, items = self.fit.data, self.of_items
        return table_of(
            {
                "item": data.items,
                "n_labels": data.labels_per_item,
                "status": items.status.tolist(),
                "add": self.add,
                "why": items.why,
                "uncertainty": items.uncertainty,
                "gain": items.gain,
            }
        )

    def annotator_table(self) -> pa.Table:
        """Return the table of annotators in Arrow."""
        return self.of_annotators.full_table(self.fit)

    def tables(self) -> dict[str, pa.Table]:
        """Return all tables by name, to be written to files."""
        return {
            "items": self.item_table(),
            "annotators": self.annotator_table(),
            "assignments": self.assignment_table(),
        }

    def summary(self) -> str:
        """Return the advice in a few lines, after what limits it."""
        return "\n".join([*self.fit.heading_lines(), *self.lines()])

    def lines(self) -> list[str]:
        """Return the lines on what to add and whom to ask."""
        data = self.fit.data
        if self.fit.is_void:
            return [
                "ask nobody yet: check the task and its instructions before you buy more labels"
            ]
        n_items = int(np.count_nonzero(self.add))
        add = f"add {counted(self.n_add, 'label')} to {counted(n_items, 'item')}"
        if n_items and self.add.max() == MAX_PER_ROUND:
            add += f", at most {MAX_PER_ROUND} per item in one round"
        if not self.n_add:
            add = f"add no labels: one more is expected to gain less than {LEAST_GAIN:g} on every item"
        elif self.budget is not None and self.n_add < self.budget:
            add += f"; keep the other {self.budget - self.n_add:,} for the next round"
        ask = int(self.of_annotators.ask.sum())
        return [
            add,
            f"items: {_counts(self.of_items.count())}",
            f"annotators: {_counts(self.of_annotators.count())}",
            f"ask {ask:,} of {data.n_annotators:,} annotators, the most informative",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts of the advice, as ``annotruth next --json`` prints them."""
        data = self.fit.data
        return {
            "model": self.fit.model,
            "n_items": data.n_items,
            "n_annotators": data.n_annotators,
            "n_labels": data.n_labels,
            "budget": self.budget,
            "add": self.n_add,
            "items": self.of_items.count(),
            "annotators": self.of_annotators.count(),
            "ask": int(self.of_annotators.ask.sum()),
            "notes": to_dicts(self.fit.notes),
        }


def basis_of(fit: Fit) -> AdviceBasis:
    """Return the basis of a fit: its model's latent classes, or what every fit has.

    Nothing is fitted: parameters, distributions and labels are those of the fit.
    """
    estimator = estimator_of(fit)
    classes = None if estimator is None else estimator.latent_classes()
    if classes is not None:
        return LatentClassBasis(fit, classes)
    if fit.distribution is None:
        return ScoreBasis(fit)
    if fit.data.scale.is_ordinal:
        return OpinionBasis(fit)
    return LatentClassBasis(fit, one_coin_classes(fit))


def estimator_of(fit: Fit) -> Estimator | None:
    """Return an estimator that holds the fit; None for a model that is not registered."""
    if fit.model not in MODELS:
        return None
    # The engine of the fit may not be at hand; the tolerance says which arithmetic it used.
    options = {name: value for name, value in fit.settings.items() if name != "engine"}
    return get_model(fit.model)(**options).load_fit(fit)


def advise(fit: Fit, budget: int | None = None, *, basis: AdviceBasis | None = None) -> Advice:
    """Return which items need labels, whom to ask and whom to drop, by a fit of any model.

    Nothing is fitted again. Without a budget every item gets the labels that are expected to gain
    at least `LEAST_GAIN`, at most `MAX_PER_ROUND` of them; with one, those that gain most.
    ``basis`` is that of the fit, where it is at hand.
    """
    check_budget(budget)
    basis = basis_of(fit) if basis is None else basis
    people = annotator_advice(fit, basis.label_gain)
    items = item_advice(fit, basis.assess(people.ask))
    add = share_out(budget, items.uncertainty, items.gain, LEAST_GAIN, MAX_PER_ROUND)
    return Advice(fit, budget, add, items, people)


def check_budget(budget: int | None) -> None:
    """Refuse a budget that is not a number of labels."""
    if budget is not None and (not is_integer(budget) or budget < 1):
        raise InputError(f"budget is {budget!r}: give a whole number of labels from 1")


def _counts(counts: Mapping[str, int]) -> str:
    """Write the words that occur with their counts."""
    return ", ".join(f"{word} {count:,}" for word, count in counts.items() if count)


def assign(labels: Labels, add: Codes, gain: Floats, workload: Workload) -> tuple[Codes, Codes]:
    """Assign the labels to add: codes of items, and of annotators or `NOBODY`.

    Items with the highest gain choose first, among the annotators who have not labelled them.
    """
    starts = labels.cell_ptr[labels.item_ptr]
    items: list[int] = []
    annotators: list[int] = []
    for e in np.argsort(-gain, kind="stable").tolist():
        wanted = int(add[e])
        if not wanted:
            continue
        labelled_by = set(labels.annotator[starts[e] : starts[e + 1]].tolist())
        chosen = workload.choose(wanted, excluded=labelled_by)
        items += [e] * wanted
        annotators += chosen + [NOBODY] * (wanted - len(chosen))
    return np.array(items, dtype=np.int64), np.array(annotators, dtype=np.int64)
