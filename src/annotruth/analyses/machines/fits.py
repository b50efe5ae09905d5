"""Fits of labels and of pair comparisons with machines among the annotators."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.analyses.machines.measure import (
    UNKNOWN_ESTIMATE,
    Estimate,
    estimate_columns,
    make_results,
    measure_machines,
    numbers,
)
from annotruth.engines import Engine, get_engine
from annotruth.errors import InputError, listed, option, shown
from annotruth.kernels.arrays import Floats
from annotruth.models.base import Estimator
from annotruth.models.distribution import Z_95
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.options import OptionsBase
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.result import Fit, RankFit
from annotruth.models.robust_gpm import RobustGPM
from annotruth.observations import Labels, Scale
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.frames import make_column
from annotruth.observations.options import ReadOptions
from annotruth.observations.pairs.table import LEFT, OUTCOMES, RIGHT, TIE, Comparisons
from annotruth.observations.pairs.votes import EXCHANGED, in_order_of_codes

MACHINE_MARGIN = 0.1
"""By how much a machine may be worse than a person: what the test's authors give for crowd workers."""

_N_SIMILAR = 5

_TIMES_NOT_USED = (
    "machines: times of labels are not used; for reliability over time, fit without {}"
)

_PRECISION = 0.25  # of the prior of the side bias and of standardised coefficients, as in PairGPM
_SHARPNESS_PRECISION = 0.01
_MAX_STEPS, _TOL = 50, 1e-9


def check_machines(
    options: Mapping[str, Any],
    estimator: Any,
    needed: type[OptionsBase],
    engine: Engine,
    others: Sequence[tuple[str, Any]],
) -> None:
    """Refuse machines that cannot be fitted, before data are read.

    ``needed`` is the model that takes machines, ``others`` are names and values of options that do not go
    together with them.
    """
    margin = options.get("machine_margin")
    if not options.get("machines"):
        raise InputError(
            f"{option('machine_margin')} needs machines: name them ({option('machines')}), or leave "
            "it out"
        )
    if not isinstance(estimator, needed):
        name = "auto" if estimator is None else estimator.name
        raise InputError(
            f"machines need the model {needed.name}, not {name}: leave out {option('model')}"
        )
    if margin is not None and not 0.0 <= margin < 1.0:
        raise InputError(
            f"{option('machine_margin')} must be from 0 to below 1, not {margin!r}: 0.2 for experts, "
            "0.15 for trained annotators, 0.1 for crowd workers"
        )
    if engine.capabilities.distributed:
        raise InputError(
            f"the engine {engine.name} takes no machines: choose {option('engine', 'memory')}, or "
            f"leave out {option('machines')}"
        )
    for name, value in others:
        if value is not None:
            raise InputError(
                f"{option('machines')} and {option(name)} do not go together: leave out one of them"
            )


