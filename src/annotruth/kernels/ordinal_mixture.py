r"""Passes of the ordinal-discrete mixture.

Scores z (nodes k) and difficulties :math:`\gamma` (index j) are on a lattice with weights ``prior``.
``probability[i, n, k]`` tabulates :math:`p(n \mid z_k, \tau_i)`, with row ``i = level[s] + shift[j]``
for annotator s. Given its score and difficulty, a label has the probability

.. math:: f_{e,s}(k, j) = \epsilon_s\, p(r \mid z_k, \lambda_s \gamma_j) + (1 - \epsilon_s) \pi_{s,r},

and the item's posterior is :math:`w_e(k, j) \propto \mathrm{prior}(k, j) \prod_s f_{e,s}(k, j)`.
A known truth fixes the item's score at ``anchor[known]``. ``levels`` is annotators x 3: the level below
the annotator's, the annotator's, and the level above. ``pi`` is annotators x categories if behavior is
learned, and empty if it is uniform; then it is ``chance`` for all. NumPy twins:
`annotruth.kernels.reference.ordinal_mixture`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled

# How many probabilities are multiplied before a log is taken: as that of an irregular label is at least
# 1e-18, they do not underflow.
_FACTORS_PER_LOG = 16


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
    log_likelihood: Floats,
) -> None:
    """Take one E-step and add up what the update of the annotators needs.

    Adds to ``serious[s]`` the probabilities that s's labels were serious, to ``irregular[s, n]``
    those that s's labels n were not (only if pi is learned), to ``gain[s]`` the expected
    log-probability of s's serious labels with s on each of the three levels, and to
    ``log_likelihood[0]`` the log-likelihood. If ``log_probability`` is empty, ``gain[s]`` is the gain
    in log-likelihood if s alone moves to each level, 0 on the current one: larger steps, which
    are not guaranteed to increase the likelihood when all annotators take them.
    """
    learned, unsafeguarded = pi.shape[0] > 0, log_probability.shape[0] == 0
    weight, log_weight = np.empty(prior.shape), np.empty(prior.shape)
    for e in range(lo, hi):
        log_likelihood[0] += _posterior(
            block, e, prior, shift, anchor, probability, levels, eps, pi, chance, weight, log_weight
        )
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[i]
                c2 = (1.0 - eps[s]) * (pi[s, n] if learned else chance)
                given = (c2, eps[s], weight, shift, n, levels[s], probability)
                if unsafeguarded:
                    mu, below, same, above = _likelihood_gain(*given)
                else:
                    mu, below, same, above = _expected_log_probability(*given, log_probability)
                serious[s] += mu
                gain[s, 0] += below
                gain[s, 1] += same
                gain[s, 2] += above
                if learned:
                    irregular[s, n] += 1.0 - mu


@compiled
def _expected_log_probability(
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
def _likelihood_gain(
    c2: float, eps: float, weight: Floats, shift: Codes, n: int, levels: Codes, probability: Floats
) -> tuple[float, float, float, float]:
    """Return how likely a label n was serious, and the gain in log-likelihood on each level."""
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
def summarize(
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
    gamma: Floats,
    typical_level: int,
    log_likelihood: Floats,
) -> None:
    """Summarize the items' posteriors, and write how likely each label was serious.

    ``score[e]`` is the mean of the item's score and its 2.5% and 97.5% quantiles, ``difficulty[e]``
    the mean of ``gamma``, ``theta[e]`` the distribution of serious labels on ``typical_level``; a
    known truth is certain. Adds the log-likelihood to ``log_likelihood[0]``.
    """
    learned = pi.shape[0] > 0
    weight, log_weight = np.empty(prior.shape), np.empty(prior.shape)
    mass = np.empty(len(nodes))
    for e in range(lo, hi):
        log_likelihood[0] += _posterior(
            block, e, prior, shift, anchor, probability, levels, eps, pi, chance, weight, log_weight
        )
        score[e, 0], difficulty[e] = 0.0, 0.0
        for n in range(theta.shape[1]):
            theta[e, n] = 0.0
        for k in range(len(nodes)):
            mass[k] = 0.0
        for j in range(len(shift)):
            row = probability[typical_level + shift[j]]
            for k in range(len(nodes)):
                mass[k] += weight[j, k]
                score[e, 0] += weight[j, k] * nodes[k]
                difficulty[e] += weight[j, k] * gamma[j]
                for n in range(theta.shape[1]):
                    theta[e, n] += weight[j, k] * row[n, k]
        if block.known[e] >= 0:
            score[e, 1], score[e, 2] = score[e, 0], score[e, 0]
            for n in range(theta.shape[1]):
                theta[e, n] = 1.0 if n == block.known[e] else 0.0
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
def posterior(
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
        _posterior(
            block,
            e,
            prior,
            shift,
            anchor,
            probability,
            levels,
            eps,
            pi,
            chance,
            weight[e],
            log_weight,
        )


@compiled
def leave_one_out(
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
    tried_level: Codes,
) -> None:
    """Write the probability of each label, if serious, given the item's other labels.

    Its annotator is on the level ``tried_level[s]``, all others are on their own.
    """
    learned = pi.shape[0] > 0
    weight, log_weight = np.empty(prior.shape), np.empty(prior.shape)
    for e in range(lo, hi):
        _posterior(
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
                    p = probability[tried_level[s] + shift[j], n]
                    for k in range(len(weight[j])):
                        without = weight[j, k] / (eps[s] * p_now[k] + c2)
                        others += without
                        both += without * p[k]
                predicted[i] = both / others


@compiled
def log_likelihood_by_annotator(
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
def _posterior(
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

    Weights must not underflow on the way, as later labels may increase them relative to the others:
    with many labels they are logarithms until the end.
    """
    learned = pi.shape[0] > 0
    _copy_prior(prior, anchor[block.known[e]] if block.known[e] >= 0 else -1, weight)
    many = False
    n_factors = 0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            if n_factors == _FACTORS_PER_LOG:
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
        log_likelihood = _take_exponentials(log_weight, weight)
    total = 0.0
    for j in range(len(weight)):
        for k in range(weight.shape[1]):
            total += weight[j, k]
    for j in range(len(weight)):
        for k in range(weight.shape[1]):
            weight[j, k] /= total
    return log_likelihood + math.log(total)


