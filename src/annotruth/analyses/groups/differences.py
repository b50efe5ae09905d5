r"""Which items and which groups differ beyond chance.

All tests permute the groups among annotators, which keeps every annotator's labels together: under the
null hypothesis, an annotator's group has nothing to do with their labels. What statistics need beside
labels and groups comes from the fit without groups, so that the permuted data are exchangeable with those
observed. There, a minority with another opinion seems not to be serious: annotators' strategies are
therefore taken as given that they are serious at least half of the time, and how generous or harsh each
of them is does not count as a difference.

**Items.** The statistic of an item is the log-likelihood ratio of its labels, between groups whose states
are drawn from the kernels other than "the same state", and groups that agree. Those of all permutations,
of all items, are the distribution under the null hypothesis. P-values become q-values by the procedure
of Benjamini and Hochberg. It assumes that items depend on one another in no unusual manner, so the smallest
q-value (Simes' statistic) is compared with those of the permuted data, and no q-value is below twice
that p-value.

**Groups.** Each group is compared with all others, in two respects: its level, the mean difference between
its annotators' labels and what the crowd says about the items (on nominal scales, its shares of
categories); and its opinions on items beyond that, the sum of the log-likelihood ratios between the
group having a state of its own and having that of the others. Both are standardised by their means and
standard deviations over all permutations, those observed included, and the larger one is the group's
statistic. The q-value is twice the share of permutations in which the largest statistic of any group is
as large (Westfall and Young's max-T procedure).

Items and groups each have half of the error, so that if no group differs, the probability of any discovery,
of an item or of a group, at q < 0.05 is at most 5%.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from annotruth.analyses.groups.coupling import NO_GROUP, class_kernels, opinion_kernels
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.em import one_blas_thread
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.class_results import ClassState, class_posterior
from annotruth.models.robust_gpm.class_steps import is_class_fit
from annotruth.models.robust_gpm.opinion_model import OpinionState, final_model
from annotruth.observations import Labels

SIGNIFICANCE = 0.05
"""The false-discovery rate up to which items and groups are said to differ."""

# Permutations: fewer of many labels, whose items give a distribution under the null hypothesis soon.
_MIN_PERMUTATIONS, _MAX_PERMUTATIONS = 40, 200
_PERMUTED_LABELS = 3_000_000

# Items and groups: where no group differs, the probability of a discovery in either is at most 5%.
_N_FAMILIES = 2

_MIN_LIKELIHOOD = 1e-30  # relative to that of the most likely state


class Evidence(NamedTuple):
    """What tests take from the fit without groups."""

    log_likelihood: Floats  # of each label given the state, annotators x categories x states
    prior: Floats  # the share of items in each state
    transition: Floats  # T of groups that differ, states x states
    # how far each annotator's labels are from what the crowd says about their items: annotators x 1
    # on ordinal scales, annotators x categories on nominal ones
    residual: Floats

    @classmethod
    def of(cls, crowd: Fit) -> Evidence:
        """Return what tests take from a fit without groups."""
        labels = crowd.data
        if is_class_fit(crowd):
            classes = ClassState.from_fit(crowd)
            prior, repeated = classes.parameters.prior, classes.repeated_label
            posterior = class_posterior(labels, classes)
            class_of = classes.choice.candidate.items(labels).class_of
            kernels = class_kernels(prior, class_of)
        else:
            opinions = OpinionState.from_fit(crowd)
            final = final_model(labels, opinions)
            prior, repeated = opinions.parameters.prior, opinions.repeated_label
            posterior = final.posterior
            kernels = opinion_kernels(prior, final.items)
        # The posterior of strategies, given that annotators are serious half of the time or more.
        serious = posterior.weights * (posterior.strategies.reliability >= SPAMMER_BELOW) + 1e-300
        weights = serious / serious.sum(axis=1, keepdims=True)
        probability = posterior.strategies.probability.average(weights, repeated)
        return cls(np.log(probability), prior, kernels[1:].mean(axis=0), _residuals(crowd))


def _residuals(crowd: Fit) -> Floats:
    """Return annotators' mean differences from the crowd."""
    labels = crowd.data
    item, label = labels.item_of_label(), labels.category_of_label()
    if labels.scale.is_ordinal:
        assert crowd.expectation is not None
        difference = (labels.scale.values[label] - crowd.expectation[item])[:, np.newaxis]
    else:
        opinion = crowd.opinion_distribution().dense(labels.n_categories)
        difference = np.eye(labels.n_categories)[label] - opinion[item]
    sums = np.zeros((labels.n_annotators, difference.shape[1]))
    np.add.at(sums, labels.annotator, difference)
    residuals: Floats = sums / labels.labels_per_annotator[:, np.newaxis]
    return residuals


class Statistics(NamedTuple):
    """The statistics of one assignment of annotators to groups."""

    # the log-likelihood ratio of each item; minus infinity where fewer than two groups labelled it
    items: Floats
    groups: Floats  # the sum over items of each group's log-likelihood ratio


