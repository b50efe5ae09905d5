"""From the class of an item to its labels, in the same manner for all models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels


class LabelChannel:
    r"""How likely each annotator gives each label to an item of each class.

    With :math:`w_i(k)` the share of item i's labels that are k, and :math:`n_{jkl}` the sum of
    :math:`w_i(k)` over the items that annotator j gave label l,

    .. math::

        C_j(k, l) = \frac{n_{jkl} + K C(k, l)}{\sum_m n_{jkm} + K}, \qquad
        C(k, l) = \frac{\sum_j n_{jkl} + 1/K}{\sum_{jm} n_{jkm} + 1}

    for K classes: an annotator's counts are smoothed towards the crowd's by one pseudo-count per
    class. It depends on the labels only, so that models which are compared by
    :math:`p(l) = \sum_k p_i(k)\, C_j(k, l)` differ by their distributions of items
    :math:`p_i(k)` alone. Were each to use its own annotators' parameters, the one that describes
    annotators best would win, whether its items are right or not.

    Examples
    --------
    >>> from annotruth import Labels
    >>> rows = [(item, person, item % 2) for item in range(8) for person in "abc"]
    >>> LabelChannel(Labels.of(rows)).likelihood(np.array([0]), np.array([1])).round(2)
    array([[0.01, 0.99]])
    """

    def __init__(self, labels: Labels) -> None:
        n_items, n = labels.n_items, labels.n_categories
        item, category = labels.item_of_label(), labels.category_of_label()
        annotator = labels.annotator.astype(np.int64)
        one, shape = np.ones(labels.n_labels), (n_items, n)
        votes = sparse.csr_array((one, (item, category)), shape=shape)
        shares = sparse.diags_array(1.0 / np.maximum(votes.sum(axis=1), 1.0)) @ votes

        def summed(owner: NDArray[np.integer[Any]], n_owners: int) -> sparse.csr_array:
            """Return the sum of the items' shares over the labels of each owner."""
            return sparse.csr_array((one, (owner, item)), shape=(n_owners, n_items)) @ shares

        self._n_categories = n
        self._pairs, pair = np.unique(annotator * n + category, return_inverse=True)
        # An empty last row serves the labels that an annotator never gave.
        self._by_pair = summed(pair, len(self._pairs) + 1)
        self._by_annotator = summed(annotator, labels.n_annotators)
        self._by_category = summed(category, n)
        self._by_class = np.asarray(self._by_category.sum(axis=0))

    def likelihood(
        self, annotator: NDArray[np.integer[Any]], category: NDArray[np.integer[Any]]
    ) -> Floats:
        """Return the probability of each label if its item is of each class, labels x classes."""
        n = self._n_categories
        key = annotator.astype(np.int64) * n + category
        place = np.minimum(np.searchsorted(self._pairs, key), len(self._pairs) - 1)
        pair = np.where(self._pairs[place] == key, place, len(self._pairs))
        crowd = (self._by_category[category].toarray() + 1.0 / n) / (self._by_class + 1.0)
        own, total = self._by_pair[pair].toarray(), self._by_annotator[annotator].toarray()
        likelihood: Floats = (own + n * crowd) / (total + n)
        return likelihood
