r"""What is believed of items, and how much one more label would tell.

An item is of kind k, whose opinions are :math:`\theta_k`, with the posterior probability
:math:`w_k`. Its distribution is shown as :math:`\theta = \sum_k w_k \theta_k`. How far that may be
from the truth is the item's *uncertainty*, the expected squared Hellinger distance:

.. math:: U(w) = \sum_k w_k H^2(\theta_k, \theta)
              = 1 - \sum_n \sqrt{\theta_n} \sum_k w_k \sqrt{\theta_{k,n}}.

It is not the entropy: an item known to be divided has entropy and no uncertainty. A label n comes
with probability :math:`p_n = \sum_k w_k a(n \mid k)` and turns w into
:math:`w^n_k = w_k a(n \mid k) / p_n`; its *gain* is :math:`U(w) - \sum_n p_n U(w^n)`, never below 0.

Where every item has one right answer, an item on which people are divided is of no kind: each label
would turn the posterior over, and more were asked for without end. So one more kind is thought
possible there, half and half between the two classes that most of its labels name; how many items
are of it, `annotruth.advice.divided` finds out.

Annotators are taken as found, which makes posteriors too narrow, and the more so the fewer labels
they have given. Where that widens variances by a factor f, labels here count 1/f of what they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.robust_gpm.results import Kinds, wider_by_labels
from annotruth.models.robust_gpm.strategies import normalised

MOST_NUMBERS = 4_000_000
"""How many numbers are held at once for a part of the items."""


@dataclass(frozen=True)
class Beliefs:
    """Of some items, how likely they are of each kind."""

    weights: Floats  # items x kinds, and where there is one truth a last column for the divided
    opinions: Floats  # kinds x categories
    halves: Floats | None  # items x categories: what a divided item's opinions would be

    def uncertainty(self) -> Floats:
        """Return the expected squared Hellinger distance of each item from its truth."""
        # Rounding may leave a hair below zero.
        return np.maximum(self.left(self.weights[:, np.newaxis])[:, 0], 0.0)

    def gain(self, rates: Floats) -> Floats:
        """Return by how much a label with the given rates, labels x kinds, would lower it."""
        joint = self.weights[:, np.newaxis, : rates.shape[1]] * rates
        if self.halves is not None:
            divided = self.weights[:, -1:] * (self.halves @ rates.T)
            joint = np.concatenate([joint, divided[:, :, np.newaxis]], axis=2)
        gain: Floats = self.uncertainty() - self.left(joint).sum(axis=1)
        return np.maximum(gain, 0.0)

    def after(self, rates: Floats) -> Beliefs:
        """Take in one label of each item, whose rates are given as items x kinds."""
        if self.halves is not None:
            divided = (self.halves * rates).sum(axis=1, keepdims=True)
            rates = np.concatenate([rates, divided], axis=1)
        joint = self.weights * rates
        return replace(self, weights=joint / joint.sum(axis=1, keepdims=True))

    def take(self, items: Codes) -> Beliefs:
        """Keep some items, or some of them more than once."""
        halves = None if self.halves is None else self.halves[items]
        return Beliefs(self.weights[items], self.opinions, halves)

    def distribution(self) -> Floats:
        """Return each item's mean distribution, items x categories."""
        return self._mean(self.weights[:, np.newaxis], self.opinions, self.halves)[:, 0]

    def distance(self) -> Floats:
        """Return the expected Hellinger distance of each item's distribution from its truth."""
        root = np.sqrt(self.distribution())
        affinity = root @ np.sqrt(self.opinions).T
        if self.halves is not None:
            divided = (root * np.sqrt(self.halves)).sum(axis=1, keepdims=True)
            affinity = np.concatenate([affinity, divided], axis=1)
        far = np.sqrt(np.maximum(1.0 - affinity, 0.0))
        distance: Floats = (self.weights * far).sum(axis=1)
        return distance

    def p_leads(self) -> Floats:
        """Return how likely each item's leading category truly leads; a divided item has two."""
        leaders = np.eye(self.opinions.shape[1])[self.opinions.argmax(axis=1)]
        leads = self._mean(self.weights[:, np.newaxis], leaders, self.halves)[:, 0]
        mode = self.distribution().argmax(axis=1)
        p_leads: Floats = leads[np.arange(len(mode)), mode]
        return p_leads

    def variance_of_score(self, values: Floats) -> Floats:
        """Return the variance of each item's score over its kinds, categories having values."""
        scores = np.broadcast_to(self.opinions @ values, (len(self.weights), len(self.opinions)))
        if self.halves is not None:
            scores = np.column_stack([scores, self.halves @ values])
        mean = (self.weights * scores).sum(axis=1, keepdims=True)
        variance: Floats = (self.weights * (scores - mean) ** 2).sum(axis=1)
        return variance

    def left(self, joint: Floats) -> Floats:
        """Return the uncertainty times the sum, over the last axis, of weights not normalised."""
        total = joint.sum(axis=2)
        halves = None if self.halves is None else np.sqrt(self.halves)
        share = np.sqrt(self._mean(joint, self.opinions, self.halves))
        root = self._mean(joint, np.sqrt(self.opinions), halves)
        left: Floats = total - (share * root).sum(axis=2) / np.sqrt(total)
        return left

    @staticmethod
    def _mean(joint: Floats, opinions: Floats, halves: Floats | None) -> Floats:
        mean: Floats = joint[..., : len(opinions)] @ opinions
        if halves is not None:
            mean += joint[..., -1:] * halves[:, np.newaxis]
        return mean


