"""Tables of label quality and annotators with the column names of cleanlab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import table_of
from annotruth.observations.frames import as_arrow

if TYPE_CHECKING:
    from annotruth.models.result import Fit


def label_quality_table(fit: Fit) -> pa.Table:
    """Return one row per item: the label found, how probable it is, and who agrees with it.

    ``annotator_agreement`` is the share of the item's labels that are the consensus label.
    """
    data, right, label = fit.data, fit.right_distribution(), _consensus(fit)
    item = data.item_of_label()
    agrees = np.bincount(item, data.category_of_label() == label[item], minlength=data.n_items)
    return table_of(
        {
            "item": data.items,
            "consensus_label": data.scale.categories.take(as_arrow(label)),
            "consensus_quality_score": right.dense(data.n_categories)[
                np.arange(data.n_items), label
            ],
            "annotator_agreement": agrees / data.labels_per_item,
            "num_annotations": data.labels_per_item,
        }
    )


def annotator_stats_table(fit: Fit) -> pa.Table:
    """Return one row per annotator, the lowest quality first.

    ``annotator_quality`` is the expected share of right labels: the mean probability of the
    annotator's labels. ``agreement_with_consensus`` is the share that are the label found.
    ``worst_class`` is the class of which most items are expected to be mislabelled.
    """
    data, n = fit.data, fit.data.n_categories
    right = fit.right_distribution().dense(n)
    item, label, annotator = data.item_of_label(), data.category_of_label(), data.annotator

    def mean(values: Floats) -> Floats:
        total = np.bincount(annotator, values, minlength=data.n_annotators)
        shares: Floats = total / data.labels_per_annotator
        return shares

    quality = mean(right[item, label])
    agreement = mean((label == _consensus(fit)[item]).astype(np.float64))
    missed = [
        np.bincount(annotator, right[item, k] * (label != k), minlength=data.n_annotators)
        for k in range(n)
    ]
    worst = np.argmax(missed, axis=0)
    order = np.argsort(quality, kind="stable")
    table = table_of(
        {
            "annotator": data.annotators,
            "annotator_quality": quality,
            "num_examples_labeled": data.labels_per_annotator,
            "agreement_with_consensus": agreement,
            "worst_class": data.scale.categories.take(as_arrow(worst)),
        }
    )
    return table.take(as_arrow(order))


def _consensus(fit: Fit) -> NDArray[np.int32]:
    """Return the code of each item's label."""
    assert fit.label is not None
    return fit.label
