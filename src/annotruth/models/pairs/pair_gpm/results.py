"""The fit of PairGPM: scores in a new context, named behaviors and the evidence for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import Column, Verdict, now
from annotruth.models.distribution import Z_95
from annotruth.models.em import History
from annotruth.models.fits.notes import CHANCE
from annotruth.models.pairs.beside import PLAIN_SCORES
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.graph import MAX_DENSE_ITEMS, center_in_parts, sums_at
from annotruth.models.pairs.pair_gpm.annotators import (
    ALWAYS_TIE,
    FAVOURS,
    INVERTED,
    N_SERIOUS,
    SERIOUS,
    SHARPNESS,
    SIDES,
)
from annotruth.models.pairs.pair_gpm.estimation import (
    PairEstimate,
    attenuation,
    cell_tie_sums,
    shrunk_cell_tie,
)
from annotruth.models.pairs.pair_gpm.verdicts import (
    DECIDED,
    VoteAgreement,
    measure_agreement,
    name_behaviors,
)
from annotruth.models.pairs.pair_gpm.votes import SLIP
from annotruth.models.pairs.posterior import ScorePosterior, with_interval
from annotruth.models.pairs.summary import NOT_SHARED, TOO_FEW_VOTES
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import LEFT, RIGHT

if TYPE_CHECKING:
    from annotruth.models.pairs.pair_gpm.model import PairGPM

_CHANCE_RELIABILITY = 0.3  # of annotators whose votes agree no better than chance
_FIXED = slice(2, 5)  # the classes that always choose one outcome


def make_fit(
    model: PairGPM, estimate: PairEstimate, history: History, verdict: Verdict | None
) -> RankFit:
    """Return the results of an estimate."""
    votes, data, is_chance = estimate.votes, estimate.votes.data, verdict == "chance"
    agreement = measure_agreement(estimate)
    if is_chance:
        _forget_seriousness(estimate)
    behavior = _chance_behaviors(estimate) if is_chance else name_behaviors(estimate, agreement)
    reliability = estimate.states.p_serious.copy()
    # From 0 to 1 where it is unknown.
    undecided = np.isin(behavior, [TOO_FEW_VOTES, NOT_SHARED])
    serious = np.array(behavior) == SERIOUS
    p_serious = np.empty(data.n_comparisons)
    p_serious[votes.order] = reliability[votes.annotator] if is_chance else _p_serious(estimate)
    evidence = _evidence(estimate, agreement, behavior, verdict)
    return RankFit(
        model=model.name,
        settings=model.settings(),
        data=data,
        history=history,
        scores=_scores(estimate, is_chance=is_chance),
        part=votes.part,
        reliability=reliability,
        low=np.where(serious, reliability, 0.0),
        high=np.where(serious | undecided, 1.0, reliability),
        behavior=behavior,
        annotator_columns={
            **_annotator_columns(estimate, agreement, behavior),
            "evidence": pa.array(evidence),
        },
        p_serious=p_serious,
        side_bias=_side_bias(estimate) if data.sides_known else None,
        coefficients=_coefficients(estimate),
        parameters=_parameters(estimate),
        verdict=verdict,
        fitted_at=now(),
    )


def _forget_seriousness(estimate: PairEstimate) -> None:
    """Set the posterior of annotators whose votes agree no better than chance.

    With equal scores, votes say who always votes for a side or a tie, but not who else is serious.
    """
    p_class = estimate.states.p_class
    fixed = p_class[:, _FIXED].copy()
    rest = 1.0 - fixed.sum(axis=1)
    p_class[:] = 0.0
    p_class[:, _FIXED] = fixed
    p_class[:, 0], p_class[:, 1] = rest * _CHANCE_RELIABILITY, rest * (1.0 - _CHANCE_RELIABILITY)


def _chance_behaviors(estimate: PairEstimate) -> list[str]:
    """Return who always votes for a side or a tie; of others nothing is known."""
    fixed = estimate.states.p_class[:, _FIXED]
    named = np.array([*SIDES, ALWAYS_TIE])[fixed.argmax(axis=1)]
    return [str(each) for each in np.where(fixed.sum(axis=1) >= DECIDED, named, TOO_FEW_VOTES)]


def _scores(estimate: PairEstimate, *, is_chance: bool) -> ScorePosterior:
    """Return the scores in a new context.

    Their variances include the uncertainty of the variance of the prior, and of the scale, which is that of
    a typical annotator. An item that was never compared has the variance of the prior.
    """
    votes, states, prior, scores = estimate.votes, estimate.states, estimate.prior, estimate.scores
    n_items, alone = votes.data.n_items, np.bincount(votes.part)[votes.part] == 1
    factor = attenuation(prior.spread)
    mean = np.zeros(n_items) if is_chance else factor * scores.theta
    if not is_chance:
        move = factor * scores.scale_move(prior.precision)
        covariance = factor**2 * scores.inflation() * scores.score_covariance()
        covariance = covariance + (move**2 if covariance.ndim == 1 else np.outer(move, move))
    elif n_items <= MAX_DENSE_ITEMS:
        covariance = center_in_parts(np.eye(n_items), votes.part)
        covariance = center_in_parts(covariance.T.copy(), votes.part)
    else:
        covariance = np.ones(n_items)
    n_serious = max(float(states.weight @ states.p_serious), 1.0)
    of_scale = mean**2 if covariance.ndim == 1 else np.outer(mean, mean)
    covariance += states.crowd.sharpness_sd**2 / n_serious * of_scale
    own = (alone,) if covariance.ndim == 1 else (alone, alone)
    covariance[own] = factor**2 / prior.precision
    return ScorePosterior(mean, covariance)


def _p_serious(estimate: PairEstimate) -> Floats:
    """Return the probability that each vote was serious: its annotator is, and it is no slip."""
    states, annotator = estimate.states, estimate.votes.annotator
    if estimate.is_large:
        return (1.0 - SLIP) * states.p_serious[annotator]
    slip = SLIP / (3.0 if estimate.outcomes.has_ties else 2.0)
    no_slip = 1.0 - slip / np.exp(estimate.predict_votes().log_p)
    serious: Floats = states.p_serious[annotator] * np.maximum(no_slip, 0.0)
    return serious


def _side_bias(estimate: PairEstimate) -> Floats:
    """Return the crowd's side bias with its 95% interval."""
    states, habits = estimate.states, estimate.states.crowd.habits
    variance = (states.p_level * states.habits.side_variance[:, :N_SERIOUS]).sum(axis=1)
    known = states.weight * states.p_serious / (habits.side_sd**2 + variance)
    return with_interval(habits.side, 1.0 / np.sqrt(max(float(known.sum()), 1e-12)))


