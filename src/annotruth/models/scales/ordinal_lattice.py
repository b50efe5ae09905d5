"""A lattice of scores and precisions, with the probabilities of labels on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.scales.subject_bias_posterior import bounds_of, mass_between

STEP = 0.1
"""Distance of the log-precisions: standard deviations are 5% apart."""

_GAPS = 32  # at least, between the nodes of a scale
_MAX_GAPS = 128
_DIFFICULTIES = np.arange(-2, 3)
_SHIFT = 6  # steps of precision between one difficulty and the next
_MIN_PROBABILITY = 1e-300  # so that logarithms are finite


class Lattice(NamedTuple):
    """The possible scores, precisions and difficulties, and tables of label probabilities.

    A label of an annotator of precision ``level`` on an item of difficulty j has the log-precision
    of row ``level + shift[j]`` of the tables.
    """

    nodes: Floats  # the scores
    edges: Floats  # each node stands for the scores between two edges
    anchor: Codes  # the node of each category's value
    prior: Floats  # difficulties x nodes
    shift: Codes  # per difficulty
    difficulty: Floats  # the factor of the noise, per difficulty
    noise: Floats  # the standard deviation, per level
    log_prior: Floats  # per level
    usual: int  # the level of the prior's noise
    probability: Floats  # rows x categories x nodes
    log_probability: Floats


def table_shape(values: Floats) -> tuple[int, int, int]:
    """Return the numbers of rows, categories and nodes of the tables, without computing them."""
    largest, smallest = _deviations(values)
    levels = round(2.0 * np.log(largest / smallest) / STEP) + 1
    rows = levels + _SHIFT * (len(_DIFFICULTIES) - 1)
    return rows, len(values), len(_nodes(values))


def make_lattice(values: Floats, expertise_shape: float, difficulty_shape: float) -> Lattice:
    r"""Return the lattice of a scale, with tables of its rounded Gaussians.

    A Gaussian of mean z and precision :math:`\tau` is rounded at the midpoints
    :math:`b_1, \ldots, b_{N-1}` between the categories' values, the ends of the scale open:

    .. math:: p(n) = \Phi(\sqrt\tau (b_n - z)) - \Phi(\sqrt\tau (b_{n-1} - z)).

    Scores are uniform on the scale. Precisions have Gamma priors of the given shapes, as densities
    of their logarithms. The mean of annotators' precisions corresponds to noise of a quarter of the
    scale; the factors of items have mean 1.
    """
    nodes = _nodes(values)
    midpoints = (nodes[1:] + nodes[:-1]) / 2.0
    edges = np.concatenate([nodes[:1], midpoints, nodes[-1:]])
    widths = np.diff(edges) if len(nodes) > 1 else np.ones(1)

    rows, *_ = table_shape(values)
    largest, _ = _deviations(values)
    shift = _SHIFT * (_DIFFICULTIES - _DIFFICULTIES[0])
    log_tau = STEP * (np.arange(rows) - shift[-1] // 2) - 2.0 * np.log(largest)
    distance = bounds_of(values)[:, np.newaxis] - nodes
    z = np.exp(log_tau / 2.0)[:, np.newaxis, np.newaxis] * distance
    probability = np.maximum(np.ascontiguousarray(mass_between(z, axis=1)), _MIN_PROBABILITY)

    log_lambda = log_tau[shift[-1] // 2 : rows - shift[-1] // 2]
    # Relative to the usual precision: the largest noise is 8 times the usual one.
    log_share = log_lambda + 2.0 * np.log(largest / 8.0)
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
    """Return nodes at every category and evenly between them; on long scales, evenly spaced."""
    gaps = len(values) - 1
    if gaps > _MAX_GAPS:
        return np.linspace(values[0], values[-1], _MAX_GAPS + 1)
    n_between = -(-_GAPS // gaps) if gaps else 1
    position = np.arange(gaps * n_between + 1) / n_between
    return np.interp(position, np.arange(gaps + 1), values)


def _deviations(values: Floats) -> tuple[float, float]:
    """Return the largest and the smallest noise: twice the scale, and an eighth of a category."""
    if len(values) == 1:
        return 2.0, 1.0
    extent = float(values[-1] - values[0])
    return 2.0 * extent, max(float(np.diff(values).min()) / 8.0, extent / 256.0)
