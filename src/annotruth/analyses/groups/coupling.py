r"""How the groups' opinions on an item depend on one another.

Item e has a latent state :math:`z_e \sim p`. With probability :math:`\alpha` all groups agree about it:
the state of every group is that of the item. Otherwise each group g that labelled it has a state of its
own,

.. math::
    z_{e,g} \sim T_g(\cdot \mid z_e), \qquad
    T_g(z' \mid z) = \sum_j \omega_{g,j} K_j(z' \mid z),

with a fixed list of kernels :math:`K_j` (`opinion_kernels`, `class_kernels`): the same state, states near
it, any state. The share :math:`\alpha` and the weights :math:`\omega` are learned. Annotators without a
group give labels by the state of the item.

Given the likelihood :math:`L_{e,g}(z)` of a group's labels on an item, inference along this tree is exact.
With the messages :math:`m_{e,g}(z) = \sum_{z'} T_g(z' \mid z) L_{e,g}(z')`, the joint probabilities of the
item's state and of its labels are

.. math::
    A_e(z) = \alpha \, p_z \prod_g L_{e,g}(z), \qquad
    D_e(z) = (1 - \alpha) \, p_z \prod_g m_{e,g}(z)

where groups agree and where they differ, and what the other groups say about the state of group g is

.. math::
    c_{e,g}(z') \propto \frac{A_e(z')}{L_{e,g}(z')}
        + \sum_z \frac{D_e(z)}{m_{e,g}(z)} T_g(z' \mid z),

the prior that the group's own labels update. So a group with few labels is near the crowd, unless groups
differ on many items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.models.robust_gpm.annotators import AnnotatorPosterior
from annotruth.models.robust_gpm.opinions import OpinionShapes
from annotruth.observations import Labels

NO_GROUP = -1
"""The group of annotators whose traits are unknown."""

_WIDTHS = (0.5, 1.0, 2.0)  # of nearby opinions: standard deviations of the logit of the mean

_TINY = 1e-300  # so that what is practically impossible has a logarithm

_NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class GroupItems:
    """Items as groups see them: pairs of an item and a group that labelled it, by item."""

    # of each pair; the group is `NO_GROUP` for annotators without one
    item: Codes
    group: Codes
    # the labels with these pairs in the place of items. ``known`` numbers the pairs, so that
    # kernels take a table with one prior per pair where they usually take known truths.
    labels: Labels
    position: Codes  # the position of each of these labels among those of the items
    # the number of items and of groups
    n_items: int
    n_groups: int

    @classmethod
    def of(cls, labels: Labels, group: Codes, n_groups: int) -> GroupItems:
        """Return the pairs that have labels, given the group of each annotator."""
        item = labels.item_of_label().astype(np.int64)
        pair = item * (n_groups + 1) + group[labels.annotator] + 1
        pairs, code = np.unique(pair, return_inverse=True)
        made = Labels.from_codes(
            code,
            labels.annotator,
            labels.category_of_label(),
            items=np.arange(len(pairs)),
            annotators=labels.annotators,
            scale=labels.scale,
        )
        made = replace(
            made,
            known=np.arange(len(pairs), dtype=np.int32),
            annotator_prior=labels.annotator_prior,
        )
        item, group = pairs // (n_groups + 1), pairs % (n_groups + 1) - 1
        return cls(item, group, made, np.asarray(made.row), labels.n_items, n_groups)

    @cached_property
    def rows(self) -> list[Codes]:
        """The places of each group's pairs, and last of those of annotators without a group."""
        groups = [*range(self.n_groups), NO_GROUP]
        return [np.flatnonzero(self.group == group) for group in groups]

    @cached_property
    def first(self) -> Codes:
        """The place of the first pair of each item."""
        return np.searchsorted(self.item, np.arange(self.n_items))

    @cached_property
    def n_groups_of_item(self) -> Codes:
        """How many groups labelled each item."""
        return np.bincount(self.item[self.group != NO_GROUP], minlength=self.n_items)


class Coupling(NamedTuple):
    r"""How the groups' states depend on one another."""

    kernel_weights: Floats  # :math:`\omega`, groups x kernels
    agreed_share: float  # :math:`\alpha`, the share of items that groups agree about

    @classmethod
    def uniform(cls, n_groups: int, n_kernels: int) -> Coupling:
        """Return the coupling that a fit starts with."""
        return cls(np.full((n_groups, n_kernels), 1.0 / n_kernels), 0.5)

    def transitions(self, kernels: Floats) -> Floats:
        """Return T of each group, and last the identity for annotators without a group."""
        mixed = np.tensordot(self.kernel_weights, kernels, axes=1)
        return np.concatenate([mixed, np.eye(kernels.shape[1])[np.newaxis]])