class LikelihoodRatios:
    """Log-likelihood ratios of groups that differ to groups that agree, for any groups of annotators."""

    def __init__(self, labels: Labels, evidence: Evidence, n_groups: int) -> None:
        self._item = labels.item_of_label().astype(np.int64)
        self._annotator = labels.annotator
        # Single precision: many permutations, and statistics of a few digits.
        table = evidence.log_likelihood.astype(np.float32)
        self._logs = table[labels.annotator, labels.category_of_label()]
        self._transition = evidence.transition.astype(np.float32)
        self._n_groups = n_groups
        first = np.searchsorted(self._item, np.arange(labels.n_items))
        # Of the items' states, if groups agree.
        log_prior = np.log(evidence.prior).astype(np.float32)
        self._posterior = softmax(log_prior + np.add.reduceat(self._logs, first, axis=0), axis=1)

    def of(self, group: Codes) -> Statistics:
        """Return the statistics, given the group of each annotator."""
        group = group[self._annotator]
        code = self._item * self._n_groups + group
        order = np.argsort(code, kind="stable")
        order = order[group[order] != NO_GROUP]
        code = code[order]
        starts = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
        item, of_pair = code[starts] // self._n_groups, code[starts] % self._n_groups
        several = np.bincount(item, minlength=len(self._posterior))[item] > 1
        own = np.add.reduceat(self._logs[order], starts, axis=0)[several]
        item, of_pair = item[several], of_pair[several]
        own -= own.max(axis=1, keepdims=True)
        likelihood = np.maximum(np.exp(own), _MIN_LIKELIHOOD)
        ratio = (likelihood @ self._transition.T) / likelihood
        alone = np.log(np.einsum("es,es->e", self._posterior[item], ratio))
        items = np.full(len(self._posterior), -np.inf)
        if len(item):
            first = np.flatnonzero(np.append(True, item[1:] != item[:-1]))
            tested = item[first]
            product = np.add.reduceat(np.log(ratio), first, axis=0)
            items[tested] = logsumexp(product, b=self._posterior[tested], axis=1)
        groups: Floats = np.bincount(of_pair, alone, minlength=self._n_groups).astype(np.float64)
        return Statistics(items, groups)


class GroupDifferences(NamedTuple):
    """Which items and groups differ."""

    items: Codes  # the items that two groups or more labelled
    # of these items
    p_value: Floats
    q_value: Floats
    # of the groups, each compared with all others
    group_p_value: Floats
    group_q_value: Floats
    # by how much the labels of each group are above those of the others; NaN on nominal scales
    level: Floats
    n_permutations: int  # how often the groups were permuted


def find_differences(crowd: Fit, group: Codes, n_groups: int, seed: int = 0) -> GroupDifferences:
    """Return which items and groups differ beyond chance.

    ``crowd`` is the fit without groups, ``group`` that of each annotator.
    """
    labels, evidence = crowd.data, Evidence.of(crowd)
    ratios = LikelihoodRatios(labels, evidence, n_groups)
    rng = np.random.default_rng(seed)
    n = int(np.clip(_PERMUTED_LABELS // labels.n_labels, _MIN_PERMUTATIONS, _MAX_PERMUTATIONS))
    groups = [group, *(_permuted(group, rng) for _ in range(n))]
    with one_blas_thread():
        observed, *permuted = [ratios.of(each) for each in groups]
    tested = np.flatnonzero(observed.items > -np.inf)
    p_value, q_value = item_values(observed.items[tested], [each.items for each in permuted])
    levels = np.array([_levels(evidence.residual, each, n_groups) for each in groups])
    opinions = np.array([observed.groups, *(each.groups for each in permuted)])
    return GroupDifferences(
        *(tested, p_value, q_value),
        *group_values(np.sqrt((levels**2).sum(axis=2)), opinions),
        levels[0, :, 0] if labels.scale.is_ordinal else np.full(n_groups, np.nan),
        n,
    )


def item_values(observed: Floats, permuted: list[Floats]) -> tuple[Floats, Floats]:
    """Return p-values and q-values of statistics, given those of permuted data."""
    from scipy.stats import false_discovery_control  # imported here because that takes long

    null = [each[each > -np.inf] for each in permuted]
    # The data observed are one of the equally likely permutations.
    pool = np.sort(np.concatenate([observed, *null]))

    def p_values(statistics: Floats) -> Floats:
        at_least = len(pool) - np.searchsorted(pool, statistics, side="left")
        share: Floats = at_least / len(pool)
        return share

    p_value = p_values(observed)
    q_value = false_discovery_control(p_value)
    smallest = np.array([false_discovery_control(p_values(each)).min(initial=1.0) for each in null])
    n_as_small = np.count_nonzero(smallest <= q_value.min(initial=1.0))
    p_any = _N_FAMILIES * (1.0 + n_as_small) / (1.0 + len(null))
    return p_value, np.minimum(np.maximum(q_value, p_any), 1.0)


def _permuted(group: Codes, rng: np.random.Generator) -> Codes:
    """Return the groups, permuted among annotators that have one."""
    members = np.flatnonzero(group != NO_GROUP)
    permuted = group.copy()
    permuted[members] = rng.permutation(group[members])
    return permuted


def group_values(*statistics: Floats) -> tuple[Floats, Floats]:
    """Return p-values and q-values of groups.

    Each of the statistics is permutations x groups, and the first row is that observed.
    """
    largest = np.maximum.reduce([_standardised(each) for each in statistics])
    # Equal but for rounding counts as equal.
    observed = largest[0] - 1e-9
    p_value: Floats = (largest >= observed).mean(axis=0)
    of_any = (largest.max(axis=1, keepdims=True) >= observed).mean(axis=0)
    return p_value, np.minimum(_N_FAMILIES * of_any, 1.0)


def _standardised(statistic: Floats) -> Floats:
    deviation = np.maximum(statistic.std(axis=0), 1e-300)
    standardised: Floats = (statistic - statistic.mean(axis=0)) / deviation
    return standardised


def _levels(residual: Floats, group: Codes, n_groups: int) -> Floats:
    """Return how far each group's mean residual is above that of the others, groups x columns."""
    members = group != NO_GROUP
    is_member = group[members] == np.arange(n_groups)[:, np.newaxis]
    own, n = is_member @ residual[members], is_member.sum(axis=1, keepdims=True)
    others = residual[members].sum(axis=0) - own
    levels: Floats = own / np.maximum(n, 1) - others / np.maximum(members.sum() - n, 1)
    return levels
