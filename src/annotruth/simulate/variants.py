"""Simulated crowds in groups of differing opinions, beside machines, and of several questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels, Scale
from annotruth.observations.columns.questions import concat_questions
from annotruth.observations.encode import decode_table, to_text
from annotruth.simulate.crowds import (
    CHOICES,
    Simulation,
    assign,
    categories_at,
    check_choices,
    check_counts,
    check_numbers,
    check_share,
    discretize,
    draw_labels,
    generator,
    one_right_label,
    reliabilities,
)

_SIZES = {"a": 20, "b": 20}

_SCALES = {"scale": ("nominal", "ordinal")}


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
    # The logit of the mean is shifted; the concentration stays.
    concentration = alpha + beta
    mean = expit(logit(alpha / concentration) + shift * rng.standard_normal((n_groups, 1)))
    alpha, beta = concentration * mean, concentration * (1.0 - mean)
    distributions = np.stack(
        [
            discretize(a[:, np.newaxis], b[:, np.newaxis], n_categories)
            for a, b in zip(alpha, beta, strict=True)
        ]
    )
    group = np.repeat(np.arange(n_groups), list(sizes.values()))
    reliability = reliabilities(rng, n_annotators, spammer_share)
    upper = 1.0 - 2.0 * (1.0 - least_reliability) * (1.0 - reliability)
    reliability = np.where(reliability < 0.5, reliability, upper)
    annotator = assign(rng, n_items, n_annotators, labels_per_item)
    drawn = draw_labels(
        rng,
        distribution=np.tensordot(
            np.array(list(sizes.values())) / n_annotators, distributions, axes=1
        ),
        of_labels=distributions[group[annotator], np.arange(n_items)[:, np.newaxis]],
        reliability=reliability,
        annotator=annotator,
        behavior=behavior,
    )
    return GroupSimulation(
        crowd=drawn,
        names=tuple(sizes),
        group=group[np.asarray(drawn.labels.annotators) - 1],
        distributions=distributions,
        differs=differs,
    )


def with_machines(
    simulation: Simulation,
    *,
    n_machines: int = 3,
    reliability: float = 0.9,
    correlation: float = 0.0,
    seed: int | np.random.Generator = 0,
) -> Labels:
    r"""Return the labels of a simulated crowd and those of machines, which label all items.

    A label is drawn from the item's distribution with probability ``reliability``, and is any category
    otherwise. With probability :math:`\sqrt\rho` a machine gives the label that was drawn for all of
    them, else one of its own, so that the labels of two machines have the correlation
    :math:`\rho`, given the item.

    Parameters
    ----------
    simulation
        A simulation whose truths are distributions (`crowd`).
    n_machines, reliability, correlation
        The machines, named machine-1, machine-2 and so on.
    seed
        The same seed gives the same labels.

    Examples
    --------
    >>> from annotruth import simulate
    >>> labels = simulate.with_machines(simulate.crowd(n_items=10, n_annotators=4), n_machines=2)
    >>> labels.annotators.to_pylist()[-2:], labels.n_labels
    (['machine-1', 'machine-2'], 60)
    """
    if simulation.distribution is None:
        raise InputError("machines are drawn from items' distributions: simulate.crowd has them")
    check_counts(1, n_machines=n_machines)
    check_share(reliability=reliability, correlation=correlation)
    rng = generator(seed)
    crowd, distribution = simulation.labels, simulation.distribution
    n_items = crowd.n_items

    def draw() -> Codes:
        """Return one label per item: from its distribution, or any category."""
        serious = categories_at(rng.random(n_items), distribution)
        other = rng.integers(distribution.shape[1], size=n_items)
        return np.where(rng.random(n_items) < reliability, serious, other)

    drawn = [draw() for _ in range(n_machines + 1)]
    shares = rng.random((n_machines, n_items)) < np.sqrt(correlation)
    labels = np.where(shares, drawn[0], np.stack(drawn[1:]))
    names = [f"machine-{k + 1}" for k in range(n_machines)]
    order = np.argsort(crowd.row)
    return Labels.from_codes(
        np.concatenate([crowd.item_of_label()[order], np.tile(np.arange(n_items), n_machines)]),
        np.concatenate(
            [crowd.annotator[order], crowd.n_annotators + np.repeat(np.arange(n_machines), n_items)]
        ),
        np.concatenate([crowd.category_of_label()[order], labels.ravel()]),
        items=crowd.items,
        annotators=pa.concat_arrays([to_text(crowd.annotators), pa.array(names)]),
        scale=crowd.scale,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionSimulation:
    """Simulated labels of several questions with the truth they were drawn from.

    Attributes
    ----------
    questions
        The simulation of each question, by name.
    table
        All labels: question, item, annotator, label.

    Examples
    --------
    >>> from annotruth import simulate
    >>> simulation = simulate.questions(scales=["nominal", "ordinal"], n_items=10, seed=0)
    >>> list(simulation.questions), simulation.table.column_names
    (['q1', 'q2'], ['question', 'item', 'annotator', 'label'])
    """

    questions: Mapping[str, Simulation]
    table: pa.Table


def questions(
    *,
    scales: Sequence[str] = ("nominal", "nominal", "nominal"),
    n_items: int = 100,
    n_annotators: int = 40,
    n_categories: int = 4,
    labels_per_item: int | None = 5,
    spammer_share: float = 0.25,
    correlation: float = 0.9,
    accuracy: float = 0.85,
    seed: int | np.random.Generator = 0,
) -> QuestionSimulation:
    r"""Simulate labels of several questions about the same items.

    Annotator s is serious in question q with probability :math:`F^{-1}(u_{s,q})`, where F is the
    distribution of reliabilities of `crowd` and the :math:`u_{s,q}` are correlated within the
    annotator: :math:`u_{s,q} = \Phi(\sqrt{c}\, z_s + \sqrt{1 - c}\, z_{s,q})` with standard normal z.
    Labels that are not serious are random.

    Parameters
    ----------
    scales
        "nominal" or "ordinal" for every question. Items of a nominal question have one right label,
        which serious labels are with probability ``accuracy``, else any other; those of an ordinal one
        have a distribution of opinion, as in `crowd`.
    n_items, n_annotators, n_categories, labels_per_item
        As in `crowd`, for each question.
    spammer_share
        The probability that a reliability is below 0.5.
    correlation
        The correlation c of an annotator's reliabilities: 0 is independent, 1 is the same in all
        questions.
    accuracy
        How often serious labels of a nominal question are right.
    seed
        The same seed gives the same labels, byte for byte.
    """
    check_numbers(n_items, n_annotators, n_categories, labels_per_item, spammer_share)
    check_share(correlation=correlation, accuracy=accuracy)
    for scale in scales:
        check_choices(_SCALES, scale=scale)
    rng = generator(seed)
    shared = rng.standard_normal(n_annotators)
    simulations = {}
    for number, scale in enumerate(scales, start=1):
        own = rng.standard_normal(n_annotators)
        latent = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own
        if scale == "ordinal":
            alpha, beta = rng.uniform(1.0, 10.0, size=(2, n_items, 1))
            distribution = discretize(alpha, beta, n_categories)
        else:
            _, distribution = one_right_label(rng, n_items, n_categories, accuracy)
        drawn = draw_labels(
            rng,
            distribution=distribution,
            reliability=_reliability_at(ndtr(latent), spammer_share),
            annotator=assign(rng, n_items, n_annotators, labels_per_item),
        )
        if scale == "nominal":
            names = [f"c{code}" for code in range(1, n_categories + 1)]
            labels = replace(drawn.labels, scale=Scale.nominal(names))
            drawn = replace(drawn, labels=labels)
        simulations[f"q{number}"] = drawn
    tables = {name: decode_table(each.labels.to_codes()) for name, each in simulations.items()}
    return QuestionSimulation(questions=simulations, table=concat_questions(tables))


def _reliability_at(quantile: Floats, spammer_share: float) -> Floats:
    """Return the reliabilities at quantiles: uniform below and above 0.5, as in `crowd`."""
    below = 0.5 * quantile / max(spammer_share, 1e-12)
    above = 0.5 + 0.5 * (quantile - spammer_share) / max(1.0 - spammer_share, 1e-12)
    reliability: Floats = np.where(quantile < spammer_share, below, above)
    return reliability