def find_machines(annotators: pa.Array, machines: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which annotators are machines; raise if one is no annotator, or if all are."""
    if isinstance(machines, str) or not isinstance(machines, Iterable):
        raise InputError(f"machines is a list of ids: pass {option('machines', [machines])}")
    ids = make_column("annotator", list(machines))
    codes = match_ids(ids, annotators)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        name = str(to_text(ids)[int(unknown[0])])
        raise InputError(f"the machine {shown(name)} is no annotator: {_similar(name, annotators)}")
    is_machine = np.zeros(len(annotators), dtype=np.bool_)
    is_machine[codes] = True
    if is_machine.all():
        raise InputError(
            "all annotators are machines: there are no people to compare them with; leave out "
            f"{option('machines')}, or add people's labels"
        )
    return is_machine


def _similar(name: str, annotators: pa.Array) -> str:
    """Return which annotators have a similar id, in words."""
    ids = to_text(annotators).to_pylist()
    lower = {each.lower(): each for each in ids}
    near = difflib.get_close_matches(name.lower(), lower, n=_N_SIMILAR, cutoff=0.5)
    within = [each for each in lower if name.lower() in each][:_N_SIMILAR]
    found = [lower[each] for each in dict.fromkeys([*near, *within])][:_N_SIMILAR]
    if found:
        return f"similar ids are {listed(found)}"
    return f"annotators are {listed(ids)}"


def check(
    options: Mapping[str, Any], estimator: Estimator | None, engine: Engine, read: ReadOptions
) -> None:
    """Refuse what cannot be fitted with machines, before labels are read."""
    given = {"memory": read.memory, **options}
    others = [(name, given.get(name)) for name in ("memory", "classifier", "warm_start")]
    check_machines(options, estimator, RobustGPM, engine, others)


def analyse(
    options: Mapping[str, Any],
    estimator: RobustGPM,
    labels: Labels,
    read: ReadOptions,
    progress: ProgressCallback | None,
) -> Fit:
    """Return the fit of people's and machines' labels, with results on machines.

    The people's labels are fitted first. By their consensus machines are measured: those that err
    together count less in the fit of all labels, which starts from the people's.
    """
    margin = options.get("machine_margin", MACHINE_MARGIN)
    is_machine = find_machines(labels.annotators, options["machines"])
    by_people = labels.subset(~is_machine[labels.annotator])
    start_stage(progress, f"fitting {estimator.name} to people's labels")
    people = estimator.without_pooling().fit(by_people, progress=progress).result_
    start_stage(progress, "comparing machines with people")
    labels = labels.with_first(people.data.items, people.data.annotators)
    measures = measure_machines(labels, people, get_engine(estimator.engine), margin)
    weight = np.append(np.ones(people.data.n_annotators), measures.weight)
    start_stage(progress, f"fitting {estimator.name} to all labels")
    fit = estimator.fit_beside(people, replace(labels, annotator_weight=weight), progress=progress)
    results = make_results(
        measures,
        labels.annotators,
        labels.scale.names,
        margin=margin,
        further_lines=[_TIMES_NOT_USED.format(option("machines"))]
        if labels.covariates.has_times
        else [],
    )
    return replace(fit, further={**fit.further, "machines": results})


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
    is_machine = find_machines(data.annotators, machines)
    start_stage(progress, f"fitting {estimator.name} to people's comparisons")
    people = estimator.fit(data.of_annotators(~is_machine), progress=progress).result_
    start_stage(progress, "comparing machines with people")
    labels = outcome_labels(data)
    of_people = RobustGPM(truth="class").fit(labels.subset(~is_machine[labels.annotator])).result_
    labels = labels.with_first(of_people.data.items, of_people.data.annotators)
    measures = measure_machines(labels, of_people, get_engine("memory"), margin)
    weight = np.ones(data.n_annotators)
    ids = labels.annotators.take(pa.array(measures.codes))
    place = match_ids(ids, data.annotators)
    weight[place] = measures.weight
    everybody = np.arange(data.n_annotators)
    biases = [measure_bias(data.of_annotators(everybody == s), people.scores.mean) for s in place]
    columns, lines = _describe_biases(to_text(ids).to_pylist(), biases, data, people)
    start_stage(progress, f"fitting {estimator.name} to all comparisons")
    weighted = replace(data, annotator_weight=weight)
    fit = estimator.fit(weighted, progress=progress).result_
    results = make_results(
        measures,
        labels.annotators,
        labels.scale.names,
        margin=margin,
        further_columns=columns,
        further_lines=lines,
    )
    return replace(fit, further={**fit.further, "machines": results})


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


def _describe_biases(
    names: Sequence[str], biases: Sequence[PairBias], data: Comparisons, people: RankFit
) -> tuple[dict[str, pa.Array], list[str]]:
    """Return what sways each machine: columns of the machines' table, and lines of the summary."""
    effects = []
    if data.sides_known and people.side_bias is not None:
        sides = [each.side or UNKNOWN_ESTIMATE for each in biases]
        effects.append(("side_bias", "side bias", sides, people.side_bias))
    for name in data.covariates:
        own = [each.covariates[name] for each in biases]
        effects.append((f"{name}_effect", f"effect of {name}", own, people.coefficients[name]))
    columns: dict[str, pa.Array] = {}
    for column, _, own, of_people in effects:
        columns |= estimate_columns(column, own)
        columns[f"people_{column}"] = numbers(np.full(len(biases), of_people[0]))
    columns["n_both_orders"] = pa.array([each.n_both_orders for each in biases], pa.int64())
    columns["consistency"] = numbers([each.consistency for each in biases])
    lines = []
    for at, (machine, bias) in enumerate(zip(names, biases, strict=True)):
        for column, words, own, of_people in effects:
            sign = " (above 0 is left)" if column == "side_bias" else ""
            lines.append(
                f"machine {machine}: {words} {_interval(own[at])}{sign}; people "
                f"{_interval(Estimate(*of_people))}"
            )
        if bias.n_both_orders:
            lines.append(
                f"machine {machine}: same answer in both orders on {bias.consistency:.0%} of "
                f"{bias.n_both_orders:,} pairs"
            )
    return columns, lines


def _interval(effect: Estimate) -> str:
    return f"{effect.value:+.2f} ({effect.low:+.2f} to {effect.high:+.2f})"


class PairBias(NamedTuple):
    """What sways a machine."""

    # the side bias: the log-odds of left over right for items of equal score; None where sides are
    # not known
    side: Estimate | None
    # the coefficient of each covariate, in the covariate's own unit
    covariates: dict[str, Estimate]
    # the number of pairs that the machine compared in both orders, and the share of these on which
    # it gave the same answer
    n_both_orders: int
    consistency: float


def measure_bias(votes: Comparisons, scores: Floats) -> PairBias:
    r"""Return what sways the annotator of these comparisons, given the people's scores.

    Davidson's model with the annotator's own sharpness, side bias, coefficients and tie rate,

    .. math:: D(\text{left}, \text{right}, \text{tie}) \propto (e^{d/2}, e^{-d/2}, \nu), \qquad
              d = \beta (\theta_l - \theta_r) + \gamma + x \cdot c,

    is a multinomial logistic regression on :math:`(\theta_l - \theta_r, 1, x)`. Intervals come from its
    information and a weak normal prior.
    """
    columns = [scores[votes.left] - scores[votes.right], np.ones(votes.n_comparisons)]
    columns += [np.asarray(values, dtype=np.float64) for values in votes.covariates.values()]
    x = np.stack(columns, axis=1)
    scale = np.sqrt((x**2).mean(axis=0))
    scale[scale == 0.0] = 1.0
    precision = np.full(x.shape[1], _PRECISION)
    precision[0] = _SHARPNESS_PRECISION
    value, deviation = _regression(x / scale, votes.outcome, precision)
    value, deviation = value / scale, deviation / scale
    effects = [
        Estimate(float(v), float(v - Z_95 * sd), float(v + Z_95 * sd))
        for v, sd in zip(value, deviation, strict=True)
    ]
    n_both_orders, consistency = _consistency(votes)
    return PairBias(
        effects[1] if votes.sides_known else None,
        dict(zip(votes.covariates, effects[2:], strict=True)),
        n_both_orders,
        consistency,
    )


def _regression(x: Floats, outcome: NDArray[np.int8], precision: Floats) -> tuple[Floats, Floats]:
    """Return coefficients and their standard deviations, by Newton's method; the log-posterior is concave."""
    n_features = x.shape[1]
    has_ties = bool((outcome == TIE).any())
    # The features of left, right and tie, in which the logarithms of the odds are linear.
    features = np.zeros((len(x), 3, n_features + 1))
    features[:, LEFT, :-1], features[:, RIGHT, :-1] = x / 2.0, -x / 2.0
    features[:, TIE, -1] = 1.0
    at = np.zeros(n_features + 1)
    ridge = np.append(precision, _SHARPNESS_PRECISION)
    given = features[np.arange(len(x)), outcome].sum(axis=0)
    for _ in range(_MAX_STEPS):
        logs = features @ at
        if not has_ties:
            logs[:, TIE] = -np.inf
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        mean = np.einsum("ny,nyk->nk", share, features)
        square = np.einsum("ny,nyk,nyl->kl", share, features, features, optimize=True)
        information = square - mean.T @ mean + np.diag(ridge)
        step = np.linalg.solve(information, given - mean.sum(axis=0) - ridge * at)
        at = at + step
        if np.abs(step).max() < _TOL:
            break
    deviation = np.sqrt(np.diag(np.linalg.inv(information)))
    return at[:-1], deviation[:-1]


def different_pairs(votes: Comparisons) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different pairs, 3 x pairs: context and two items; and that of each comparison."""
    low, high, _ = in_order_of_codes(votes.left, votes.right, votes.outcome)
    context = np.zeros(len(low), np.int64) if votes.context is None else votes.context
    return np.unique(np.stack([context, low, high]), axis=1, return_inverse=True)


def _consistency(votes: Comparisons) -> tuple[int, float]:
    """Return how many pairs were compared in both orders, and the share with the same answer."""
    flipped = votes.left > votes.right
    _, pair = different_pairs(votes)
    answer = in_order_of_codes(votes.left, votes.right, votes.outcome)[2]
    first = [
        dict(zip(pair[order].tolist()[::-1], answer[order].tolist()[::-1], strict=True))
        for order in (~flipped, flipped)
    ]
    both = first[0].keys() & first[1].keys()
    if not both:
        return 0, float("nan")
    return len(both), float(np.mean([first[0][each] == first[1][each] for each in both]))
