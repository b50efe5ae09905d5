"""Machines beside a simulated crowd, which may depend on one another."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels
from annotruth.observations.encode import to_text
from annotruth.simulate.checks import check_counts, check_share, generator
from annotruth.simulate.crowds import Simulation


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
    drawn = [_draw(rng, distribution, reliability) for _ in range(n_machines + 1)]
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


def _draw(rng: np.random.Generator, distribution: Floats, reliability: float) -> Codes:
    """Return one label per item: from its distribution, or any category."""
    n_items, n_categories = distribution.shape
    below = np.cumsum(distribution, axis=1)[:, :-1]
    serious = (rng.random((n_items, 1)) >= below).sum(axis=1)
    other = rng.integers(n_categories, size=n_items)
    return np.where(rng.random(n_items) < reliability, serious, other)
