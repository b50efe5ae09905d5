r"""Whether the agreement of annotators fell: a comparison of the latest labels with those before.

The agreement of a label is the share of the item's other labels that are equal to it. For a window
S of the latest labels and the labels E before them, the change is

.. math:: d = \frac{1}{n} \sum_{i \in S} (a_i - \bar a_{s(i)}),

with :math:`\bar a_s` the mean agreement of annotator s in E: each annotator is compared with
themself, so that a change of shifts between better and worse annotators is no change of
agreement. It is linear in the agreements, :math:`d = \sum_i c_i a_i`, and labels of one item depend
on each other, so its variance is estimated by clusters of items:

.. math:: v = \sum_{\text{items}} \Bigl(\sum_{i \in \text{item}} c_i (a_i - m_i)\Bigr)^2,

with :math:`m_i` the mean of the annotator's labels in E, plus d in S. With the sums :math:`u_g` of the
clusters, d has the t distribution of about :math:`(\sum_g u_g^2)^2 / \sum_g u_g^4` degrees of freedom,
the number of clusters if they were alike; so small windows need large changes.

Windows of 64, 256, 1024, ... labels, at most half of all, are compared at every snapshot, each with at
most 16 times as many labels before it, whose share in the variance is small then. The error rate :math:`\alpha` is
divided between them: the k-th look since the last change spends :math:`\alpha / (k (k + 1))`, which
sums to :math:`\alpha` over all looks, in equal parts for the windows and for both directions. So
labels of constant agreement give an alert with probability :math:`\alpha` at most, however often one
looks. After a change, the labels that follow are compared with each other only: the same change is not
found twice, and a second one must be as clear as the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels

ALPHA = 0.05
"""How likely an alert is as long as nothing changes."""

_SMALLEST_WINDOW = 3  # as a power of 4: of fewer labels, an item or two would decide
_TIMES_BEFORE = 16


class AgreementState(NamedTuple):
    """Since when agreement is taken as constant, and how often it was looked at since."""

    since: int = 0  # the number of the first event of that time
    looks: int = 0  # how often the labels since then were compared


class AgreementChange(NamedTuple):
    """A change of agreement that is larger than its uncertainty."""

    change: float  # the mean change of the annotators' agreement with others; below 0 if it fell
    low: float  # the interval of the change, at the level of the test
    high: float
    n_labels: int  # the number of the latest labels that show it

    @property
    def fell(self) -> bool:
        """Whether agreement is lower than before."""
        return self.change < 0.0


class _Rows(NamedTuple):
    """Labels of items with others, in the order of their events."""

    agreement: Floats
    item: Codes
    annotator: Codes
    seq: Codes

    def latest(self, n: int) -> _Rows:
        """Return at most the last n."""
        return _Rows(self.agreement[-n:], self.item[-n:], self.annotator[-n:], self.seq[-n:])


def find_agreement_change(
    labels: Labels, seq: Codes, state: AgreementState
) -> tuple[AgreementState, AgreementChange | None]:
    """Return the state after another look, and a change if there is one.

    ``seq`` holds the number of the event of each row of the labels.
    """
    rows = _latest_rows(labels, seq, state.since)
    n = len(rows.seq)
    sizes = [4**k for k in range(_SMALLEST_WINDOW, n.bit_length() // 2)]
    sizes = [size for size in sizes if 2 * size <= n]
    if not sizes:
        return state, None
    looks = state.looks + 1
    level = ALPHA / (looks * (looks + 1)) / len(sizes)
    found = [_compare(rows.latest((1 + _TIMES_BEFORE) * size), size, level) for size in sizes]
    clear = [each for each in found if each is not None and (each.high < 0.0 or each.low > 0.0)]
    if not clear:
        return AgreementState(state.since, looks), None
    change = max(clear, key=lambda each: abs(each.change) / (each.high - each.low))
    return AgreementState(int(seq.max()) + 1), change


def _latest_rows(labels: Labels, seq: Codes, since: int) -> _Rows:
    """Return the labels from an event on whose item has another label."""
    of_label = seq[labels.row]
    n_of_item = labels.labels_per_item
    cell = labels.cell_of_label()
    item = labels.item_of_cell()[cell]
    chosen = np.flatnonzero((of_label >= since) & (n_of_item[item] > 1))
    chosen = chosen[np.argsort(of_label[chosen], kind="stable")]
    same = np.diff(labels.cell_ptr)[cell[chosen]] - 1
    others = n_of_item[item[chosen]] - 1
    return _Rows(
        same / others,
        item[chosen].astype(np.int64),
        labels.annotator[chosen].astype(np.int64),
        of_label[chosen],
    )


def _compare(rows: _Rows, size: int, level: float) -> AgreementChange | None:
    """Compare the latest labels with those before; None if that is impossible."""
    is_late = np.arange(len(rows.seq)) >= len(rows.seq) - size
    n_annotators = int(rows.annotator.max()) + 1
    n_early, n_late = (
        np.bincount(rows.annotator[part], minlength=n_annotators) for part in (~is_late, is_late)
    )
    has_both = ((n_early > 0) & (n_late > 0))[rows.annotator]
    a, item, annotator = (column[has_both] for column in rows[:3])
    late = is_late[has_both]
    n = int(np.count_nonzero(late))
    if not n:
        return None
    total = np.bincount(annotator[~late], a[~late], minlength=n_annotators)
    mean = (total / np.maximum(n_early, 1))[annotator]
    change = float((a - mean)[late].sum() / n)
    weight = np.where(late, 1.0 / n, -(n_late / np.maximum(n_early, 1) / n)[annotator])
    squares = np.bincount(item, weight * (a - mean - np.where(late, change, 0.0))) ** 2
    variance = float(squares.sum())
    if not variance:  # all agreements are equal
        return None
    freedom = variance**2 / float(squares @ squares)
    margin = -float(stdtrit(freedom, level / 2.0)) * variance**0.5
    return AgreementChange(change, change - margin, change + margin, n)
