"""The pass that computes how probable each label is if it is serious and if it is not.

NumPy twin: `annotruth.kernels.reference.over_time.evidence`.
"""

from __future__ import annotations

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.compiled import compiled


@compiled
def label_evidence(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    if_serious: Floats,
    if_irregular: Floats,
    confusion: Floats,
    serious: Floats,
    irregular: Floats,
) -> None:
    r"""Write the probability of each label if it is serious, and if it is not.

    ``posterior`` of the items is items x classes; the label itself is taken out of it, as in
    `annotruth.kernels.robust_gpm.leave_one_out`. ``confusion``, ``serious`` and ``irregular`` are
    annotators x labels x classes.
    """
    n_classes = posterior.shape[1]
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                total = p_serious = p_irregular = 0.0
                for k in range(n_classes):
                    without = posterior[e, k] / confusion[s, n, k]
                    total += without
                    p_serious += without * serious[s, n, k]
                    p_irregular += without * irregular[s, n, k]
                if_serious[j] = p_serious / total
                if_irregular[j] = p_irregular / total