def opinion_kernels(prior: Floats, shapes: OpinionShapes) -> Floats:
    r"""Return the kernels between shapes of opinion, kernels x shapes x shapes.

    They are the same shape; shapes near it, :math:`\propto p_{z'} \exp(-(x_{z'} - x_z)^2 / 2 b^2)` with
    x the logit of the mean and b = 0.5, 1 and 2; and any shape, :math:`p_{z'}`.
    """
    position, n = shapes.positions, len(prior)
    distance = position - position[:, np.newaxis]
    near = [_normalised(prior * np.exp(-0.5 * (distance / width) ** 2)) for width in _WIDTHS]
    return np.stack([np.eye(n), *near, np.tile(prior, (n, 1))])


def class_kernels(prior: Floats, class_of: Codes) -> Floats:
    """Return the kernels where items have one right label: same state, same class, any state."""
    n = len(prior)
    same_class = prior * (class_of[:, np.newaxis] == class_of)
    return np.stack([np.eye(n), _normalised(same_class), np.tile(prior, (n, 1))])


@dataclass(frozen=True, eq=False)
class Messages:
    """Inference about the states of items and groups, given the likelihood of groups' labels."""

    pairs: GroupItems  # the pairs of items and groups
    transitions: Floats  # T of each group, and last the identity for annotators without a group
    likelihood: Floats  # L, pairs x states; each row up to a factor
    log_up: Floats  # the logarithm of the messages m
    # the logarithms of A and D, items x states
    log_agreed: Floats
    log_differing: Floats

    @classmethod
    def of(
        cls,
        pairs: GroupItems,
        coupling: Coupling,
        kernels: Floats,
        likelihood: Floats,
        log_prior: Floats,
    ) -> Messages:
        """Return the messages; ``log_prior`` of the items' states has one row per item."""
        transitions = coupling.transitions(kernels)
        up = np.empty_like(likelihood)
        for rows, transition in zip(pairs.rows, transitions, strict=True):
            up[rows] = likelihood[rows] @ transition.T
        log_up, logs = log_of(up), log_of(likelihood)
        agreed, differing = (
            log_prior + np.add.reduceat(each, pairs.first, axis=0) for each in (logs, log_up)
        )
        share = coupling.agreed_share
        return cls(
            *(pairs, transitions, likelihood, log_up),
            agreed + np.log(share),
            differing + np.log1p(-share),
        )

    @cached_property
    def log_evidence(self) -> Floats:
        """The log-likelihood of each item's labels, up to the factors of the likelihoods."""
        agreed, differing = (
            logsumexp(each, axis=1) for each in (self.log_agreed, self.log_differing)
        )
        evidence: Floats = np.logaddexp(agreed, differing)
        return evidence

    @cached_property
    def agreed(self) -> Floats:
        """The posterior probability that groups agree about an item and of its state."""
        shares: Floats = np.exp(self.log_agreed - self.log_evidence[:, np.newaxis])
        return shares

    @cached_property
    def differing(self) -> Floats:
        """The posterior probability that groups differ about an item and of its state."""
        shares: Floats = np.exp(self.log_differing - self.log_evidence[:, np.newaxis])
        return shares

    def item_posterior(self) -> Floats:
        """Return the posterior of the items' own states."""
        return self.agreed + self.differing

    def p_differing(self) -> Floats:
        """Return the posterior probability that groups differ about each item."""
        p: Floats = self.differing.sum(axis=1)
        return p

    @cached_property
    def _without(self) -> tuple[Floats, Floats]:
        """`agreed` and `differing` of each pair's item, given the labels of the other groups."""
        agreed = self.log_agreed[self.pairs.item] - log_of(self.likelihood)
        differing = self.log_differing[self.pairs.item] - self.log_up
        top = np.maximum(agreed, differing).max(axis=1, keepdims=True)
        agreed, differing = np.exp(agreed - top), np.exp(differing - top)
        total = (agreed + differing).sum(axis=1, keepdims=True)
        return agreed / total, differing / total

    def from_others(self) -> Floats:
        """Return c, what the other groups say about the state of each pair."""
        agreed, differing = self._without
        states = agreed.copy()
        for rows, transition in zip(self.pairs.rows, self.transitions, strict=True):
            states[rows] += differing[rows] @ transition
        return states

    def posterior(self) -> Floats:
        """Return the posterior of each pair's state."""
        return _normalised(np.maximum(self.from_others() * self.likelihood, _TINY))

    def kernel_counts(self, kernels: Floats, weights: Floats) -> Floats:
        """Return the expected number of pairs of each group that used each kernel."""
        _, differing = self._without
        per_evidence = self.likelihood / np.maximum(
            (self.from_others() * self.likelihood).sum(axis=1, keepdims=True), _TINY
        )
        used = [
            [((differing[rows] @ kernel) * per_evidence[rows]).sum() for kernel in kernels]
            for rows in self.pairs.rows[:-1]
        ]
        counts: Floats = weights * np.array(used)
        return counts


