r"""Passes of CrowdBT. NumPy twins: `annotruth.kernels.reference.pairs.crowd_bt`.

With :math:`u_i = e^{\theta_i / 2}`, an annotator who agrees votes left, right or tie with probabilities
proportional to :math:`u_l / u_r`, :math:`u_r / u_l` and :math:`\nu`; one who disagrees exchanges left
and right. Annotator s agrees with probability :math:`\eta_s`.
"""

from __future__ import annotations

import math

from annotruth.kernels.arrays import ComparisonBlock, Floats
from annotruth.kernels.compiled import compiled

# Outcomes, as in `annotruth.observations.pairs.table`, which kernels do not import.
_RIGHT, _TIE = 1, 2


@compiled
def step(
    block: ComparisonBlock,
    lo: int,
    hi: int,
    eta: Floats,
    strength: Floats,
    nu: float,
    prior: Floats,
    net_wins: Floats,
    totals: Floats,
) -> None:
    """Take one E-step, update eta, and add up what the update of the scores needs.

    ``prior`` holds the two parameters of the Beta prior of eta. ``net_wins[i]`` is the expected
    number of votes for item i less those against it, halved, when votes that disagree are turned
    around; ``totals`` the log-likelihood and the log prior of eta before the step.
    """
    more_agree, more_disagree = prior[0] - 1.0, prior[1] - 1.0
    for s in range(lo, hi):
        first, last = block.annotator_ptr[s], block.annotator_ptr[s + 1]
        agreed = 0.0
        for j in range(first, last):
            ratio = strength[block.left[j]] / strength[block.right[j]]
            total = ratio + 1.0 / ratio + nu
            if block.outcome[j] == _TIE:
                agreed += eta[s]
                totals[0] += math.log(nu / total)
                continue
            won = ratio if block.outcome[j] != _RIGHT else 1.0 / ratio
            agrees, disagrees = eta[s] * won, (1.0 - eta[s]) / won
            posterior = agrees / (agrees + disagrees)
            agreed += posterior
            totals[0] += math.log((agrees + disagrees) / total)
            net = posterior - 0.5
            if block.outcome[j] == _RIGHT:
                net = -net
            net_wins[block.left[j]] += net
            net_wins[block.right[j]] -= net
        # Written without a logarithm of 0 times 0.
        totals[1] += more_agree * math.log(eta[s]) if more_agree > 0.0 else 0.0
        totals[1] += more_disagree * math.log(1.0 - eta[s]) if more_disagree > 0.0 else 0.0
        eta[s] = (more_agree + agreed) / (more_agree + more_disagree + last - first)


@compiled
def posterior(
    block: ComparisonBlock,
    lo: int,
    hi: int,
    eta: Floats,
    agrees: Floats,
    strength: Floats,
    nu: float,
    totals: Floats,
) -> None:
    """Write the probability that each vote agrees, and add up the log-likelihood."""
    for s in range(lo, hi):
        for j in range(block.annotator_ptr[s], block.annotator_ptr[s + 1]):
            ratio = strength[block.left[j]] / strength[block.right[j]]
            total = ratio + 1.0 / ratio + nu
            if block.outcome[j] == _TIE:
                agrees[j] = eta[s]
                totals[0] += math.log(nu / total)
                continue
            won = ratio if block.outcome[j] != _RIGHT else 1.0 / ratio
            joint = eta[s] * won
            both = joint + (1.0 - eta[s]) / won
            agrees[j] = joint / both
            totals[0] += math.log(both / total)
