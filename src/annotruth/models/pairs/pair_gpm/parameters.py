"""The parameters of PairGPM, as passes read them and as saved fits have them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.levels import PairModel, StateLevels
from annotruth.labels.layout import check_index
from annotruth.models.pairs.pair_gpm.states import States, make_states
from annotruth.models.pairs.result import RankFit


class PairGPMParameters(NamedTuple):
    """Scores, offsets, and the probabilities of groups, tie rates and behaviors.

    Examples
    --------
    >>> PairGPMParameters._fields
    ('theta', 'offsets', 'group', 'nu', 'behavior')
    """

    theta: Floats  # groups x items
    offsets: Floats  # the side bias, then the coefficients of standardised covariates
    group: Floats
    nu: Floats
    behavior: Floats


class AnnotatorStates(NamedTuple):
    """What predictions need of each annotator: one row or number per annotator.

    Examples
    --------
    >>> AnnotatorStates._fields
    ('active', 'favoured', 'own_side_bias')
    """

    active: Codes
    favoured: NDArray[np.int32]
    own_side_bias: Floats  # in place of the crowd's


def states_for(data: Comparisons) -> States:
    """Return the levels of the latent states for these comparisons."""
    return make_states(n_items=data.n_items, sided=data.sides_known, tie_share=data.tie_share)


def n_levels(n_groups: int, states: States) -> tuple[int, int, int, int]:
    """Return the numbers of groups and of levels of sharpness, tie rate and behavior."""
    return n_groups, len(states.beta), len(states.nu), len(states.eps)


def make_model(states: States, parameters: PairGPMParameters) -> PairModel:
    """Return the input of all passes: scores, offsets, and levels with their probabilities."""
    with np.errstate(divide="ignore"):
        levels = StateLevels(
            beta=states.beta,
            nu=states.nu,
            eps=states.eps,
            flip=states.flip,
            chance=states.chance,
            log_group=np.log(parameters.group),
            log_beta=states.log_beta,
            log_nu=np.log(parameters.nu),
            log_behavior=np.log(parameters.behavior) + states.log_choice,
        )
    return PairModel(parameters.theta, parameters.offsets, levels)


def standardised_covariates(data: Comparisons) -> tuple[Floats, Floats]:
    """Return the covariates divided by their root mean squares, one column each, and these.

    They are not centred: a difference of 0 has no influence.
    """
    columns = [np.asarray(values, dtype=np.float64) for values in data.covariates.values()]
    if not columns:
        return np.empty((data.n_comparisons, 0)), np.empty(0)
    raw = np.stack(columns, axis=1)
    if data.annotator_weight is None:
        scale = np.sqrt((raw**2).mean(axis=0))
    else:
        weight = np.repeat(data.annotator_weight, data.comparisons_per_annotator)
        scale = np.sqrt(np.average(raw**2, axis=0, weights=weight))
    scale[scale == 0.0] = 1.0
    return raw / scale, scale


def saved_parameters(fit: RankFit) -> PairGPMParameters:
    """Return the parameters of a fit, which may have been loaded; raise unless they fit its data."""
    data = fit.data
    n_groups, _, n_nu, n_behaviors = n_levels(fit.n_groups, states_for(data))
    values = PairGPMParameters(
        theta=fit.parameter("theta", n_groups, data.n_items),
        offsets=fit.parameter("offsets", 1 + len(data.covariates)),
        group=fit.parameter("group", n_groups),
        nu=fit.parameter("nu", n_nu),
        behavior=fit.parameter("behavior", n_behaviors),
    )
    for name, shares in zip(("group", "nu", "behavior"), values[2:], strict=True):
        if not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise _changed(fit, f"{name} has a value outside 0..1")
    return PairGPMParameters(*(each.astype(np.float64) for each in values))


def saved_states(fit: RankFit) -> AnnotatorStates:
    """Return the states of a fit's annotators; raise unless kernels can index with them."""
    n = fit.data.n_annotators
    active = fit.parameter("active", n, 4)
    favoured = fit.parameter("favoured", n)
    try:
        for mask, size in zip(active.T, n_levels(fit.n_groups, states_for(fit.data)), strict=True):
            check_index("active", mask, 1 << size, least=1)
        check_index("favoured", favoured, fit.data.n_items, least=-1)
    except ValueError as error:
        raise _changed(fit, str(error)) from None
    own_side_bias = fit.parameter("own_side_bias", n).astype(np.float64)
    return AnnotatorStates(active.astype(np.int64), favoured.astype(np.int32), own_side_bias)


def _changed(fit: RankFit, why: str) -> InputError:
    return InputError(
        f"this fit of {fit.model} cannot be used ({why}): it was saved by another version of "
        "annotruth, or changed; fit again"
    )
