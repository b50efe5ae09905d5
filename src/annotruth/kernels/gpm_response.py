r"""How GPM's sums of serious labels follow a reliability, the item's distribution following too.

Let :math:`\mu_j` be how likely label j of item e was serious. With the reliabilities of the
others held, :math:`d \mu_j = v_j x_c + \dot\mu_j d\epsilon_j` where :math:`v_j = \mu_j (1 - \mu_j)`,
:math:`\dot\mu_j = \theta_c \pi_j / p_j^2` and :math:`x_c = d \log \theta_c` of the label's cell c.
At EM's fixed point :math:`\theta_c = M_c / \sum M`, with :math:`M_c` the sum of :math:`\mu` in c.
Differentiating both and solving for x, with :math:`b_c = 1 / \sum_{j \in c} \mu_j^2`,

.. math:: \frac{d \mu_j}{d \epsilon_j} = \dot\mu_j \Bigl(1 + v_j \Bigl(b_c
          - \frac{(M_c b_c)^2}{\sum_{c'} M_{c'}^2 b_{c'}}\Bigr)\Bigr).

Where the truth is known theta stays, and so the bracket is 1. Plain twin:
`annotruth.kernels.reference.gpm_response`.
"""

from __future__ import annotations

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

STEEPEST = 1e6
"""Slopes of a label are cut here: at a reliability that rounds to 1 they have no bound."""

LEAST = 1e-3
"""Cells of less theta follow nobody: most of them are on their way to 0, no fixed point of theirs."""


@compiled
def response(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    serious: Floats,
    slope: Floats,
    irregular: Floats,
) -> None:
    """Add up, by annotator, mu, its slope in eps, and 1 - mu by label (when pi is learned)."""
    learned = pi.shape[0] > 0
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        weight = 0.0
        for c in range(first, last):
            mass, squares = _mass(block, c, theta, eps, pi, chance)
            if theta[c] > LEAST and mass > 0.0:
                weight += mass * mass / squares
        for c in range(first, last):
            n = block.cell_category[c]
            mass, squares = _mass(block, c, theta, eps, pi, chance)
            follows = 0.0
            if theta[c] > LEAST and mass > 0.0 and block.known[e] < 0:
                follows = 1.0 / squares - (mass / squares) ** 2 / weight
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                behavior = pi[s, n] if learned else chance
                p = eps[s] * theta[c] + (1.0 - eps[s]) * behavior
                mu = eps[s] * theta[c] / p
                serious[s] += mu
                alone = min(theta[c] / p * (behavior / p), STEEPEST)
                slope[s] += alone * (1.0 + mu * (1.0 - mu) * follows)
                if learned:
                    irregular[s, n] += 1.0 - mu


@compiled
def _mass(
    block: Block, c: int, theta: Floats, eps: Floats, pi: Floats, chance: float
) -> tuple[float, float]:
    """Add up mu and its square over the labels of a cell."""
    learned = pi.shape[0] > 0
    n = block.cell_category[c]
    mass = squares = 0.0
    for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
        s = block.annotator[j]
        serious = eps[s] * theta[c]
        mu = serious / (serious + (1.0 - eps[s]) * (pi[s, n] if learned else chance))
        mass += mu
        squares += mu * mu
    return mass, squares
