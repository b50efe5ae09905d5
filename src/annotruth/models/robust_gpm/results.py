"""What RobustGPM's rounds have found, read out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.engines import Input, Pass, Sum
from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.labels import Labels, Scale
from annotruth.models.base_fit import BaseFit, Column
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.intervals import Z_95, likely_sets
from annotruth.models.item_results import ItemResults, make_fit
from annotruth.models.latent_classes import variance_inflation
from annotruth.models.robust_gpm.evidence import (
    TEMPER,
    annotator_columns,
    interval,
    too_few,
    verdicts,
)
from annotruth.models.robust_gpm.steps import (
    MEANS,
    N_SHAPES,
    SHIFTS,
    Opinions,
    Parameters,
    Rows,
    Steps,
)
from annotruth.models.robust_gpm.strategies import Strategies, mixed_over, normalised, strategies_of

_ITEMS = 1 << 18  # how many are worked on at a time


class Reached(NamedTuple):
    """Where the rounds ended: all it takes to read them out, to predict and to go on."""

    at: Parameters
    rows: Rows | None  # annotators' own, None where their ways say all
    support: Floats  # annotators x ways: the log-likelihood, from the others' labels
    repeated: Codes  # the label each annotator would repeat

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Name all of it for a fit."""
        at, rows = self.at, self.rows
        own = {} if rows is None else {"own_prior": rows.prior, "own_rates": rows.rates}
        named = {**at._asdict(), "always": np.array([at.always])}
        return {**named, **own, "support": self.support, "repeated": self.repeated}

    @classmethod
    def of(cls, fit: BaseFit) -> Reached:
        """Find it in a fit, which may come from a file and is not trusted."""
        people, n = fit.data.n_annotators, fit.data.n_categories
        one_truth = "own_rates" in fit.parameters
        shifts, kinds = (1, n) if one_truth else (len(SHIFTS), N_SHAPES)
        serious = fit.parameter("serious", shifts, n, kinds)
        ordinal = fit.data.scale.is_ordinal
        ways = len(strategies_of(serious, np.ones(shifts), ordinal=ordinal).eps)
        rows = None
        if one_truth:
            rows = Rows(
                fit.parameter("own_prior", kinds), fit.parameter("own_rates", people, n, kinds)
            )
        return cls(
            Parameters(
                fit.parameter("weights", people, ways),
                fit.parameter("prior", kinds),
                float(fit.parameter("always", 1)[0]),
                serious,
            ),
            rows,
            fit.parameter("support", people, ways),
            np.clip(fit.parameter("repeated", people), 0, n - 1),
        )


def reached(steps: Steps, at: Parameters, rows: Rows | None) -> Reached:
    """Judge annotators by the others' labels, where the rounds have ended."""
    return Reached(at, rows, support_of(steps, at, rows), steps.repeated)


def support_of(steps: Steps, at: Parameters, rows: Rows | None) -> Floats:
    """Sum each annotator's log-likelihood in every way, from the others' labels."""
    ways = steps.ways(at.serious)
    return steps.support(at, ways) if rows is None else steps.support_by(*rows, ways)


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


class Judged(NamedTuple):
    """The annotators as the others' labels judge them."""

    weights: Floats  # of ways
    loose: Floats  # the same as logarithms, the labels counting less
    reliability: Floats


def judged(steps: Steps, end: Reached) -> Judged:
    """Weigh ways by their support."""
    ways = steps.ways(end.at.serious)
    log_prior = steps.log_prior(end.at.always, ways)
    weights = normalised(end.support + log_prior)
    return Judged(weights, TEMPER * end.support + log_prior, weights @ ways.eps)


def kinds_of(steps: Steps, end: Reached, weights: Floats) -> Kinds:
    """Say what items are judged by, the annotators' ways having these weights."""
    ways = steps.ways(end.at.serious)
    usual = steps.usual(weights, ways)
    prior, own = (end.at.prior, usual) if end.rows is None else end.rows
    opinions = steps.opinions(end.at._replace(weights=weights), ways)
    factor = wider(steps, weights, ways)
    return Kinds(prior, steps.gate, usual, own, opinions, end.rows is not None, factor)


ITEM_ARRAYS = ("theta", "leading", "spread", "p_serious")
"""What `read_items` leaves in the session."""


def read_items(steps: Steps, end: Reached, kinds: Kinds, weights: Floats) -> None:
    """Judge items by the annotators so judged."""
    session, scale = steps.session, steps.labels.scale
    n = len(scale)
    for name, width in zip(ITEM_ARRAYS, (n, n, 3), strict=False):
        session.allocate(name, per="items", shape=(width,))
    session.allocate("p_serious", per="labels")
    ways = steps.ways(end.at.serious)
    serious = mixed_over(weights, ways.serious, ways.serious_repeating, steps.repeated)
    values = scale.values if scale.is_ordinal else np.zeros(n)
    one = Pass(
        "robust_gpm.summarize",
        state=ITEM_ARRAYS,
        inputs=(
            *(Input("prior"), Input("gate"), Input("rates", annotator_axis=0)),
            *(Input("opinions"), Input("modes"), Input("scores")),
            Input("serious", annotator_axis=0),
        ),
        sums=(Sum("log_likelihood", (1,)),),
    )
    session.run_pass(
        one,
        prior=kinds.prior,
        gate=kinds.gate,
        rates=kinds.own,
        opinions=kinds.opinions,
        modes=kinds.opinions.argmax(axis=1),
        scores=kinds.opinions @ values,
        serious=serious,
    )


def read(
    steps: Steps, end: Reached, *, model: str, settings: dict[str, Any], history: History
) -> BaseFit:
    """Judge annotators by the others' labels, then items by the annotators so judged."""
    ways = steps.ways(end.at.serious)
    weights, loose, reliability = judged(steps, end)
    likely = normalised(loose)
    low, high = interval(likely, ways)
    kinds = kinds_of(steps, end, weights)
    read_items(steps, end, kinds, weights)
    columns = annotator_columns(steps, kinds.prior, end.at.always, loose, ways)
    unclear = too_few(likely, ways.log_prior(end.at.always), ways, high - low, columns)
    return make_fit(
        steps.labels,
        steps.session,
        ITEM_ARRAYS,
        partial(_items_of, kinds.wider, not kinds.one_truth),
        model=model,
        settings=settings,
        history=history,
        reliability=reliability,
        low=np.minimum(low, reliability),
        high=np.maximum(high, reliability),
        behavior=verdicts(steps, weights, ways, unclear),
        annotator_columns=columns,
        parameters=end.arrays(),
    )


def _items_of(
    factor: float, opinions: bool, labels: Labels, arrays: Mapping[str, NDArray[Any]]
) -> ItemResults:
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
    return ItemResults(Distribution.of_dense(theta), np.minimum(p_serious, 1.0), columns)


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


def wider(steps: Steps, weights: Floats, ways: Strategies) -> float:
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
        return float(np.sqrt(variance_inflation(labels)))
    share = labels.labels_per_annotator / labels.n_labels
    spread = weights @ ways.inverted**2 - (weights @ ways.inverted) ** 2
    serious = share @ (weights @ ways.eps)
    return float(np.sqrt(1.1 + 29.0 * (share @ spread) / serious**2))
