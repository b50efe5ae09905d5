"""From states of items and groups to distributions of opinion, of groups and of the crowd."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.analyses.groups.coupling import GroupItems, Messages
from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.models.robust_gpm.annotators import AnnotatorPosterior
from annotruth.models.robust_gpm.opinions import OpinionShapes
from annotruth.observations import Labels

_NUMBERS_AT_ONCE = 1 << 22


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
