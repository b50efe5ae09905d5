"""Simulated labels of annotators in groups whose opinions differ on some items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit, logit

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels
from annotruth.simulate.checks import check_choices, check_counts, check_share, generator
from annotruth.simulate.crowds import (
    CHOICES,
    Simulation,
    assign,
    check_numbers,
    discretize,
    make_simulation,
    reliabilities,
)

_SIZES = {"a": 20, "b": 20}


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupSimulation:
    """Simulated labels of groups, with the truth they were drawn from.

    Attributes
    ----------
    crowd
        The labels, and the truth about annotators. Its distribution is the mean of the groups',
        weighted by their sizes.
    names
        The names of the groups.
    group
        The group of each annotator: a place in ``names``, in the order of ``labels.annotators``.
    distributions
        The distribution of each group's opinion: groups x items x categories.
    differs
        Whether the groups' opinions on each item are drawn apart from one another.

    Examples
    --------
    >>> from annotruth import simulate
    >>> simulated = simulate.groups(n_items=10, sizes={"novices": 6, "experts": 3}, seed=0)
    >>> simulated.distributions.shape, int(simulated.differs.sum())
    ((2, 10, 5), 3)
    >>> simulated.annotators.column_names
    ['annotator', 'group']
    """

    crowd: Simulation
    names: tuple[str, ...]
    group: Codes
    distributions: Floats
    differs: NDArray[np.bool_]

    @property
    def annotators(self) -> pa.Table:
        """The traits of annotators, as `annotruth.fit` takes them: annotator, group."""
        names = pa.array(self.names).take(pa.array(self.group))
        return pa.table({"annotator": self.crowd.labels.annotators, "group": names})

    @property
    def labels(self) -> Labels:
        """The labels, with the annotators' groups as the covariate ``group``."""
        return self.crowd.labels.with_annotator_covariates(self.annotators)


def groups(
    *,
    n_items: int = 150,
    sizes: Mapping[str, int] | None = None,
    n_categories: int = 5,
    differing_share: float = 0.3,
    shift: float = 0.0,
    labels_per_item: int | None = None,
    behavior: str = "random",
    spammer_share: float = 0.2,
    least_reliability: float = 0.5,
    seed: int | np.random.Generator = 0,
) -> GroupSimulation:
    r"""Simulate labels of groups of annotators.

    Opinions on an item are Beta(a, b) in equal bins, with a and b uniform on [1, 10], as those of
    `crowd`. On a share of the items every group has an opinion of its own, drawn independently; on
    the others all groups have the same one. A group may also be generous or harsh on all items: the
    logit of its means is shifted by a draw from a Gaussian. Annotators, serious or not, are those of
    `crowd`, whatever their group.

    Parameters
    ----------
    n_items, n_categories
        Size of the task.
    sizes
        The number of annotators of each group, by its name; by default 20 in each of two.
    differing_share
        The share of items on which the groups' opinions are drawn apart, rounded to a whole number
        of items; they are chosen at random.
    shift
        The standard deviation of the groups' shifts of the logit of the mean.
    labels_per_item
        Number of annotators who label each item, drawn at random whatever their group; None: all.
    least_reliability
        Annotators who are not spammers have a reliability uniform from this to 1; at least 0.5.
    behavior, spammer_share, seed
        As for `crowd`.
    """
    sizes = _SIZES if sizes is None else sizes
    check_choices(CHOICES, behavior=behavior)
    if len(sizes) < 2:
        raise InputError(f"sizes has {len(sizes)} group: name two or more, with their numbers")
    check_counts(1, **{f"sizes[{name!r}]": size for name, size in sizes.items()})
    n_annotators = sum(sizes.values())
    check_numbers(n_items, n_annotators, n_categories, labels_per_item, spammer_share)
    check_share(differing_share=differing_share)
    if not 0.5 <= least_reliability <= 1.0:
        raise InputError(f"least_reliability is {least_reliability!r}: give a number from 0.5 to 1")
    if not shift >= 0.0:
        raise InputError(f"shift is {shift!r}: give a number of at least 0")
    rng = generator(seed)

    n_groups = len(sizes)
    parameters = rng.uniform(1.0, 10.0, size=(2, n_groups, n_items))
    differs = np.zeros(n_items, dtype=np.bool_)
    differs[rng.permutation(n_items)[: round(differing_share * n_items)]] = True
    alpha, beta = np.where(differs, parameters, parameters[:, :1])
    alpha, beta = _shifted(alpha, beta, shift * rng.standard_normal((n_groups, 1)))
    distributions = np.stack(
        [
            discretize(a[:, np.newaxis], b[:, np.newaxis], n_categories, "bins")
            for a, b in zip(alpha, beta, strict=True)
        ]
    )
    group = np.repeat(np.arange(n_groups), list(sizes.values()))
    reliability = reliabilities(rng, n_annotators, spammer_share, reliable_above_half=True)
    upper = 1.0 - 2.0 * (1.0 - least_reliability) * (1.0 - reliability)
    reliability = np.where(reliability < 0.5, reliability, upper)
    annotator = assign(rng, n_items, n_annotators, labels_per_item)
    uniform = rng.random(annotator.shape)
    below = np.cumsum(distributions, axis=2)[group[annotator], np.arange(n_items)[:, np.newaxis]]
    crowd = np.tensordot(np.array(list(sizes.values())) / n_annotators, distributions, axes=1)
    drawn = make_simulation(
        rng,
        annotator=annotator,
        serious_label=(uniform[:, :, np.newaxis] >= below[:, :, :-1]).sum(axis=2),
        n_categories=n_categories,
        reliability=reliability,
        behavior=behavior,
        mixing="label",
        distribution=crowd,
        score=crowd @ np.arange(1.0, n_categories + 1),
        label=crowd.argmax(axis=1),
    )
    return GroupSimulation(
        crowd=drawn,
        names=tuple(sizes),
        group=group[np.asarray(drawn.labels.annotators) - 1],
        distributions=distributions,
        differs=differs,
    )


def _shifted(alpha: Floats, beta: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Return Beta distributions with the logit of the mean shifted, equally concentrated."""
    concentration = alpha + beta
    mean = expit(logit(alpha / concentration) + shift)
    return concentration * mean, concentration * (1.0 - mean)
