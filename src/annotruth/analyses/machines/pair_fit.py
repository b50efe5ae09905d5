"""Fits of pair comparisons with machines among the annotators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.analyses.machines.bias import PairBias, different_pairs, measure_bias
from annotruth.analyses.machines.estimates import (
    UNKNOWN_ESTIMATE,
    Estimate,
    estimate_columns,
    numbers,
)
from annotruth.analyses.machines.judges import MACHINE_MARGIN, check_machines, find_machines
from annotruth.analyses.machines.measure import MachineMeasures, measure_machines
from annotruth.analyses.machines.results import make_results
from annotruth.engines import get_engine
from annotruth.errors import InputError
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.pair_gpm.model import PairGPM
from annotruth.models.result import RankFit
from annotruth.models.robust_gpm import RobustGPM
from annotruth.observations import Labels, Scale
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.pairs.table import OUTCOMES, TIE, Comparisons
from annotruth.observations.pairs.votes import EXCHANGED


def check_pair_machine_options(
    estimator: PairEstimator, *, margin: float | None, others: Sequence[tuple[str, Any]]
) -> None:
    """Refuse what cannot be fitted with machines, before comparisons are read."""
    if not isinstance(estimator, PairGPM):
        raise InputError(
            f"machines (`--machine`) need the model pair-gpm, not {estimator.name}: leave out the "
            "model (`--model`)"
        )
    check_machines(get_engine(estimator.engine), margin, others)


def rank_with_machines(
    estimator: PairEstimator,
    data: Comparisons,
    machines: Sequence[Any],
    *,
    margin: float | None,
    progress: ProgressCallback | None = None,
) -> RankFit:
    """Return the fit of people's and machines' comparisons, with results on machines.

    Comparisons of the same pair, under the same context, are labels of one item, by which machines are
    compared with people as in fits of labels. Those that err together count less in the fit of all
    comparisons, which starts from that of the people's.
    """
    margin = MACHINE_MARGIN if margin is None else margin
    codes = find_machines(data.annotators, machines)
    is_machine = np.zeros(data.n_annotators, dtype=np.bool_)
    is_machine[codes] = True
    start_stage(progress, f"fitting {estimator.name} to people's comparisons")
    people = estimator.fit(data.of_annotators(~is_machine), progress=progress).result_
    start_stage(progress, "comparing machines with people")
    labels, measures = _measure(data, is_machine, margin)
    weight = np.ones(data.n_annotators)
    place = match_ids(labels.annotators.take(pa.array(measures.codes)), data.annotators)
    weight[place] = measures.weight
    biases = [measure_bias(_votes_of(data, int(s)), people.scores.mean) for s in place]
    start_stage(progress, f"fitting {estimator.name} to all comparisons")
    weighted = replace(data, annotator_weight=weight)
    fit = estimator.fit(weighted, warm_start=people, progress=progress).result_
    results = make_results(
        measures,
        labels.annotators,
        labels.scale.names,
        margin=margin,
        further_columns=_bias_columns(data, biases, people),
        further_lines=_bias_lines(labels, measures, biases, people),
    )
    return replace(fit, further={**fit.further, "machines": results})


def _measure(
    data: Comparisons, is_machine: NDArray[np.bool_], margin: float
) -> tuple[Labels, MachineMeasures]:
    """Return the outcomes as labels, people's first, and what is measured of the machines."""
    labels = outcome_labels(data)
    by_people = labels.subset(~is_machine[labels.annotator])
    people = RobustGPM(truth="class").fit(by_people).result_
    labels = labels.with_first(people.data.items, people.data.annotators)
    return labels, measure_machines(labels, people, get_engine("memory"), margin)


def outcome_labels(data: Comparisons) -> Labels:
    """Return outcomes as labels left, right and tie; items are pairs under a context.

    The sides of a pair are those on which its items were shown more often, where sides are known.
    """
    pairs, pair = different_pairs(data)
    flipped = data.left > data.right
    turned = np.bincount(pair, np.where(flipped, 1.0, -1.0), minlength=pairs.shape[1]) > 0.0
    turned &= data.sides_known
    answer = np.where(flipped != turned[pair], EXCHANGED[data.outcome], data.outcome)
    order = np.argsort(data.row)
    return Labels.from_codes(
        pair[order],
        data.annotator_of_comparison()[order],
        answer[order].astype(np.int64),
        items=pa.array(np.arange(pairs.shape[1])),
        annotators=data.annotators,
        scale=Scale.nominal(OUTCOMES if data.has_ties else OUTCOMES[:TIE]),
    )


def _votes_of(data: Comparisons, annotator: int) -> Comparisons:
    return data.of_annotators(np.arange(data.n_annotators) == annotator)


def _bias_columns(
    data: Comparisons, biases: Sequence[PairBias], people: RankFit
) -> dict[str, pa.Array]:
    """Return the columns of the machines' table that only comparisons have."""
    n = len(biases)
    columns: dict[str, pa.Array] = {}
    if data.sides_known and people.side_bias is not None:
        columns |= estimate_columns("side_bias", [each.side or UNKNOWN_ESTIMATE for each in biases])
        columns["people_side_bias"] = numbers(np.full(n, people.side_bias[0]))
    for name in data.covariates:
        columns |= estimate_columns(f"{name}_effect", [each.covariates[name] for each in biases])
        columns[f"people_{name}_effect"] = numbers(np.full(n, people.coefficients[name][0]))
    columns["n_both_orders"] = pa.array([each.n_both_orders for each in biases], pa.int64())
    columns["consistency"] = numbers([each.consistency for each in biases])
    return columns


def _bias_lines(
    labels: Labels, measures: MachineMeasures, biases: Sequence[PairBias], people: RankFit
) -> list[str]:
    """Return one line per machine and what sways it."""
    names = to_text(labels.annotators.take(pa.array(measures.codes))).to_pylist()
    lines = []
    for name, bias in zip(names, biases, strict=True):
        if bias.side is not None and people.side_bias is not None:
            lines.append(
                f"machine {name}: side bias {_interval(bias.side)} (above 0 is left); people "
                f"{_interval(Estimate(*people.side_bias))}"
            )
        for covariate, effect in bias.covariates.items():
            of_people = Estimate(*people.coefficients[covariate])
            lines.append(
                f"machine {name}: effect of {covariate} {_interval(effect)}; people "
                f"{_interval(of_people)}"
            )
        if bias.n_both_orders:
            lines.append(
                f"machine {name}: same answer in both orders on {bias.consistency:.0%} of "
                f"{bias.n_both_orders:,} pairs"
            )
    return lines


def _interval(effect: Estimate) -> str:
    return f"{effect.value:+.2f} ({effect.low:+.2f} to {effect.high:+.2f})"
