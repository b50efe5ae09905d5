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

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.robust_gpm.opinions import OpinionShapes
from annotruth.observations import Labels

NO_GROUP = -1
"""The group of annotators whose traits are unknown."""

_WIDTHS = (0.5, 1.0, 2.0)  # of nearby opinions: standard deviations of the logit of the mean

_TINY = 1e-300  # so that what is practically impossible has a logarithm


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

    def posterior_of_group(self, group: int, posterior: Floats) -> Floats:
        """Return the posterior of a group's states on all items, given that of pairs with labels."""
        states: Floats = self.agreed + self.differing @ self.transitions[group]
        rows = self.pairs.rows[group]
        states[self.pairs.item[rows]] = posterior[rows]
        return states

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
