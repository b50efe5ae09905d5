"""What RobustGPM's rounds have found, read out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.arrays import Floats, slices
from annotruth.engines import Sweep
from annotruth.labels import Labels, Scale, Tally
from annotruth.models.distribution import Distribution
from annotruth.models.em import Trace
from annotruth.models.found import Column, Found
from annotruth.models.intervals import Z_95, likely_sets
from annotruth.models.reading import OfItems, fitted
from annotruth.models.robust_steps import MEANS, Opinions, Parameters, Steps
from annotruth.models.robust_verdicts import TEMPER, annotator_columns, interval, too_few, verdicts
from annotruth.models.ways import Ways, mixed_over, normalised

_ITEMS = 1 << 18  # how many are worked on at a time


class Kinds(NamedTuple):
    """What items are judged by: w[e, k] is proportional to prior[k] times the rates of its labels.

    From it an item's posterior over kinds can be had again, which nobody keeps for all items. With
    classes, annotators' own rows name the likelier class more often, but they have learned the
    items by heart and are too sure of them; usual ways say how sure one may be.
    """

    prior: Floats  # one number a kind of item
    gate: Floats  # categories x kinds: what a known truth says of the kinds
    rates: Floats  # annotators x labels x kinds, by their usual ways
    own: Floats  # the same by their own rows, with which labels are predicted
    opinions: Floats  # kinds x categories: the serious distribution of each kind
    one_truth: bool  # whether kinds are classes
    wider: float  # how much wider items' intervals are than these posteriors


def read(
    steps: Steps,
    at: Parameters,
    prior: Floats,
    rates: Floats | None,
    *,
    model: str,
    settings: dict[str, Any],
    trace: Trace,
) -> tuple[Found, Kinds]:
    """Judge annotators by the others' labels, then items by the annotators so judged.

    ``rates`` are the annotators' own rows, None where their ways say all.
    """
    labels, session = steps.labels, steps.session
    categories = labels.n_categories
    ways = steps.ways(at.serious)
    support = steps.support(at, ways) if rates is None else steps.support_by(prior, rates, ways)
    log_prior = steps.log_prior(at.always, ways)
    weights = normalised(support + log_prior)
    loose = TEMPER * support + log_prior
    reliability = weights @ ways.eps
    likely = normalised(loose)
    low, high = interval(likely, ways)

    after = at._replace(weights=weights)
    usual = mixed_over(weights, ways.plain, ways.repeating, steps.repeated)
    own = usual if rates is None else rates
    serious = mixed_over(weights, ways.serious, ways.serious_repeating, steps.repeated)
    for name, width in (("theta", categories), ("leading", categories), ("spread", 3)):
        session.allocate(name, per="items", shape=(width,))
    session.allocate("p_serious", per="labels")
    opinions = steps.opinions(after, ways)
    values = labels.scale.values if labels.scale.is_ordinal else np.zeros(categories)
    sweep = Sweep(
        "robust_gpm.read_out",
        ("theta", "leading", "spread", "p_serious"),
        ((1,),),
        shared_by=(None, None, 0, None, None, None, 0),
    )
    modes = opinions.argmax(axis=1)
    session.sweep(sweep, prior, steps.gate, own, opinions, modes, opinions @ values, serious)
    columns = annotator_columns(steps, prior, at.always, loose, ways)
    factor = wider(steps, weights, ways)
    unclear = too_few(likely, ways.log_prior(at.always), ways, high - low, columns)
    fit = fitted(
        labels,
        session,
        sweep.state,
        partial(_items_of, factor, isinstance(steps, Opinions)),
        model=model,
        settings=settings,
        trace=trace,
        reliability=reliability,
        low=np.minimum(low, reliability),
        high=np.maximum(high, reliability),
        behavior=verdicts(steps, weights, ways, unclear),
        annotator_columns=columns,
    )
    one_truth = not isinstance(steps, Opinions)
    return fit, Kinds(prior, steps.gate, usual, own, opinions, one_truth, factor)


def _items_of(
    factor: float, opinions: bool, labels: Labels, arrays: Mapping[str, NDArray[Any]]
) -> OfItems:
    """Read off distributions, and for some items at a time how sure they are and who may lead."""
    theta, leading, spread, p_serious = arrays.values()
    theta = theta / theta.sum(axis=1, keepdims=True)
    parts = [
        _columns_of(
            labels.scale, factor, opinions, theta[at], leading[at], spread[at], labels.known[at]
        )
        for at in slices(len(theta), _ITEMS)
    ]
    columns = {name: _joined([part[name] for part in parts]) for name in parts[0]}
    return OfItems(Distribution.of_dense(theta), np.minimum(p_serious, 1.0), columns)


def _joined(parts: list[Column]) -> Column:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return pa.concat_arrays(parts)


def _columns_of(
    scale: Scale,
    factor: float,
    opinions: bool,
    theta: Floats,
    leading: Floats,
    spread: Floats,
    known: NDArray[np.int32],
) -> dict[str, Column]:
    mode = theta.argmax(axis=1)
    columns: dict[str, Column] = {}
    if scale.is_ordinal:
        values = scale.values
        # Between two shapes lies a bin; classes are what they are.
        bin_width = (values[-1] - values[0]) / MEANS if opinions else 0.0
        middle, variance = spread[:, 0], spread[:, 1] + bin_width**2 / 12.0
        middle = np.where(known < 0, middle, values[known])
        reach = np.where(known < 0, Z_95 * factor * np.sqrt(variance), 0.0)
        columns["score_low"] = np.clip(middle - reach, values[0], values[-1])
        columns["score_high"] = np.clip(middle + reach, values[0], values[-1])
    columns["p_leads"] = np.minimum(leading[np.arange(len(mode)), mode], 1.0)
    columns["may_lead"] = likely_sets(leading, scale.names)
    if opinions:
        top = theta[np.arange(len(mode)), mode]
        reach = np.where(known < 0, Z_95 * factor * np.sqrt(spread[:, 2]), 0.0)
        columns["confidence_low"] = np.maximum(top - reach, 0.0)
        columns["confidence_high"] = np.minimum(top + reach, 1.0)
    return columns


def wider(steps: Steps, weights: Floats, ways: Ways) -> float:
    r"""Return how much wider items' intervals are than their posteriors.

    Rates averaged over ways hold what is open of each annotator alone. But annotators are judged
    by one another: who is taken for serious decides who is taken for inverted, and where that is
    open they are wrong together, which no item's posterior knows. With :math:`i_g` the share of
    inverted labels in way g, and means over labels, variances are multiplied by

    .. math:: 1.1 + 29 \, \overline{\mathrm{var}_{q_s}(i)} \, / \, \bar\epsilon^2.

    Classes may have no order to invert; with them the number of labels decides. The form and its
    figures were chosen on simulated crowds.
    """
    labels = steps.labels
    if not isinstance(steps, Opinions):
        return wider_by_labels(labels)
    share = labels.labels_per_annotator / labels.n_labels
    spread = weights @ ways.inverted**2 - (weights @ ways.inverted) ** 2
    serious = share @ (weights @ ways.eps)
    return float(np.sqrt(1.1 + 29.0 * (share @ spread) / serious**2))


def wider_by_labels(labels: Tally) -> float:
    """Return how much wider intervals are where nothing but the number of labels is looked at.

    The fewer labels an annotator has, the less is known of them. The form and its figures were
    chosen on simulated crowds.
    """
    return float(np.sqrt(1.12 + 7.5 * labels.n_annotators / labels.n_labels))
