"""The ways in which an annotator may answer: how often seriously, and what otherwise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats, Singles

KINDS = ("random", "repeated", "inverted", "mixed")

ALWAYS = 0.995
"""The reliability of those who are always serious, but for slips."""

# Of reliability, in ten equal levels: people are mostly serious or hardly ever, seldom in between.
_LEVEL_WEIGHTS = np.array([2.0, 1.5, 0.5, 0.15, 0.15, 1.0, 1.0, 1.0, 1.0, 1.0])
_KIND_WEIGHTS = np.array([0.4, 0.2, 0.05, 0.35])
_LEAST = 1e-12  # so that what cannot be has a logarithm


class Strategies(NamedTuple):
    """A list of G ways, each a kind, a shift and a reliability, with the labels they make likely.

    Tables are ways x categories x kinds of items. ``repeating`` holds for the one label that an
    annotator would repeat, ``plain`` for the others.
    """

    eps: Floats  # of every way
    kind: Codes  # of every way, a place in KINDS
    shift: Codes  # of every way
    inverted: Floats  # the share of inverted labels in every way
    log_weight: Floats  # of kind and shift
    level_weight: Floats  # of every way, among those not always serious
    plain: Floats
    repeating: Floats
    log_plain: Floats
    log_repeating: Floats
    serious: Floats  # how likely a label is serious
    serious_repeating: Floats

    def log_prior(self, always: float) -> Floats:
        """Give ``always`` to those who are always serious, the rest to the other levels."""
        prior: Floats = self.log_weight + np.log(
            np.where(self.eps == ALWAYS, always, (1.0 - always) * self.level_weight)
        )
        return prior


def strategies_of(serious: Floats, shift_weight: Floats, *, ordinal: bool) -> Strategies:
    r"""Tabulate all ways over kinds of items with the given serious distributions.

    ``serious`` is shifts x categories x kinds of items. Where the annotator is not serious, the
    label is any (random), always the same (repeated), a serious one counted from the other end
    (inverted), or one of the three each time (mixed). Only one label is tried as the repeated one,
    and it might have been any: the kinds that repeat share their weight with the N - 1 others.
    """
    shifts, categories, _ = serious.shape
    levels = len(_LEVEL_WEIGHTS)
    eps = np.append((np.arange(levels) + 0.5) / levels, ALWAYS)
    level_weight = np.append(_LEVEL_WEIGHTS / _LEVEL_WEIGHTS.sum(), 0.0)
    unmoved = serious[shifts // 2]
    chance = np.full_like(unmoved, 1.0 / categories)
    other_end = unmoved[::-1]
    plain = [chance, np.zeros_like(chance), other_end, (chance + other_end) / 3.0]
    repeating = [chance, np.ones_like(chance), other_end, (chance + other_end + 1.0) / 3.0]
    weight = _KIND_WEIGHTS / np.array([1, categories, 1, categories])
    weight = weight[: 4 if ordinal else 2]
    weight /= weight.sum()
    kind, shift, level, log_weight = _listed(weight, shift_weight, eps)
    share = eps[level][:, np.newaxis, np.newaxis]
    tables = []
    for irregular in (plain, repeating):
        own = share * serious[shift]
        rate = np.maximum(own + (1.0 - share) * np.stack(irregular)[kind], _LEAST)
        tables.append((rate, np.log(rate), np.minimum(own / rate, 1.0)))
    return Strategies(
        eps=eps[level],
        kind=kind,
        shift=shift,
        inverted=(1.0 - eps[level]) * np.array([0.0, 0.0, 1.0, 1.0 / 3.0])[kind],
        log_weight=log_weight,
        level_weight=level_weight[level],
        plain=tables[0][0],
        repeating=tables[1][0],
        log_plain=tables[0][1],
        log_repeating=tables[1][1],
        serious=tables[0][2],
        serious_repeating=tables[1][2],
    )


def _listed(
    kind_weight: Floats, shift_weight: Floats, eps: Floats
) -> tuple[Codes, Codes, Codes, Floats]:
    """List the ways that can be told apart: kind, shift, level and log-weight of each.

    What the always serious do otherwise never shows, and how somebody shifts serious labels hardly
    does who is serious less than half of the time: the former have no kind, the latter no shift.
    """
    random, middle = 0, len(shift_weight) // 2
    ways = []
    for level, often in enumerate(eps):
        for shift, share in enumerate(shift_weight):
            if often == ALWAYS:
                ways.append((random, shift, level, share))
            elif often > 0.5:
                ways += [(kind, shift, level, share * w) for kind, w in enumerate(kind_weight)]
            elif shift == middle:
                ways += [(kind, shift, level, w) for kind, w in enumerate(kind_weight)]
    kinds, shifts, levels, weights = (np.array(column) for column in zip(*ways, strict=True))
    return kinds, shifts, levels, np.log(weights)


def recorded(annotator_prior: Floats, eps: Floats) -> Floats:
    """Say what records speak for: each label was seen to be serious, or not to be."""
    said: Floats = annotator_prior @ np.log(np.stack([eps, 1.0 - eps]))
    return said


def repeated_labels(said: NDArray[np.int64], by_all: Floats | None = None) -> Codes:
    """Find, from annotators x categories counts, the label each says most beyond the crowd.

    ``by_all`` is how often the crowd says each, where these are a part of it.
    """
    share = said / np.maximum(said.sum(axis=1, keepdims=True), 1)
    crowd = said.sum(axis=0) / said.sum() if by_all is None else by_all
    beyond: Codes = (share - crowd).argmax(axis=1)
    return beyond


def mixed_over(
    weights: Floats | Singles, plain: Floats, repeating: Floats, repeated: Codes
) -> Floats:
    """Average ways' tables with each annotator's weights: annotators x categories x kinds."""
    ways, categories, kinds = plain.shape
    mixed: Floats = (weights @ plain.reshape(ways, -1)).reshape(-1, categories, kinds)
    for n in np.unique(repeated):
        who = repeated == n
        mixed[who, n] = weights[who] @ repeating[:, n]
    return mixed


def weighed_by(counts: Floats, plain: Floats, repeating: Floats, repeated: Codes) -> Floats:
    """Sum ways' tables over each annotator's counts: annotators x ways."""
    ways = len(plain)
    total: Floats = counts.reshape(len(counts), -1) @ plain.reshape(ways, -1).T
    for n in np.unique(repeated):
        who = repeated == n
        total[who] += counts[who, n] @ (repeating[:, n] - plain[:, n]).T
    return total


def normalised(log_weights: Floats) -> Floats:
    """Turn logarithms into weights that sum to 1 in every row."""
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares
