r"""The ordinal-discrete mixture's passes over the labels.

Scores z (nodes k) and difficulties :math:`\gamma` (j) lie on a lattice with weights ``prior``, and
``probability[i, n, k]`` tabulates :math:`p(n \mid z_k, \tau_i)`, with row
``i = level[s] + shift[j]`` for annotator s. Given its score and difficulty, a label has probability

.. math:: f_{e,s}(k, j) = \epsilon_s\, p(r \mid z_k, \lambda_s \gamma_j) + (1 - \epsilon_s) \pi_{s,r},

and the item's posterior is :math:`w_e(k, j) \propto \mathrm{prior}(k, j) \prod_s f_{e,s}(k, j)`.
A known truth puts the item's score on ``anchor[known]``. ``levels`` is annotators x 3: a level
below, the annotator's own, a level above. ``pi`` is annotators x categories when behavior is
learned and empty when it is uniform; then ``chance`` stands for all of it. Plain twins:
`annotruth.kernels.reference.ordinal_mixture`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

# So many probabilities are multiplied before the logarithm is taken: they cannot underflow, as an
# irregular label is never less likely than 1e-18.
_FACTORS = 16


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    log_probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
    serious: Floats,
    gain: Floats,
    irregular: Floats,
    totals: Floats,
) -> None:
    """Take one E-step and add up what the annotators' updates need.

    Adds to ``serious[s]`` the probabilities that s's labels were serious, to ``irregular[s, n]``
    those that s's labels n were not (only when pi is learned), to ``gain[s]`` the expected
    log-probability of s's serious labels with s on each of their three levels, and to
    ``totals[0]`` the log-likelihood. Where ``log_probability`` is empty, ``gain[s]`` is what the
    log-likelihood itself gains if s, and nobody else, moves there: bolder, and 0 on the own level.
    """
    learned, bold = pi.shape[0] > 0, log_probability.shape[0] == 0
    weight, log_weight = np.empty(prior.shape), np.empty(prior.shape)
    for e in range(lo, hi):
        totals[0] += _weigh(
            block, e, prior, shift, anchor, probability, levels, eps, pi, chance, weight, log_weight
        )
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[i]
                c2 = (1.0 - eps[s]) * (pi[s, n] if learned else chance)
                given = (c2, eps[s], weight, shift, n, levels[s], probability)
                if bold:
                    mu, below, same, above = _alone(*given)
                else:
                    mu, below, same, above = _expected(*given, log_probability)
                serious[s] += mu
                gain[s, 0] += below
                gain[s, 1] += same
                gain[s, 2] += above
                if learned:
                    irregular[s, n] += 1.0 - mu


@compiled
def _expected(
    c2: float,
    eps: float,
    weight: Floats,
    shift: Codes,
    n: int,
    levels: Codes,
    probability: Floats,
    log_probability: Floats,
) -> tuple[float, float, float, float]:
    """Return how likely a label n was serious, and its expected log-probability on each level."""
    mu, below, same, above = 0.0, 0.0, 0.0, 0.0
    for j in range(len(shift)):
        p = probability[levels[1] + shift[j], n]
        p_below = log_probability[levels[0] + shift[j], n]
        p_same = log_probability[levels[1] + shift[j], n]
        p_above = log_probability[levels[2] + shift[j], n]
        for k in range(len(weight[j])):
            c1 = eps * p[k]
            share = weight[j, k] * c1 / (c1 + c2)
            mu += share
            below += share * p_below[k]
            same += share * p_same[k]
            above += share * p_above[k]
    return mu, below, same, above


@compiled
def _alone(
    c2: float, eps: float, weight: Floats, shift: Codes, n: int, levels: Codes, probability: Floats
) -> tuple[float, float, float, float]:
    """Return how likely a label n was serious, and its likelihood's gain on each level."""
    others, below, same, above = 0.0, 0.0, 0.0, 0.0
    for j in range(len(shift)):
        p_below = probability[levels[0] + shift[j], n]
        p_same = probability[levels[1] + shift[j], n]
        p_above = probability[levels[2] + shift[j], n]
        for k in range(len(weight[j])):
            without = weight[j, k] / (eps * p_same[k] + c2)
            others += without
            below += without * p_below[k]
            same += without * p_same[k]
            above += without * p_above[k]
    rest = c2 * others
    return eps * same, math.log(eps * below + rest), 0.0, math.log(eps * above + rest)


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    score: Floats,
    difficulty: Floats,
    theta: Floats,
    p_serious: Floats,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
    nodes: Floats,
    edges: Floats,
    widening: Floats,
    typical: int,
    totals: Floats,
) -> None:
    """Write what is known of the items and of their labels.

    ``score[e]`` is the mean of the item's posterior and its 2.5% and 97.5% points,
    ``difficulty[e]`` the mean of ``widening``, ``theta[e]`` the distribution of a serious label
    by someone on the level ``typical``; a known truth is certain. ``p_serious`` is how likely each
    label was serious. Adds the log-likelihood to ``totals[0]``.
    """
    learned = pi.shape[0] > 0
    weight, log_weight = np.empty(prior.shape), np.empty(prior.shape)
    mass = np.empty(len(nodes))
    for e in range(lo, hi):
        totals[0] += _weigh(
            block, e, prior, shift, anchor, probability, levels, eps, pi, chance, weight, log_weight
        )
        score[e], difficulty[e], theta[e], mass[:] = 0.0, 0.0, 0.0, 0.0
        for j in range(len(shift)):
            row = probability[typical + shift[j]]
            for k in range(len(nodes)):
                mass[k] += weight[j, k]
                score[e, 0] += weight[j, k] * nodes[k]
                difficulty[e] += weight[j, k] * widening[j]
                for n in range(theta.shape[1]):
                    theta[e, n] += weight[j, k] * row[n, k]
        if block.known[e] >= 0:
            score[e, 1:] = score[e, 0]
            theta[e] = 0.0
            theta[e, block.known[e]] = 1.0
        else:
            score[e, 1] = _quantile(mass, edges, 0.025)
            score[e, 2] = _quantile(mass, edges, 0.975)
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[i]
                c2 = (1.0 - eps[s]) * (pi[s, n] if learned else chance)
                mu = 0.0
                for j in range(len(shift)):
                    p = probability[levels[s, 1] + shift[j], n]
                    for k in range(len(nodes)):
                        c1 = eps[s] * p[k]
                        mu += weight[j, k] * c1 / (c1 + c2)
                p_serious[i] = mu


