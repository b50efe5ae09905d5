"""The pass that computes how probable each label is if it is serious and if it is not.

NumPy twin: `annotruth.kernels.reference.over_time.evidence`.
"""

from __future__ import annotations

from annotruth.kernels.arrays import Block, Floats, Singles
from annotruth.kernels.compiled import compiled_in_any_order


@compiled_in_any_order
def label_evidence(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    if_serious: Floats,
    if_irregular: Floats,
    ratios: Singles,
) -> None:
    r"""Write the probability of each label if it is serious, and if it is not.

    ``posterior`` of the items is items x classes; the label itself is taken out of it, as in
    `annotruth.kernels.robust_gpm.leave_one_out`, which divides it by the label's confusion. ``ratios``
    are annotators x labels x 3 x classes: 1, P(label | serious) and P(label | irregular), each over
    the confusion; one row is read per label, in single precision.
    """
    n_classes = posterior.shape[1]
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                row = ratios[block.annotator[j], n]
                total = p_serious = p_irregular = 0.0
                for k in range(n_classes):
                    total += posterior[e, k] * row[0, k]
                    p_serious += posterior[e, k] * row[1, k]
                    p_irregular += posterior[e, k] * row[2, k]
                if_serious[j] = p_serious / total
                if_irregular[j] = p_irregular / total