def _coefficients(estimate: PairEstimate) -> dict[str, Floats]:
    """Return the coefficients of covariates with their 95% intervals, in log odds in a new context."""
    votes, factor = estimate.votes, attenuation(estimate.prior.spread)
    value, sd = factor * estimate.scores.coefficients, factor * estimate.scores.coefficient_sd()
    return {
        name: with_interval(value[x], sd[x]) / votes.covariate_scale[x]
        for x, name in enumerate(votes.data.covariates)
    }


def _annotator_columns(
    estimate: PairEstimate, agreement: VoteAgreement, behavior: list[str]
) -> dict[str, Column]:
    states, data = estimate.states, estimate.votes.data
    level = states.p_level
    side, tie, _, variance = (each[:, :N_SERIOUS] for each in states.habits)
    cannot = np.array(behavior) == NOT_SHARED
    found = (agreement.accuracy, agreement.low, agreement.high)
    columns: dict[str, Column] = {
        name: np.where(cannot, np.nan, values)
        for name, values in zip(("accuracy", "accuracy_low", "accuracy_high"), found, strict=True)
    }
    if data.has_ties:
        columns["tie_rate"] = np.exp((level * tie).sum(axis=1))
    if data.sides_known:
        bias = (level * side).sum(axis=1)
        spread = (side - bias[:, np.newaxis]) ** 2 + variance
        sd = np.sqrt((level * spread).sum(axis=1))
        columns["side_bias"] = bias
        columns["side_bias_low"], columns["side_bias_high"] = bias - Z_95 * sd, bias + Z_95 * sd
    columns["sharpness"] = level @ SHARPNESS
    return columns


