"""What RobustGPM's rounds have found, read out."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.arrays import Codes, Floats
from annotruth.engines import Sweep
from annotruth.labels import Labels
from annotruth.models.distribution import Distribution
from annotruth.models.em import Trace
from annotruth.models.intervals import Z_95
from annotruth.models.result import SPAMMER_BELOW, Fit
from annotruth.models.robust_steps import MEANS, Parameters, Steps
from annotruth.models.ways import KINDS, Ways, mixed_over, normalised

# Both calibrated in simulated crowds: an annotator's and an item's posterior take each other's as
# independent, which makes them too narrow.
_WIDER = 1.12  # by how much more an item's score deviates
_TEMPER = 0.85  # of what the labels say of a reliability


def read(
    steps: Steps,
    at: Parameters,
    prior: Floats,
    rates: Floats | None,
    *,
    model: str,
    settings: dict[str, Any],
    trace: Trace,
) -> Fit:
    """Judge annotators by the others' labels, then items by the annotators so judged.

    ``rates`` are the annotators' own rows, None where their ways say all.
    """
    labels, session = steps.labels, steps.session
    people, categories, kinds = steps.counts_shape
    ways = steps.ways(at.serious)
    own = steps.rates(at, ways) if rates is None else rates
    sweep = Sweep("robust_gpm.support", (), ((people, len(ways.eps)),))
    by_kind = (np.ascontiguousarray(t.transpose(1, 2, 0)) for t in (ways.plain, ways.repeating))
    (support,) = session.sweep(sweep, prior, steps.gate, own, *by_kind, steps.repeated)
    weights = normalised(support + ways.log_prior(at.always))
    loose = normalised(_TEMPER * support + ways.log_prior(at.always))
    reliability = weights @ ways.eps
    low, high = _interval(loose, ways)

    after = at._replace(weights=weights)
    if rates is None:
        own = mixed_over(weights, ways.plain, ways.repeating, steps.repeated)
    serious = mixed_over(weights, ways.serious, ways.serious_repeating, steps.repeated)
    session.allocate("theta", per="items", shape=(categories,))
    session.allocate("score", per="items", shape=(2,))
    session.allocate("p_serious", per="labels")
    opinions = steps.opinions(after, ways)
    values = labels.scale.values if labels.scale.is_ordinal else np.zeros(categories)
    sweep = Sweep("robust_gpm.read_out", ("theta", "score", "p_serious"), ((1,),))
    session.sweep(sweep, prior, steps.gate, own, opinions, opinions @ values, serious)
    theta = session.gather("theta")
    theta /= theta.sum(axis=1, keepdims=True)
    columns = {}
    if labels.scale.is_ordinal:
        columns = _score_interval(labels, session.gather("score"), kinds != categories)
    return Fit(
        model=model,
        settings=settings,
        data=labels,
        trace=trace,
        distribution=Distribution.of_dense(theta),
        reliability=reliability,
        low=np.minimum(low, reliability),
        high=np.maximum(high, reliability),
        behavior=_names(labels, weights, ways, reliability, steps.repeated),
        p_serious=np.minimum(session.gather("p_serious"), 1.0),
        item_columns=columns,
    )


def _interval(weights: Floats, ways: Ways) -> tuple[Floats, Floats]:
    """Find the middle 95% of each annotator's reliabilities, even within a level."""
    levels, place = np.unique(ways.eps, return_inverse=True)
    by_level = np.stack([np.bincount(place, row, len(levels)) for row in weights])
    reached = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(by_level, axis=1)], axis=1)
    edges = np.append(np.arange(len(levels)) / (len(levels) - 1), 1.0)
    low, high = (np.array([np.interp(at, row, edges) for row in reached]) for at in (0.025, 0.975))
    return low, high


def _score_interval(labels: Labels, score: Floats, shapes: bool) -> dict[str, Floats]:
    values, known = labels.scale.values, labels.known
    within = ((values[-1] - values[0]) / MEANS) ** 2 / 12.0 if shapes else 0.0
    reach = Z_95 * _WIDER * np.sqrt(score[:, 1] + within)
    ends = {"score_low": score[:, 0] - reach, "score_high": score[:, 0] + reach}
    return {
        name: np.where(known < 0, np.clip(end, values[0], values[-1]), values[known])
        for name, end in ends.items()
    }


def _names(
    labels: Labels, weights: Floats, ways: Ways, reliability: Floats, repeated: Codes
) -> list[str]:
    """Name what each annotator mostly does; a kind is named when it is likelier than not."""
    by_kind = np.stack([weights[:, ways.kind == k].sum(axis=1) for k in range(len(KINDS))], axis=1)
    names = []
    for e, n, row in zip(reliability, repeated, by_kind, strict=True):
        kind = KINDS[row.argmax()] if row.max() > 0.5 else "irregular"
        word = f"repeated {labels.scale.names[n]}" if kind == "repeated" else kind
        names.append("serious" if e >= SPAMMER_BELOW else word)
    return names
