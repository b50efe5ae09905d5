"""`LabelEvidence`: how probable each label is if it is serious and if it is not."""

from __future__ import annotations

from dataclasses import dataclass

from annotruth.kernels.arrays import Floats


@dataclass(frozen=True, eq=False)
class LabelEvidence:
    r"""What labels say about reliability, one by one.

    At the reliability :math:`\epsilon` label j has the probability
    :math:`\epsilon S_j + (1 - \epsilon) I_j`. What is known of its item is inferred from the other
    labels of the item.

    Attributes
    ----------
    if_serious, if_irregular
        S and I of each label, in the order of the layout of `annotruth.labels.Labels`.
    levels
        The levels of reliability that are considered, rising.
    weights
        The posterior of each annotator's level if it is constant, annotators x levels.

    Examples
    --------
    >>> import annotruth as at
    >>> rows = [(item, who, item % 2) for item in range(20) for who in ("ann", "bob", "eve")]
    >>> evidence = at.RobustGPM().fit(rows).label_evidence()
    >>> bool((evidence.if_serious > evidence.if_irregular).all())  # all of them agree
    True
    """

    if_serious: Floats
    if_irregular: Floats
    levels: Floats
    weights: Floats