def _evidence(
    estimate: PairEstimate, at: VoteAgreement, behavior: list[str], verdict: Verdict | None
) -> list[str]:
    """Return the evidence for each annotator's behavior, in numbers."""
    votes, data, lines = estimate.votes, estimate.votes.data, []
    has_contexts = votes.has_contexts
    where = " (consensus of the others in the same context)" if has_contexts else ""
    for s, (name, n) in enumerate(zip(behavior, data.comparisons_per_annotator, strict=True)):
        if name in SIDES:
            right, expected_right = n - at.left[s] - at.ties[s], n - at.expected_left[s]
            side, count, expect = (
                ("left", at.left[s], at.expected_left[s])
                if name == SIDES[0]
                else ("right", right, expected_right - at.expected_ties[s])
            )
            line = f"voted {side} {count:.0f} of {n} times; expected {expect:.0f}"
        elif name == ALWAYS_TIE:
            line = f"{at.ties[s]:.0f} ties in {n} votes; expected {at.expected_ties[s]:.0f}"
        elif name == FAVOURS:
            item = int(estimate.states.favoured[s])
            own = slice(*votes.outcomes.ptr[s : s + 2])
            on_left, on_right = votes.left[own] == item, votes.right[own] == item
            outcome = votes.outcomes.outcome[own]
            won = (on_left & (outcome == LEFT)) | (on_right & (outcome == RIGHT))
            shown = (on_left | on_right).sum()
            line = f"voted for {data.items[item].as_py()} {won.sum()} of {shown} times"
        elif name == INVERTED:
            against = n - at.agreed[s] - at.ties[s]
            expect = n - at.expected[s] - at.expected_ties[s]
            line = f"voted against the consensus {against:.0f} of {n} times; expected {expect:.0f}"
        elif verdict == "chance":
            line = f"comparisons {CHANCE}"
        else:
            line = (
                f"voted with the consensus {at.agreed[s]:.0f} of {n} times; expected "
                f"{at.expected[s]:.0f}{where}"
            )
        lines.append(line)
    return lines


def _parameters(estimate: PairEstimate) -> dict[str, NDArray[Any]]:
    """Return what predictions need."""
    votes, states, crowd = estimate.votes, estimate.states, estimate.states.crowd
    outcomes = votes.outcomes
    key = votes.annotator * 3 + outcomes.outcome
    low, high = votes.pairs
    parameters: dict[str, NDArray[Any]] = {
        "theta": estimate.scores.theta,
        "spread": np.array([estimate.prior.spread]),
        "precision": np.array([estimate.prior.precision]),
        "pair": low * votes.data.n_items + high,
        "pair_tie": estimate.pair_tie,
        "crowd": np.array([*crowd.habits, crowd.sharpness_sd]),
        "share": crowd.share,
        "level": crowd.level,
        "p_class": states.p_class,
        "p_level": states.p_level,
        "side": states.habits.side,
        "tie": states.habits.tie,
        "counts": np.bincount(key, outcomes.weight, 3 * votes.n_annotators).reshape(-1, 3),
        "favoured": states.favoured,
    }
    if (plain := estimate.plain) is None:
        plain = BradleyTerry().fit(votes.data).result_.scores.mean
    parameters[PLAIN_SCORES] = plain
    if votes.has_contexts:
        parameters["context_free"] = np.array([float(estimate.prior.spread == 0.0)])
    if estimate.cell_tie_variance > 0.0:
        parameters |= _cell_ties(estimate)
    if votes.is_ranked:
        parameters["ranked"] = np.ones(1)
    if votes.data.covariates:
        parameters["coefficient"] = estimate.scores.coefficients
        parameters["covariate_scale"] = votes.covariate_scale
    if votes.has_contexts and votes.data.context is not None and estimate.prior.spread > 0.0:
        layout = votes.layout
        effect, covariance = estimate.scores.context_effects()
        first = layout.votes[layout.vote_ptr[:-1]]
        parameters |= {
            "context_code": votes.data.context[votes.order[first]].astype(np.int64),
            "context_ptr": layout.item_ptr,
            "context_item": layout.items,
            "context_effect": effect,
            "context_covariance": covariance,
        }
    return parameters


def _cell_ties(estimate: PairEstimate) -> dict[str, NDArray[Any]]:
    """Return what each context adds to the log tie rate of each pair, by all votes."""
    votes, data = estimate.votes, estimate.votes.data
    assert votes.cell is not None
    assert data.context is not None
    first = np.unique(votes.cell, return_index=True)[1]
    slope, known = (sums_at(votes.cell, each, len(first)) for each in cell_tie_sums(estimate))
    low, high = votes.pairs
    pair = (low * data.n_items + high)[votes.pair[first]]
    code = data.context[votes.order[first]] * data.n_items**2 + pair
    order = np.argsort(code, kind="stable")
    value = shrunk_cell_tie(slope, known, estimate.cell_tie_variance)
    return {
        "cell": code[order],
        "cell_tie": value[order],
        # As votes had it while habits were fitted: by those of others in their contexts.
        "cell_tie_sd": np.array([np.sqrt(np.mean(np.square(estimate.cell_tie)))]),
    }
