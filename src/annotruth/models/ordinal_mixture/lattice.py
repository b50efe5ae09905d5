"""Scores and precisions on a lattice, and the labels they make likely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.rounding import bounds_of, mass_between

STEP = 0.1
"""How far apart the log-precisions are: the standard deviations are 5% apart."""

_GAPS = 32  # between the nodes of a short scale; longer ones have a node a category
_MOST_GAPS = 128
_DIFFICULTIES = np.arange(-2, 3)
_SHIFT = 6  # steps of precision between one difficulty and the next
_LEAST = 1e-300  # so that what cannot be has a logarithm


class Lattice(NamedTuple):
    """Where scores, precisions and difficulties may lie.

    A label of an annotator on ``level`` for an item of difficulty j has the log-precision of row
    ``level + shift[j]`` of the tables.
    """

    nodes: Floats  # the scores
    edges: Floats  # each score stands for those between two edges
    anchor: Codes  # the node of each category's value
    prior: Floats  # difficulties x nodes
    shift: Codes  # by difficulty
    difficulty: Floats  # by how much each difficulty widens the noise
    noise: Floats  # the standard deviation of each level
    log_prior: Floats  # of each level
    usual: int  # the level of the prior's noise
    probability: Floats  # rows x categories x nodes
    log_probability: Floats


def shape_of(values: Floats) -> tuple[int, int, int]:
    """Tell rows, categories and nodes of the tables, without making them."""
    loosest, tightest = _deviations(values)
    levels = round(2.0 * np.log(loosest / tightest) / STEP) + 1
    rows = levels + _SHIFT * (len(_DIFFICULTIES) - 1)
    return rows, len(values), len(_nodes(values))


def lattice_of(values: Floats, expertise_shape: float, difficulty_shape: float) -> Lattice:
    r"""Lay a lattice over a scale and tabulate its rounded Gaussians.

    A Gaussian of mean z and precision :math:`\tau` is rounded at the midpoints
    :math:`b_1, \ldots, b_{N-1}` between the categories' values, the ends of the scale open:

    .. math:: p(n) = \Phi(\sqrt\tau (b_n - z)) - \Phi(\sqrt\tau (b_{n-1} - z)).

    Scores are uniform on the scale. Precisions have Gamma priors of the given shapes, as densities
    of their logarithms: those of annotators with the mean that leaves noise of a quarter of the
    scale, the factors that items put to them with mean 1.
    """
    nodes = _nodes(values)
    middles = (nodes[1:] + nodes[:-1]) / 2.0
    edges = np.concatenate([nodes[:1], middles, nodes[-1:]])
    widths = np.diff(edges) if len(nodes) > 1 else np.ones(1)

    rows, *_ = shape_of(values)
    loosest, _ = _deviations(values)
    shift = _SHIFT * (_DIFFICULTIES - _DIFFICULTIES[0])
    log_tau = STEP * (np.arange(rows) - shift[-1] // 2) - 2.0 * np.log(loosest)
    away = bounds_of(values)[:, np.newaxis] - nodes
    at = np.exp(log_tau / 2.0)[:, np.newaxis, np.newaxis] * away
    probability = np.maximum(np.ascontiguousarray(mass_between(at, axis=1)), _LEAST)

    log_lambda = log_tau[shift[-1] // 2 : rows - shift[-1] // 2]
    # As a share of the usual precision; the loosest noise is 8 times the usual.
    log_share = log_lambda + 2.0 * np.log(loosest / 8.0)
    log_gamma = STEP * _SHIFT * _DIFFICULTIES
    log_weight = difficulty_shape * (log_gamma - np.exp(log_gamma))
    weight = np.exp(log_weight - log_weight.max())
    return Lattice(
        nodes=nodes,
        edges=edges,
        anchor=np.abs(nodes - values[:, np.newaxis]).argmin(axis=1),
        prior=np.outer(weight / weight.sum(), widths / widths.sum()),
        shift=shift,
        difficulty=np.exp(-log_gamma / 2.0),
        noise=np.exp(-log_lambda / 2.0),
        log_prior=expertise_shape * (log_share - np.exp(log_share)),
        usual=int(np.abs(log_share).argmin()),
        probability=probability,
        log_probability=np.log(probability),
    )


def _nodes(values: Floats) -> Floats:
    """Place nodes on every category and evenly between them; on long scales, evenly."""
    gaps = len(values) - 1
    if gaps > _MOST_GAPS:
        return np.linspace(values[0], values[-1], _MOST_GAPS + 1)
    each = -(-_GAPS // gaps) if gaps else 1
    return np.interp(np.arange(gaps * each + 1) / each, np.arange(gaps + 1), values)


def _deviations(values: Floats) -> tuple[float, float]:
    """Bound the noise: from twice the scale down to where every label is the nearest."""
    if len(values) == 1:
        return 2.0, 1.0
    extent = float(values[-1] - values[0])
    return 2.0 * extent, max(float(np.diff(values).min()) / 8.0, extent / 256.0)
