"""Simulated crowds that label items with one right class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from annotruth import simulate
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels, Scale

AnyCodes: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True)
class Design:
    """The size of a crowd and of its task."""

    n_items: int
    n_annotators: int
    n_classes: int
    labels_per_item: int


@dataclass(frozen=True, kw_only=True, eq=False)
class NominalCrowd:
    r"""How a crowd labels items of one right class.

    Item i has class k with probability ``prior[k]`` and, independently, variant v with
    probability ``variant_weights[v]``: variants make items of the same class differ, so that the
    errors of annotators correlate. Annotator j then gives label l with probability
    ``rows[v, j, k, l]``. With the parameters known, the posterior is

    .. math:: p(k \mid r_i) \propto p_k \sum_v w_v \prod_{j \in i} \text{rows}_{v,j,k,r_{ij}}

    Attributes
    ----------
    prior
        One probability per class.
    rows
        Variants x annotators x classes x labels.
    variant_weights
        One probability per variant.
    """

    prior: Floats
    rows: Floats
    variant_weights: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class NominalLabels:
    """Labels drawn from a `NominalCrowd`, and what they were drawn from.

    Attributes
    ----------
    labels
        The labels. Annotators without a label are left out.
    truth
        The class of every item.
    posterior
        The probabilities of the classes with the true parameters, items x classes; None if it was
        not computed.
    log_likelihood
        Log-likelihood of all labels with the true parameters; nan if it was not computed.
    annotator
        The number of every listed annotator in the crowd.
    """

    labels: Labels
    truth: Codes
    posterior: Floats | None
    log_likelihood: float
    annotator: Codes


def class_scale(n_classes: int) -> Scale:
    """Return a nominal scale of numbered classes."""
    width = len(str(n_classes - 1))
    return Scale.nominal([f"c{n:0{width}}" for n in range(n_classes)])


def draw_design(design: Design, rng: np.random.Generator) -> Labels:
    """Return labels whose items and annotators are those of a design; their classes are arbitrary."""
    return simulate.crowd(
        n_items=design.n_items,
        n_annotators=design.n_annotators,
        n_categories=2,
        labels_per_item=design.labels_per_item,
        seed=rng,
    ).labels


def with_classes(assigned: Labels, label: Codes, n_classes: int) -> Labels:
    """Return the items and annotators of `assigned` with other labels, in its order."""
    return Labels.from_codes(
        assigned.item_of_label(),
        assigned.annotator,
        label,
        items=assigned.items,
        annotators=assigned.annotators,
        scale=class_scale(n_classes),
    )


def draw_labels(
    crowd: NominalCrowd, design: Design, rng: np.random.Generator, *, oracle: bool = True
) -> NominalLabels:
    """Draw labels, and compute posterior and likelihood with the true parameters."""
    assigned = draw_design(design, rng)
    item = assigned.item_of_label()
    number = np.asarray(assigned.annotators.to_numpy(zero_copy_only=False)) - 1
    annotator = number[assigned.annotator]
    truth = rng.choice(design.n_classes, size=design.n_items, p=crowd.prior)
    variant = rng.choice(crowd.variant_weights.size, size=design.n_items, p=crowd.variant_weights)
    label = draw_rows(crowd.rows, (variant[item], annotator, truth[item]), rng)
    posterior, log_likelihood = None, np.nan
    if oracle:
        joint = _joint(crowd, item, annotator, label)
        posterior, log_likelihood = softmax(joint, axis=1), float(logsumexp(joint, axis=1).sum())
    return NominalLabels(
        labels=with_classes(assigned, label, design.n_classes),
        truth=truth,
        posterior=posterior,
        log_likelihood=log_likelihood,
        annotator=number,
    )


def draw_rows(rows: Floats, index: tuple[AnyCodes, ...], rng: np.random.Generator) -> Codes:
    """Draw one label per index from rows of probabilities, without a table of labels x classes."""
    uniform = rng.random(index[0].size)
    below = np.cumsum(rows, axis=-1)
    label = np.zeros(uniform.size, dtype=np.int64)
    for n in range(rows.shape[-1] - 1):
        label += uniform >= below[(*index, n)]
    return label


def _joint(crowd: NominalCrowd, item: AnyCodes, annotator: AnyCodes, label: Codes) -> Floats:
    """Return the log-probability of an item's labels and class, items x classes."""
    n_items = int(item.max()) + 1
    log_rows = np.log(np.maximum(crowd.rows, 1e-300))
    log_p = np.empty((crowd.variant_weights.size, n_items, crowd.prior.size))
    for v, weight in enumerate(crowd.variant_weights):
        for k, prior in enumerate(crowd.prior):
            terms = log_rows[v, annotator, k, label]
            log_p[v, :, k] = np.log(weight * prior) + np.bincount(item, terms, n_items)
    joint: Floats = logsumexp(log_p, axis=0)
    return joint


def class_prior(n_classes: int, *, balanced: bool) -> Floats:
    """Return equal probabilities, or ones that halve from class to class, down to 2%."""
    if balanced:
        return np.full(n_classes, 1 / n_classes)
    prior = np.maximum(0.5 ** np.arange(1.0, n_classes + 1), 0.02)
    normalised: Floats = prior / prior.sum()
    return normalised


def dawid_skene_rows(
    design: Design, rng: np.random.Generator, *, low: float = 0.5, high: float = 0.95
) -> Floats:
    """Draw every annotator's confusion matrix, annotators x classes x labels.

    The mean diagonal of an annotator is uniform on [low, high]. Errors follow confusions of the
    whole crowd, drawn from Dirichlet(2) per class; own rows are Dirichlet with concentration 20
    around that.
    """
    n, k = design.n_annotators, design.n_classes
    diagonal = rng.uniform(low, high, size=(n, 1, 1))
    errors = np.zeros((k, k))
    errors[~np.eye(k, dtype=np.bool_)] = rng.dirichlet(np.full(k - 1, 2.0), size=k).ravel()
    mean = diagonal * np.eye(k) + (1 - diagonal) * errors
    rows: Floats = rng.standard_gamma(20 * mean)
    rows /= rows.sum(axis=-1, keepdims=True)
    return rows


def one_coin_rows(
    design: Design, rng: np.random.Generator, *, low: float = 0.5, high: float = 0.95
) -> Floats:
    """Draw confusion matrices of one accuracy per annotator; all errors are equally likely."""
    accuracy = rng.uniform(low, high, size=(design.n_annotators, 1, 1))
    k = design.n_classes
    rows: Floats = np.where(np.eye(k), accuracy, (1 - accuracy) / (k - 1))
    return rows


def one_variant(prior: Floats, rows: Floats) -> NominalCrowd:
    """Return a crowd in which items of one class do not differ."""
    return NominalCrowd(prior=prior, rows=rows[np.newaxis], variant_weights=np.ones(1))