def share_counted(labels: Labels) -> float:
    """Return how much of what they say labels count for, as annotators are taken as found."""
    return 1.0 / wider_by_labels(labels) ** 2


def beliefs(labels: Labels, kinds: Kinds, divided: float) -> Iterator[tuple[int, int, Beliefs]]:
    """Judge the items part by part, so that items x kinds is never held for all of them."""
    for lo, hi in parts(labels, kinds):
        yield lo, hi, beliefs_of(labels, kinds, divided, lo, hi)


def parts(labels: Labels, kinds: Kinds) -> list[tuple[int, int]]:
    """Cut the items so that the work on a part needs little memory."""
    n_kinds, n_categories = kinds.opinions.shape
    numbers = labels.n_labels * n_kinds + labels.n_items * n_kinds * n_categories
    bounds = np.unique(labels.partition(1 + numbers // MOST_NUMBERS))
    return list(pairwise(bounds.tolist()))


def beliefs_of(labels: Labels, kinds: Kinds, divided: float, lo: int, hi: int) -> Beliefs:
    """Judge items lo:hi; ``divided`` is the share of those on which people are divided."""
    ends = labels.cell_ptr[labels.item_ptr[lo : hi + 1]]
    starts = ends[:-1] - ends[0]
    cells = slice(labels.item_ptr[lo], labels.item_ptr[hi])
    sizes = np.diff(labels.cell_ptr[cells.start : cells.stop + 1])
    rates = kinds.rates[
        labels.annotator[ends[0] : ends[-1]], np.repeat(labels.cell_category[cells], sizes)
    ]
    counted = share_counted(labels)
    known = labels.known[lo:hi]
    with np.errstate(divide="ignore"):
        told = np.where(known[:, np.newaxis] < 0, 0.0, np.log(kinds.gate)[known])
    logs = np.log(kinds.prior) + told + counted * np.add.reduceat(np.log(rates), starts, axis=0)
    halves = None
    if divided > 0.0:
        halves = _two_most_named(counts_of(labels, lo, hi))
        item = np.repeat(np.arange(hi - lo), np.diff(ends))
        rows = np.log((rates * halves[item]).sum(axis=1))
        pairs = labels.n_categories * (labels.n_categories - 1) / 2
        half = np.log(divided / pairs) + counted * np.add.reduceat(rows, starts)
        half[known >= 0] = -np.inf
        logs = np.column_stack([logs + np.log1p(-divided), half])
    return Beliefs(normalised(logs), kinds.opinions, halves)


def counts_of(labels: Labels, lo: int, hi: int) -> Floats:
    """Count the labels of items lo:hi by category."""
    counts = np.zeros((hi - lo, labels.n_categories))
    cells = slice(labels.item_ptr[lo], labels.item_ptr[hi])
    item = np.repeat(np.arange(hi - lo), np.diff(labels.item_ptr[lo : hi + 1]))
    sizes = np.diff(labels.cell_ptr[cells.start : cells.stop + 1])
    counts[item, labels.cell_category[cells]] = sizes
    return counts


def _two_most_named(counts: Floats) -> Floats:
    """Write one half for each of the two categories that most labels of an item name."""
    two = np.argsort(-counts, axis=1, kind="stable")[:, :2]
    halves = np.zeros_like(counts)
    np.put_along_axis(halves, two, 0.5, axis=1)
    return halves
