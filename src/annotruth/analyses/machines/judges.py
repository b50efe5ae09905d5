"""Who the machines are, their confusion given the people's consensus, and estimates with intervals."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.engines import Engine
from annotruth.errors import InputError, listed, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.latent_classes import normalise_log_weights
from annotruth.models.options import OptionsBase
from annotruth.models.robust_gpm.readouts import LatentStates
from annotruth.models.robust_gpm.strategies import MIN_PROBABILITY
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.frames import make_column

AnyCodes: TypeAlias = NDArray[np.integer[Any]]

MACHINE_MARGIN = 0.1
"""By how much a machine may be worse than a person: what the test's authors give for crowd workers."""

_PRIOR_LABELS = 4.0
_MAX_STEPS, _TOL = 300, 1e-4
_N_SIMILAR = 5


class Judge(NamedTuple):
    """The labels of one annotator on items that the people labelled, one per item."""

    item: Codes
    label: Codes


def judge_of(item: AnyCodes, label: AnyCodes) -> Judge:
    """Return the labels sorted by item; of several labels of an item, the first."""
    items, first = np.unique(item, return_index=True)
    return Judge(items.astype(np.int64), label[first].astype(np.int64))


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
            "machine_margin (`--machine-margin`) needs machines (`--machine NAME`): name them, or "
            "leave it out"
        )
    if not isinstance(estimator, needed):
        name = "auto" if estimator is None else estimator.name
        raise InputError(
            f"machines (`--machine`) need the model {needed.name}, not {name}: leave out the model "
            "(`--model`)"
        )
    if margin is not None and not 0.0 <= margin < 1.0:
        raise InputError(
            f"machine_margin (`--machine-margin`) must be from 0 to below 1, not {margin!r}: 0.2 for "
            "experts, 0.15 for trained annotators, 0.1 for crowd workers"
        )
    if engine.capabilities.distributed:
        raise InputError(
            f"the engine {engine.name} takes no machines (`--machine`): choose engine='memory' "
            "(`--engine memory`), or leave them out"
        )
    for option, value in others:
        if value is not None:
            raise InputError(
                f"machines (`--machine`) do not go with {option}: leave out one of them"
            )


def find_machines(annotators: pa.Array, machines: Sequence[Any]) -> Codes:
    """Return the codes of machines; raise if one is no annotator, or if nobody else is."""
    if isinstance(machines, str) or not isinstance(machines, Iterable):
        raise InputError(f"machines is a list of ids: pass machines=[{shown(machines)}]")
    ids = make_column("annotator", list(machines))
    codes = match_ids(ids, annotators)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        name = str(to_text(ids)[int(unknown[0])])
        raise InputError(f"the machine {shown(name)} is no annotator: {_similar(name, annotators)}")
    codes = np.unique(codes)
    if len(codes) == len(annotators):
        raise InputError(
            "all annotators are machines: there are no people to compare them with; leave out "
            "machines (`--machine`), or add people's labels"
        )
    return codes


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


def confusion_of(judge: Judge, states: LatentStates) -> Floats:
    r"""Return P(label | state) of a judge, categories x states.

    With :math:`w_{e,z}` the posterior of the item's state given the people's labels, EM maximises

    .. math:: \sum_e \log \sum_z w_{e,z} \, v_z(r_e), \qquad
              v_z \sim \mathrm{Dirichlet}\Bigl(c_z \sum_g q_g \, a_g(\cdot \mid z)\Bigr),

    in which :math:`a_g` are the response strategies of RobustGPM and q, the share of the judge's labels
    in each, is estimated, too. There are four pseudo-labels, :math:`c_z` of them in state z. That
    people may be wrong is thus not counted as an error of the judge.
    """
    posterior, n = states.posterior[judge.item], states.right.shape[1]
    is_label = np.eye(n)[judge.label].T
    strategies = _strategies_of(judge, posterior @ states.right, states)
    prior = normalise_log_weights(states.log_prior[np.newaxis])[0]
    shares, weights, old = prior, posterior, np.zeros((n, posterior.shape[1]))
    prior_labels = _PRIOR_LABELS * states.posterior.mean(axis=0)
    for _ in range(_MAX_STEPS):
        counts = is_label @ weights
        # One EM step of the shares of strategies, with one pseudo-label of the prior.
        ratio = counts / np.maximum(np.tensordot(shares, strategies, axes=1), MIN_PROBABILITY)
        shares = shares * np.tensordot(strategies, ratio, axes=2) + prior
        shares /= shares.sum()
        mass = counts + prior_labels * np.tensordot(shares, strategies, axes=1)
        confusion: Floats = np.maximum(mass / mass.sum(axis=0), MIN_PROBABILITY)
        if np.abs(confusion - old).max() < _TOL:
            break
        old = confusion
        weights = posterior_with(posterior, confusion[judge.label])
    return confusion


def _strategies_of(judge: Judge, expected: Floats, states: LatentStates) -> Floats:
    """Return P(label | state) in each strategy, strategies x categories x states.

    The label that the judge would repeat is the one that it gives most above the items' consensus.
    """
    given = np.bincount(judge.label, minlength=expected.shape[1])
    repeated = int((given - expected.sum(axis=0)).argmax())
    table = states.strategies.probability
    strategies = table.other.copy()
    strategies[:, repeated] = table.repeated[:, repeated]
    return strategies


def posterior_with(posterior: Floats, likelihood: Floats) -> Floats:
    """Return posteriors of items, items x states, after labels with these likelihoods."""
    joint = posterior * likelihood
    normalised: Floats = joint / np.maximum(joint.sum(axis=1, keepdims=True), MIN_PROBABILITY)
    return normalised


class Estimate(NamedTuple):
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float


UNKNOWN_ESTIMATE = Estimate(*(float("nan"),) * 3)
"""The estimate of what cannot be measured."""


def numbers(values: Sequence[float] | Floats) -> pa.Array:
    """Return a column of numbers, null where there is none."""
    return pa.array(np.asarray(values, dtype=np.float64), from_pandas=True)


def estimate_columns(name: str, estimates: Sequence[Estimate]) -> dict[str, pa.Array]:
    """Return three columns: the values, and the lower and upper ends of their intervals."""
    columns = np.array(estimates, dtype=np.float64).reshape(-1, 3).T
    ends = (name, f"{name}_low", f"{name}_high")
    return {end: numbers(column) for end, column in zip(ends, columns, strict=True)}