def log_of(values: Floats) -> Floats:
    """Return the logarithm of probabilities, finite where they are 0."""
    logs: Floats = np.log(np.maximum(values, _TINY))
    return logs


def _normalised(rows: Floats) -> Floats:
    normalised: Floats = rows / rows.sum(axis=1, keepdims=True)
    return normalised


class CrowdSummary(NamedTuple):
    """The crowd's opinion on items: the groups' opinions, weighted by their shares of all labels."""

    theta: Floats  # the distribution of opinion, items x categories
    leading: Floats  # the probability that a category leads, items x categories
    # of each item: mean and variance of the score, and the variance of the probability of the top
    # label
    spread: Floats


def group_opinions(
    shapes: OpinionShapes, posterior: AnnotatorPosterior, group: Codes, n_groups: int
) -> Floats:
    r"""Return the shapes as each group shifts them on average, groups x shapes x categories.

    A group's shares of shifts are between those of its members and those of the crowd. With
    :math:`\bar d_g` the mean of the members' mean shifts, :math:`v` the variance of these within groups and
    :math:`\tau^2` the variance between groups (DerSimonian and Laird's estimate), the weight of the
    members' shares is :math:`\tau^2 / (\tau^2 + v / n_g)`: 0 where groups differ no more than by chance.
    """
    strategies, weights = posterior.strategies, posterior.weights
    crowd = shapes.crowd_shifts(posterior)
    serious = shapes.labels.labels_per_annotator[:, np.newaxis] * weights * strategies.reliability
    by_shift = serious @ np.eye(len(shapes.shifts))[strategies.shift]
    mean_shift = (by_shift @ shapes.shifts) / np.maximum(by_shift.sum(axis=1), 1e-300)
    own_weight = _between_share(mean_shift, group, n_groups)
    shares = np.empty((n_groups, len(crowd)))
    for code in range(n_groups):
        own = by_shift[group == code].sum(axis=0)
        shares[code] = own_weight[code] * own / own.sum() + (1.0 - own_weight[code]) * crowd
    opinions: Floats = np.tensordot(shares, shapes.serious, axes=1).transpose(0, 2, 1)
    return opinions


def _between_share(values: Floats, group: Codes, n_groups: int) -> Floats:
    """Return how much of each group's mean is its own, rather than chance."""
    members = group >= 0
    values, group = values[members], group[members]
    n = np.bincount(group, minlength=n_groups)
    mean = np.bincount(group, values, minlength=n_groups) / np.maximum(n, 1)
    degrees = len(values) - np.count_nonzero(n)
    if degrees < 1:
        return np.zeros(n_groups)
    within = ((values - mean[group]) ** 2).sum() / degrees
    grand = values.mean()
    scale = len(values) - (n**2).sum() / len(values)
    excess = (n * (mean - grand) ** 2).sum() - (np.count_nonzero(n) - 1) * within
    between = max(excess / scale, 0.0)
    share: Floats = between / np.maximum(between + within / np.maximum(n, 1), 1e-300)
    return share