# Loops over entries instead of array expressions: these take four times as long to compile, with the
# errors that they can raise.


@compiled
def _copy_prior(prior: Floats, node: int, weight: Floats) -> None:
    """Set the weights to the prior; with a known score, at this node, to that of the difficulty."""
    total = 0.0
    for j in range(len(prior)):
        if node >= 0:
            total += prior[j, node]
    for j in range(len(prior)):
        for k in range(prior.shape[1]):
            weight[j, k] = prior[j, k] if node < 0 else 0.0
        if node >= 0:
            weight[j, node] = prior[j, node] / total


@compiled
def _take_logs(weight: Floats, log_weight: Floats, many: bool) -> None:
    """Add the logs of the product to the logarithms, and start a new product."""
    for j in range(len(weight)):
        for k in range(weight.shape[1]):
            log = np.log(weight[j, k])
            log_weight[j, k] = log_weight[j, k] + log if many else log
            weight[j, k] = 1.0


@compiled
def _take_exponentials(log_weight: Floats, weight: Floats) -> float:
    """Set the weights relative to the largest one, and return its logarithm."""
    highest = -np.inf
    for j in range(len(weight)):
        for k in range(weight.shape[1]):
            highest = max(highest, log_weight[j, k])
    for j in range(len(weight)):
        for k in range(weight.shape[1]):
            weight[j, k] = math.exp(log_weight[j, k] - highest)
    return highest


@compiled
def _quantile(mass: Floats, edges: Floats, share: float) -> float:
    """Return the score below which a share of the mass is, each mass uniform between its edges."""
    k = 0
    while k < len(mass) - 1 and share > mass[k]:
        share -= mass[k]
        k += 1
    inside = min(share / mass[k], 1.0) if mass[k] > 0.0 else 1.0
    score: float = edges[k] + inside * (edges[k + 1] - edges[k])
    return score
