"""Simulated labels of several questions, answered by one crowd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from annotruth.kernels.arrays import Floats
from annotruth.observations import Scale
from annotruth.observations.encode import decode_table
from annotruth.observations.questions import concat_questions
from annotruth.simulate.checks import check_choices, check_share, generator
from annotruth.simulate.crowds import (
    Simulation,
    assign,
    check_numbers,
    discretize,
    draw_labels,
    one_right_label,
)

_SCALES = {"scale": ("nominal", "ordinal")}


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
            distribution = discretize(alpha, beta, n_categories, "bins")
        else:
            _, distribution = one_right_label(rng, n_items, n_categories, accuracy)
        drawn = draw_labels(
            rng,
            distribution=distribution,
            reliability=_reliability_at(ndtr(latent), spammer_share),
            annotator=assign(rng, n_items, n_annotators, labels_per_item),
        )
        simulations[f"q{number}"] = drawn if scale == "ordinal" else _as_nominal(drawn)
    tables = {name: decode_table(each.labels.to_codes()) for name, each in simulations.items()}
    return QuestionSimulation(questions=simulations, table=concat_questions(tables))


def _reliability_at(quantile: Floats, spammer_share: float) -> Floats:
    """Return the reliabilities at quantiles: uniform below and above 0.5, as in `crowd`."""
    below = 0.5 * quantile / max(spammer_share, 1e-12)
    above = 0.5 + 0.5 * (quantile - spammer_share) / max(1.0 - spammer_share, 1e-12)
    reliability: Floats = np.where(quantile < spammer_share, below, above)
    return reliability


def _as_nominal(simulation: Simulation) -> Simulation:
    """Return the simulation with categories that have names and no order: c1, c2, c3, ..."""
    labels = simulation.labels
    names = [f"c{number}" for number in range(1, labels.n_categories + 1)]
    return replace(simulation, labels=replace(labels, scale=Scale.nominal(names)))
