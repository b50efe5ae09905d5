"""Predictions of PairGPM: the probabilities of outcomes, averaged over the annotator's states."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np

from annotruth.engines import Engine, Input, Pass, get_engine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.kernels.pairs.levels import MAX_LOG_ODDS, StateLevels
from annotruth.labels.layout import check_index
from annotruth.models.pairs.pair_gpm.parameters import (
    AnnotatorStates,
    PairGPMParameters,
    make_model,
    saved_parameters,
    saved_states,
    standardised_covariates,
    states_for,
)
from annotruth.models.pairs.result import RankFit

_INPUTS = ("model", "new_ptr", "new_left", "new_right", "new_covariates", "probability")
_CHUNK = 4096  # comparisons by unknown annotators whose states are averaged at once


def predict_outcomes(
    fit: RankFit,
    engine: str | Engine,
    left: Codes,
    right: Codes,
    annotator: Codes,
    covariates: Mapping[str, Any],
) -> Floats:
    """Return the probabilities of left, right and tie, one row per comparison."""
    data = fit.data
    parameters, annotators = saved_parameters(fit), saved_states(fit)
    model = make_model(states_for(data), parameters)
    left, right = (_codes(codes, data.n_items, 0) for codes in (left, right))
    annotator = _codes(annotator, data.n_annotators, -1)
    x = _new_covariates(fit, covariates, len(left))
    order = np.argsort(annotator, kind="stable")
    n_unknown = int((annotator < 0).sum())
    unknown, known = order[:n_unknown], order[n_unknown:]
    probability = np.zeros((len(left), 3))
    for part in slices(n_unknown, _CHUNK):
        rows = unknown[part]
        probability[rows] = _of_anybody(parameters, model.levels, left[rows], right[rows], x[rows])
    if len(known) == 0:
        return probability
    found = np.zeros((len(known), 3))
    n_new = np.bincount(annotator[known], minlength=data.n_annotators)
    with closing(get_engine(engine).open(data)) as session:
        for name, values in annotators._asdict().items():
            session.put(name, values, per="annotators")
        session.put("covariates", standardised_covariates(data)[0], per="comparisons")
        one = Pass(
            "pairs.gpm_results.predict",
            state=(*AnnotatorStates._fields, "covariates"),
            inputs=tuple(map(Input, _INPUTS)),
        )
        session.run_pass(
            one,
            model=model,
            new_ptr=np.append(0, np.cumsum(n_new)).astype(np.int64),
            new_left=left[known],
            new_right=right[known],
            new_covariates=x[known],
            probability=found,
        )
    probability[known] = found
    return probability


def _codes(codes: Codes, n: int, least: int) -> Codes:
    """Return codes as the kernel takes them; raise unless they are in range."""
    codes = np.asarray(codes, dtype=np.int64)
    try:
        check_index("left, right or annotator", codes, n, least)
    except ValueError as error:
        raise InputError(f"new comparisons: {error}") from None
    return codes


def _new_covariates(fit: RankFit, covariates: Mapping[str, Any], n: int) -> Floats:
    """Return the covariates of new comparisons, scaled as those of the fit."""
    names = list(fit.data.covariates)
    missing = [name for name in names if name not in covariates]
    if missing:
        raise InputError(f"these comparisons lack the covariates of the fit: {', '.join(missing)}")
    if not names:
        return np.empty((n, 0))
    columns = [np.asarray(covariates[name], dtype=np.float64) for name in names]
    values = np.stack(columns, axis=1)
    if not np.isfinite(values).all():
        raise InputError(
            "a covariate of these comparisons is not a finite number: give one for each"
        )
    scaled: Floats = values / fit.parameter("covariate_scale", len(names))
    return scaled


def _of_anybody(
    parameters: PairGPMParameters, levels: StateLevels, left: Codes, right: Codes, x: Floats
) -> Floats:
    """Return the probabilities of votes of an annotator of whom nothing is known."""
    weight = np.exp(levels.log_beta)[:, np.newaxis] * parameters.nu
    offset = parameters.offsets[0] + x @ parameters.offsets[1:]
    serious = np.zeros((len(left), 3))
    for share, theta in zip(parameters.group, parameters.theta, strict=True):
        d = np.outer(theta[left] - theta[right], levels.beta) + offset[:, np.newaxis]
        half = np.exp(0.5 * np.clip(d, -MAX_LOG_ODDS, MAX_LOG_ODDS))[:, :, np.newaxis]
        outcomes = np.broadcast_arrays(half, 1.0 / half, levels.nu)
        total = half + 1.0 / half + levels.nu
        for y, odds in enumerate(outcomes):
            serious[:, y] += share * (weight * (odds / total)).sum(axis=(1, 2))
    eps, flip = parameters.behavior @ levels.eps, parameters.behavior @ levels.flip
    chance = (levels.chance @ parameters.behavior)[::3]  # the favoured item is not shown
    mirrored = serious[:, [1, 0, 2]]
    probability: Floats = eps * serious + flip * mirrored + chance
    return probability