def summarize_crowd(messages: Messages, opinions: Floats, labels: Labels) -> CrowdSummary:
    """Return the crowd's opinion on every item, also from groups that did not label it.

    Given the item's state, the states of groups that differ are independent. The score's variance has
    their variance too; that of the top label's probability, only what the item's state leaves open.
    """
    pairs, n = messages.pairs, labels.n_categories
    shares = group_shares(pairs)
    values = labels.scale.values if labels.scale.is_ordinal else np.zeros(n)
    agreed_opinion = np.tensordot(shares, opinions, axes=1)
    place = np.full((pairs.n_groups, pairs.n_items), -1)
    for group, rows in enumerate(pairs.rows[:-1]):
        place[group, pairs.item[rows]] = rows
    at_once = max(1, _NUMBERS_AT_ONCE // agreed_opinion.size)
    parts = []
    for part in slices(pairs.n_items, at_once):
        mean, variance = _given_states(messages, opinions, shares, place[:, part], values)
        parts.append(
            _summary(
                messages.agreed[part],
                messages.differing[part],
                agreed_opinion,
                mean,
                variance,
                values,
            )
        )
    summary = CrowdSummary(*map(np.concatenate, zip(*parts, strict=True)))
    is_known = labels.known >= 0
    for table in (summary.theta, summary.leading):
        table[is_known] = np.eye(n)[labels.known[is_known]]
    return summary


def _given_states(
    messages: Messages, opinions: Floats, shares: Floats, place: Codes, values: Floats
) -> tuple[Floats, Floats]:
    """Return the crowd's mean opinion and its score's variance, where groups differ, by item's state.

    The arrays are items x states x categories and items x states.
    """
    mean = np.zeros((place.shape[1], *opinions.shape[1:]))
    variance = np.zeros(mean.shape[:2])
    for group, opinion in enumerate(opinions):
        transition, share = messages.transitions[group], shares[group]
        with_score = np.column_stack([opinion, (opinion @ values) ** 2])
        by_state = np.broadcast_to(
            transition @ with_score, (*mean.shape[:2], with_score.shape[1])
        ).copy()
        rows = place[group] >= 0
        pair = place[group][rows]
        joint = messages.likelihood[pair][:, np.newaxis, :] * with_score.T
        joint = joint @ transition.T / np.exp(messages.log_up[pair])[:, np.newaxis, :]
        by_state[rows] = joint.transpose(0, 2, 1)
        mean += share * by_state[:, :, :-1]
        score = by_state[:, :, :-1] @ values
        variance += share**2 * np.maximum(by_state[:, :, -1] - score**2, 0.0)
    return mean, variance


def _summary(
    agreed: Floats,
    differing: Floats,
    opinion: Floats,
    differing_opinion: Floats,
    score_variance: Floats,
    values: Floats,
) -> CrowdSummary:
    """Return the summary of some items from the opinions given their states."""
    n = opinion.shape[1]
    theta = agreed @ opinion + np.einsum("es,esn->en", differing, differing_opinion)
    leading = agreed @ np.eye(n)[opinion.argmax(axis=1)]
    modes = differing_opinion.argmax(axis=2)
    rows = np.broadcast_to(np.arange(len(theta))[:, np.newaxis], modes.shape)
    np.add.at(leading, (rows, modes), differing)
    one, other = opinion @ values, differing_opinion @ values
    mean = agreed @ one + (differing * other).sum(axis=1)
    square = agreed @ one**2 + (differing * (other**2 + score_variance)).sum(axis=1)
    top = theta.argmax(axis=1)
    best = theta[np.arange(len(top)), top]
    of_top = np.take_along_axis(differing_opinion, top[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    deviation = (agreed * (opinion[:, top].T - best[:, np.newaxis]) ** 2).sum(axis=1)
    deviation += (differing * (of_top - best[:, np.newaxis]) ** 2).sum(axis=1)
    spread = np.column_stack([mean, np.maximum(square - mean**2, 0.0), deviation])
    return CrowdSummary(theta, leading, spread)


def group_shares(pairs: GroupItems) -> Floats:
    """Return each group's share of the labels of all groups."""
    n_labels = pairs.labels.labels_per_item
    totals = np.array([n_labels[rows].sum() for rows in pairs.rows[:-1]], dtype=np.float64)
    shares: Floats = totals / totals.sum()
    return shares


def label_seriousness(pairs: GroupItems, posterior: Floats, p_serious: Floats) -> Floats:
    """Return how likely each label was serious, in the order of the items' labels.

    ``p_serious`` is that of a label given the state, annotators x categories x states.
    """
    labels = pairs.labels
    item, label = labels.item_of_label(), labels.category_of_label()
    found = np.empty(labels.n_labels)
    for part in slices(labels.n_labels, max(1, _NUMBERS_AT_ONCE // posterior.shape[1])):
        rows = p_serious[labels.annotator[part], label[part]]
        found[pairs.position[part]] = (posterior[item[part]] * rows).sum(axis=1)
    return found