@compiled
def judge(
    block: Block,
    lo: int,
    hi: int,
    weight: Floats,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
) -> None:
    """Write each item's posterior on the lattice, items x difficulties x nodes."""
    log_weight = np.empty(prior.shape)
    for e in range(lo, hi):
        own = weight[e]
        _weigh(
            block, e, prior, shift, anchor, probability, levels, eps, pi, chance, own, log_weight
        )


@compiled
def predict(
    block: Block,
    lo: int,
    hi: int,
    predicted: Floats,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
    tried: Codes,
) -> None:
    """Write how likely each label was, if serious, to those who know the item's other labels.

    All others stand where they are, its annotator on the level ``tried[s]``.
    """
    learned = pi.shape[0] > 0
    weight, log_weight = np.empty(prior.shape), np.empty(prior.shape)
    for e in range(lo, hi):
        _weigh(
            block, e, prior, shift, anchor, probability, levels, eps, pi, chance, weight, log_weight
        )
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[i]
                c2 = (1.0 - eps[s]) * (pi[s, n] if learned else chance)
                others, both = 0.0, 0.0
                for j in range(len(shift)):
                    p_now = probability[levels[s, 1] + shift[j], n]
                    p = probability[tried[s] + shift[j], n]
                    for k in range(len(weight[j])):
                        without = weight[j, k] / (eps[s] * p_now[k] + c2)
                        others += without
                        both += without * p[k]
                predicted[i] = both / others


@compiled
def support(
    block: Block,
    lo: int,
    hi: int,
    predicted: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    log_likelihood: Floats,
    slope: Floats,
) -> None:
    """Add up, by annotator, the log-likelihood at ``eps`` and its slope in eps."""
    learned = pi.shape[0] > 0
    for c in range(block.item_ptr[lo], block.item_ptr[hi]):
        n = block.cell_category[c]
        for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[i]
            behavior = pi[s, n] if learned else chance
            p = eps[s] * predicted[i] + (1.0 - eps[s]) * behavior
            log_likelihood[s] += math.log(p)
            slope[s] += (predicted[i] - behavior) / p


@compiled
def _weigh(
    block: Block,
    e: int,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
    weight: Floats,
    log_weight: Floats,
) -> float:
    """Write item e's posterior and return the log-likelihood of its labels.

    What one label rules out others may bring back, so that no weight may underflow on the way:
    with many labels they are logarithms until all are in.
    """
    learned = pi.shape[0] > 0
    known = block.known[e]
    weight[:] = prior
    if known >= 0:
        weight[:] = 0.0
        # The score is given, so that only the difficulty has a prior.
        weight[:, anchor[known]] = prior[:, anchor[known]] / prior[:, anchor[known]].sum()
    many = False
    n_factors = 0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            if n_factors == _FACTORS:
                _take_logs(weight, log_weight, many)
                many = True
                n_factors = 0
            s = block.annotator[i]
            c2 = (1.0 - eps[s]) * (pi[s, n] if learned else chance)
            for j in range(len(shift)):
                p = probability[levels[s, 1] + shift[j], n]
                for k in range(len(p)):
                    weight[j, k] *= eps[s] * p[k] + c2
            n_factors += 1
    log_likelihood = 0.0
    if many:
        _take_logs(weight, log_weight, many)
        log_likelihood = log_weight.max()
        weight[:] = np.exp(log_weight - log_likelihood)
    total = weight.sum()
    weight /= total
    return log_likelihood + math.log(total)


@compiled
def _take_logs(weight: Floats, log_weight: Floats, many: bool) -> None:
    """Move the product so far into the logarithms, and begin a new one."""
    if many:
        log_weight += np.log(weight)
    else:
        log_weight[:] = np.log(weight)
    weight[:] = 1.0


@compiled
def _quantile(mass: Floats, edges: Floats, share: float) -> float:
    """Find the score below which a share of the mass lies, each mass evenly between its edges."""
    k = 0
    while k < len(mass) - 1 and share > mass[k]:
        share -= mass[k]
        k += 1
    inside = min(share / mass[k], 1.0) if mass[k] > 0.0 else 1.0
    score: float = edges[k] + inside * (edges[k + 1] - edges[k])
    return score
