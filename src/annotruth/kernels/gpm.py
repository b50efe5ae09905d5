r"""GPM's passes over the labels (equation numbers are the paper's).

With reliability :math:`\epsilon_s`, item distribution :math:`\theta_e` and irregular behavior
:math:`\pi_s`, a label is serious with probability

.. math:: \mu_{e,s} = \frac{\epsilon_s \theta_{e,r}}
                          {\epsilon_s \theta_{e,r} + (1 - \epsilon_s) \pi_{s,r}}.

Each kernel works on items ``lo:hi`` of a block. ``theta`` has one entry a cell; categories that
nobody chose for an item have :math:`\theta = 0` from the start and keep it. ``pi`` is
annotators x categories when behavior is learned and empty when it is uniform; then ``chance``
stands for all of it. Plain twins: `annotruth.kernels.reference.gpm`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

# One log serves many labels: their probabilities are multiplied, and the product is logged when
# it falls below the first figure; a cell that drove it below the second is added up label by label.
_LOG_BELOW = 1e-100
_UNDERFLOW = 1e-290


@compiled
def start(block: Block, lo: int, hi: int, theta: Floats) -> None:
    """Set theta to the observed shares, or to certainty where the truth is known."""
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        known = block.known[e]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        for c in range(first, last):
            if known >= 0:
                theta[c] = 1.0 if block.cell_category[c] == known else 0.0
            else:
                theta[c] = (block.cell_ptr[c + 1] - block.cell_ptr[c]) / total


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    serious: Floats,
    irregular: Floats,
    totals: Floats,
) -> None:
    """Take one EM step on the items (eq. Qfunction and updates).

    Replaces theta by its update and adds to the sums: ``serious[s]`` the sum of mu over s's
    labels, ``irregular[s, n]`` that of 1 - mu over s's labels n (only when pi is learned),
    ``totals[0]`` the log-likelihood before the step, ``totals[1]`` the items' part of Q after
    it, the sum of mu log theta.
    """
    item_ptr, cell_category, cell_ptr, annotator, known = block
    learned = pi.shape[0] > 0
    log_likelihood = 0.0
    q = 0.0
    product = 1.0
    for e in range(lo, hi):
        first, last = item_ptr[e], item_ptr[e + 1]
        fixed = known[e] >= 0
        total = 0.0
        for c in range(first, last):
            n = cell_category[c]
            share = theta[c]
            mass = 0.0
            before = product
            # Unsigned places are never negative, which spares a test at every access.
            for j in range(np.uint64(cell_ptr[c]), np.uint64(cell_ptr[c + 1])):
                s = np.uint32(annotator[j])
                reliability = eps[s]
                c1 = reliability * share
                p = c1 + (1.0 - reliability) * (pi[s, n] if learned else chance)
                mu = c1 / p
                serious[s] += mu
                if learned:
                    irregular[s, n] += 1.0 - mu
                mass += mu
                product *= p
            total += mass
            if product < _LOG_BELOW:
                if product > _UNDERFLOW:
                    log_likelihood += math.log(product)
                else:
                    log_likelihood += math.log(before)
                    for j in range(cell_ptr[c], cell_ptr[c + 1]):
                        s = np.uint32(annotator[j])
                        behavior = pi[s, n] if learned else chance
                        log_likelihood += math.log(eps[s] * share + (1.0 - eps[s]) * behavior)
                product = 1.0
            if not fixed:
                theta[c] = mass
        if not fixed:
            for c in range(first, last):
                mass = theta[c]
                if total > 0.0:
                    theta[c] = mass / total
                else:
                    # Nobody serious has seen the item: any theta is as likely; take the shares.
                    labels = cell_ptr[last] - cell_ptr[first]
                    theta[c] = (cell_ptr[c + 1] - cell_ptr[c]) / labels
                if mass > 0.0 and 0.0 < theta[c] < 1.0:  # neither 0 log 0 nor log 1 adds to Q
                    q += mass * math.log(theta[c])
    totals[0] += log_likelihood + math.log(product)
    totals[1] += q


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    p_serious: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    totals: Floats,
) -> None:
    """Write mu of every label and add the log-likelihood to ``totals[0]``."""
    learned = pi.shape[0] > 0
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                c1 = eps[s] * theta[c]
                p = c1 + (1.0 - eps[s]) * (pi[s, n] if learned else chance)
                p_serious[j] = c1 / p
                totals[0] += math.log(p)


@compiled
def support(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    log_likelihood: Floats,
    slope: Floats,
) -> None:
    """Add up, by annotator, the log-likelihood at ``eps`` and its slope in eps."""
    learned = pi.shape[0] > 0
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                behavior = pi[s, n] if learned else chance
                p = eps[s] * theta[c] + (1.0 - eps[s]) * behavior
                log_likelihood[s] += math.log(p)
                slope[s] += (theta[c] - behavior) / p
