"""What RobustGPM says of annotators: their interval, the evidence, and a word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, rel_entr

from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SPAMMER_BELOW, TOO_FEW, Column
from annotruth.models.robust_gpm.steps import SHIFTS, Opinions, Steps
from annotruth.models.robust_gpm.strategies import KINDS, Strategies, normalised

TEMPER = 0.85
"""Of what the labels say of a reliability, how much its interval and the evidence count.

An annotator's and an item's posterior take each other's as independent, which makes them too
narrow. Chosen on simulated crowds.
"""

_SURE = 0.9  # how likely a verdict must be
_WIDE = 0.5  # unless the interval is narrower than this, and the verdict lies in between
_TELLING = 1.0  # evidence of ten to one
_LEARNED = 0.5  # nats that labels must have told of a reliability
_ALWAYS_FROM = 0.98  # the always serious slip up to this often
_LEAN = 0.25  # and by how much more than the crowd's


def interval(weights: Floats, ways: Strategies) -> tuple[Floats, Floats]:
    """Find the middle 95% of each annotator's reliabilities, even within a level."""
    levels, place = np.unique(ways.eps, return_inverse=True)
    by_level = weights @ np.eye(len(levels))[place]
    reached = np.cumsum(by_level, axis=1)
    tenths = np.arange(len(levels)) / (len(levels) - 1)
    starts = np.append(tenths[:-1], _ALWAYS_FROM)
    stops = np.append(tenths[1:], 1.0)
    rows = np.arange(len(weights))
    ends = []
    for share in (0.025, 0.975):  # of the weight, reached from below
        level = np.minimum((reached < share).sum(axis=1), len(levels) - 1)
        within = 1.0 - (reached[rows, level] - share) / np.maximum(by_level[rows, level], 1e-300)
        step = np.clip(within, 0.0, 1.0) * (stops - starts)[level]
        ends.append(starts[level] + step)
    low, high = ends
    return low, np.where(high > _ALWAYS_FROM, 1.0, high)


def annotator_columns(
    steps: Steps, prior: Floats, always: float, log_weights: Floats, ways: Strategies
) -> dict[str, Column]:
    """Give the evidence in numbers.

    ``p_spammer``, the probability of being serious less than half of the time; ``evidence``, the
    log10 of how much the labels, and the annotator prior, have raised its odds (2: a hundred times;
    negative: they speak for serious); where opinions differ ``bias``, how far serious labels lie
    above the crowd's.
    """
    spammer = ways.eps < SPAMMER_BELOW
    before, after = (
        logsumexp(logs[:, spammer], axis=1) - logsumexp(logs[:, ~spammer], axis=1)
        for logs in (ways.log_prior(always)[np.newaxis], log_weights)
    )
    columns: dict[str, Column] = {
        "p_spammer": expit(after),
        "evidence": (after - before) / np.log(10.0),
    }
    if isinstance(steps, Opinions):
        weights = normalised(log_weights)
        moves = steps.shifts_of_score(prior)
        crowd = steps.shift_shares(weights, ways) @ moves
        columns["bias"] = weights @ moves[ways.shift] - crowd
    return columns


def verdicts(
    steps: Steps, weights: Floats, ways: Strategies, unclear: NDArray[np.bool_]
) -> list[str]:
    """Name what each annotator mostly does; a kind is named when it is likelier than not."""
    reliability = weights @ ways.eps
    by_kind = weights @ np.eye(len(KINDS))[ways.kind]
    labels = steps.labels
    word = np.array([*KINDS, "irregular"], dtype=object)[
        np.where(by_kind.max(axis=1) > 0.5, by_kind.argmax(axis=1), len(KINDS))
    ]
    own = np.array([f"repeated {name}" for name in labels.scale.names], dtype=object)
    word = np.where(word == "repeated", own[steps.repeated], word)
    word = np.where(reliability >= SPAMMER_BELOW, _lean(steps, weights, ways), word)
    names: list[str] = np.where(unclear, TOO_FEW, word).tolist()
    return names


def too_few(
    weights: Floats, log_prior: Floats, ways: Strategies, width: Floats, told: Mapping[str, Column]
) -> NDArray[np.bool_]:
    """Mark those of whom the labels do not tell enough, given the columns ``told``.

    Either the verdict is open and the interval wide; or the labels speak neither for nor against
    a spammer and have hardly changed what was thought of the reliability before them.
    """
    p_spammer, evidence = (np.asarray(told[name]) for name in ("p_spammer", "evidence"))
    is_open = (np.maximum(p_spammer, 1.0 - p_spammer) < _SURE) & (width > _WIDE)
    levels, place = np.unique(ways.eps, return_inverse=True)
    by_level = np.eye(len(levels))[place]
    after, before = weights @ by_level, np.exp(log_prior) @ by_level
    learned = rel_entr(after, before).sum(axis=1)
    unclear: NDArray[np.bool_] = is_open | ((np.abs(evidence) < _TELLING) & (learned < _LEARNED))
    return unclear


def _lean(steps: Steps, weights: Floats, ways: Strategies) -> NDArray[Any]:
    """Call the serious generous or harsh where their labels lie above or below the crowd's."""
    if not isinstance(steps, Opinions):
        return np.full(len(weights), "serious", dtype=object)
    beyond = SHIFTS[ways.shift] - steps.shift_shares(weights, ways) @ SHIFTS
    generous = weights[:, beyond > _LEAN].sum(axis=1) > _SURE
    harsh = weights[:, beyond < -_LEAN].sum(axis=1) > _SURE
    return np.where(generous, "generous", np.where(harsh, "harsh", "serious"))
