r"""The covariance of scores with contexts as the sample, for models in which votes are independent.

.. math:: \Sigma \Bigl( \frac{C}{C - 1} \sum_c s_c s_c^T \Bigr) \Sigma

with the covariance :math:`\Sigma` of independent votes and the slopes :math:`s_c` of the log-likelihood of each
of C contexts.
"""

from __future__ import annotations

import numpy as np

from annotruth.comparisons.table import LEFT, RIGHT, Comparisons
from annotruth.kernels.arrays import Floats
from annotruth.models.pairs.graph import MAX_DENSE_ITEMS
from annotruth.models.pairs.summary import MIN_CONTEXTS

MIN_CLUSTERS = 10
"""Contexts from which on intervals are clustered by them."""


def may_cluster(data: Comparisons) -> bool:
    """Whether there are enough contexts, also of each item, and few enough items for a matrix.

    Items that belong to one context, such as pictures of a scene, are no sample of contexts.
    """
    if data.context is None or data.contexts is None or data.n_items > MAX_DENSE_ITEMS:
        return False
    if len(data.contexts) < MIN_CLUSTERS:
        return False
    items = np.concatenate([data.left, data.right]).astype(np.int64)
    seen = np.unique(items * len(data.contexts) + np.tile(data.context, 2)) // len(data.contexts)
    n_contexts = np.bincount(seen)
    return bool(n_contexts[n_contexts > 0].min() >= MIN_CONTEXTS)


def clustered_covariance(data: Comparisons, probability: Floats, covariance: Floats) -> Floats:
    """Return the covariance of scores; ``probability`` is that of each vote's outcomes, votes x 3."""
    assert data.context is not None
    n_contexts = int(data.context.max()) + 1
    chosen = np.array([0.5, -0.5, 0.0])[data.outcome]
    slope = chosen - (probability[:, LEFT] - probability[:, RIGHT]) / 2.0
    slopes = np.zeros((n_contexts, data.n_items))
    np.add.at(slopes, (data.context, data.left), slope)
    np.add.at(slopes, (data.context, data.right), -slope)
    projected = slopes @ covariance
    clustered: Floats = projected.T @ projected * (n_contexts / (n_contexts - 1.0))
    return clustered
