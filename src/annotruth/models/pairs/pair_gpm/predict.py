"""Predictions of PairGPM: the probabilities of outcomes, averaged over the annotator's states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs import Quadrature, make_quadrature
from annotruth.kernels.reference.pairs.gpm_outcomes import outcome_probabilities
from annotruth.models.pairs.pair_gpm.annotators import (
    ALWAYS,
    CLASSES,
    FAVOURED,
    INVERTED_SD,
    INVERTED_SHARPNESS,
    LEVELS,
    N_SERIOUS,
)
from annotruth.models.pairs.pair_gpm.votes import SLIP
from annotruth.models.result import RankFit
from annotruth.observations.layout import check_index
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE

_TIE_NODES = 5  # of log tie rates of contexts that are not known
_RANDOM, _FIRST_ALWAYS, _INVERTED, _FAVOURS = 1, 2, 5, 6


class NewVotes(NamedTuple):
    """Comparisons to predict, as codes; a context or annotator that is not known is -1."""

    left: Codes
    right: Codes
    annotator: Codes
    context: Codes
    covariates: Floats


def predict_outcomes(
    fit: RankFit,
    left: Codes,
    right: Codes,
    annotator: Codes,
    covariates: Mapping[str, Any],
    context: Codes | None,
) -> Floats:
    """Return the probabilities of left, right and tie, one row per comparison."""
    data = fit.data
    check_parameters(fit)
    n_contexts = 0 if data.contexts is None else len(data.contexts)
    left, right = (_codes(codes, data.n_items, 0) for codes in (left, right))
    unknown = np.full(len(left), -1, dtype=np.int64)
    new = NewVotes(
        left,
        right,
        _codes(annotator, data.n_annotators, -1),
        unknown if context is None else _codes(context, n_contexts, -1),
        _new_covariates(fit, covariates, len(left)),
    )
    p_class, share = _classes(fit, new.annotator)
    found = _by_scores(fit, new, p_class)
    found += (p_class[:, _RANDOM] / 2.0)[:, np.newaxis] * share
    n_outcomes = 3 if data.has_ties else 2
    for outcome in range(n_outcomes):
        always = np.full(3, (1.0 - ALWAYS) / (n_outcomes - 1))
        always[n_outcomes:] = 0.0
        always[outcome] = ALWAYS
        found += np.outer(p_class[:, _FIRST_ALWAYS + outcome], always)
    found += p_class[:, _FAVOURS][:, np.newaxis] * _favoured(fit, new, share)
    probability: Floats = found / found.sum(axis=1, keepdims=True)
    return probability


def check_parameters(fit: RankFit) -> None:
    """Raise unless the parameters of a fit, which may have been loaded, fit its data."""
    data, found = fit.data, fit.parameters
    n, n_classes, n_covariates = data.n_annotators, len(CLASSES), len(data.covariates)
    n_pairs = found.get("pair", np.empty(0)).size
    shapes: dict[str, tuple[int, ...]] = {
        "theta": (data.n_items,),
        "spread": (1,),
        "crowd": (5,),
        "level": (N_SERIOUS,),
        "share": (n_classes,),
        "p_class": (n, n_classes),
        "p_level": (n, N_SERIOUS),
        "side": (n, len(LEVELS)),
        "tie": (n, len(LEVELS)),
        "counts": (n, 3),
        "favoured": (n,),
        "pair": (n_pairs,),
        "pair_tie": (n_pairs,),
    }
    if n_covariates:
        shapes |= {"coefficient": (n_covariates,), "covariate_scale": (n_covariates,)}
    if "cell" in found:
        n_cells = max(found["cell"].size, 1)
        shapes |= {"cell": (n_cells,), "cell_tie": (n_cells,), "cell_tie_sd": (1,)}
    if "context_code" in found:
        ptr = found.get("context_ptr", np.zeros(1, dtype=np.int64))
        sizes = np.diff(ptr) if ptr.ndim == 1 and ptr.dtype == np.int64 else np.empty(0, np.int64)
        n_effects, n_contexts = int(sizes.sum()), len(sizes)
        shapes |= {"context_code": (n_contexts,), "context_ptr": (n_contexts + 1,)}
        shapes |= {"context_item": (n_effects,), "context_effect": (n_effects,)}
        shapes["context_covariance"] = (int((sizes**2).sum()),)
        limits = {"ptr": n_effects + 1, "code": len(data.contexts or ()), "item": data.n_items}
        for name, limit in limits.items():
            try:
                check_index(f"context_{name}", found.get(f"context_{name}", np.empty(0)), limit)
            except ValueError as error:
                raise _changed(fit, str(error)) from None
        if (sizes < 0).any():
            raise _changed(fit, "context_ptr falls")
    for name, shape in shapes.items():
        fit.parameter(name, *shape)
    if n_pairs == 0:
        raise _changed(fit, "it has no pairs")


def _changed(fit: RankFit, why: str) -> InputError:
    return InputError(
        f"this fit of {fit.model} cannot be used ({why}): it was saved by another version of "
        "annotruth, or changed; fit again"
    )


def _classes(fit: RankFit, annotator: Codes) -> tuple[Floats, Floats]:
    """Return the probabilities of classes, and the shares of outcomes of those who vote by shares."""
    data, found = fit.data, fit.parameters
    counts = found["counts"] + np.array([1.0, 1.0, float(data.has_ties)])
    if not data.sides_known:
        counts[:, :TIE] = counts[:, :TIE].mean(axis=1, keepdims=True)
    # The last rows are those of unknown annotators.
    p_class = np.vstack([found["p_class"], found["share"]])
    counts = np.vstack([counts, counts.sum(axis=0)])
    return p_class[annotator], (counts / counts.sum(axis=1, keepdims=True))[annotator]


def _by_scores(fit: RankFit, new: NewVotes, p_class: Floats) -> Floats:
    """Return what annotators add who have habits: serious, inverted, and half of the random ones."""
    names = ("p_level", "side", "tie", "level", "crowd")
    p_level, side, tie, level, crowd = (fit.parameters[name] for name in names)
    mean_side, _, mean_tie, _, _ = crowd
    mean, variance = _differences(fit, new)
    pair_tie, tie_sd = _pair_ties(fit, new)
    rules, is_new = make_quadrature(), new.annotator < 0
    against = np.exp(-0.5 * (np.log(-INVERTED_SHARPNESS) / INVERTED_SD) ** 2)
    against /= against.sum()
    n_outcomes = 3 if fit.data.has_ties else 2
    total = np.zeros((len(new.left), 3))
    for j, b in enumerate(LEVELS):
        if j < N_SERIOUS:
            weight = p_class[:, 0] * np.where(is_new, level[j], p_level[new.annotator, j])
        elif j < len(LEVELS) - 1:
            weight = p_class[:, _INVERTED] * against[j - N_SERIOUS]
        else:
            weight = p_class[:, _RANDOM] / 2.0
        kept = weight > 1e-9
        who = new.annotator[kept]
        own_side = np.where(who < 0, mean_side, side[who, j])
        at = b * mean[kept] + own_side, abs(b) * np.sqrt(variance[kept])
        own_tie = np.full(len(who), -np.inf)
        if fit.data.has_ties:
            own_tie = np.where(who < 0, mean_tie, tie[who, j]) + pair_tie[kept]
        p = _average_over_ties(*at, own_tie, tie_sd[kept], rules)
        p[:, :n_outcomes] = (1.0 - SLIP) * p[:, :n_outcomes] + SLIP / n_outcomes
        total[kept] += weight[kept, np.newaxis] * p
    return total


def _differences(fit: RankFit, new: NewVotes) -> tuple[Floats, Floats]:
    """Return the mean and variance of each difference, in its context where that is known."""
    theta = fit.parameters["theta"]
    mean = theta[new.left] - theta[new.right]
    if fit.data.covariates:
        mean += new.covariates @ fit.parameters["coefficient"]
    spread = float(fit.parameters["spread"][0])
    variance = np.full(len(mean), 2.0 * spread**2)
    if spread == 0.0 or "context_code" not in fit.parameters:
        return mean, variance
    saved = {name: fit.parameters[f"context_{name}"] for name in ("code", "ptr", "item")}
    effect, covariance = (fit.parameters[f"context_{name}"] for name in ("effect", "covariance"))
    n_items, sizes = fit.data.n_items, np.diff(saved["ptr"])
    square = np.append(0, np.cumsum(sizes**2))
    place_of = np.full(len(fit.data.contexts or ()) + 1, -1)
    place_of[saved["code"]] = np.arange(len(sizes))
    place_of[-1] = -1
    key = np.repeat(np.arange(len(sizes)), sizes) * n_items + saved["item"]
    place = place_of[new.context]

    def find(item: Codes) -> Codes:
        wanted = place * n_items + item
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where((place >= 0) & (key[at] == wanted), at, -1)

    left, right = find(new.left), find(new.right)
    for found, sign in ((left, 1.0), (right, -1.0)):
        known = found >= 0
        own = found[known] - saved["ptr"][place[known]]
        mean[known] += sign * effect[found[known]]
        c = place[known]
        variance[known] += covariance[square[c] + own * (sizes[c] + 1)] - spread**2
    both = (left >= 0) & (right >= 0)
    c = place[both]
    i, j = (each[both] - saved["ptr"][c] for each in (left, right))
    variance[both] -= 2.0 * covariance[square[c] + i * sizes[c] + j]
    return mean, np.maximum(variance, 0.0)


def _average_over_ties(
    mean: Floats, sd: Floats, tie: Floats, tie_sd: Floats, rules: Quadrature
) -> Floats:
    """Return the probabilities of outcomes, averaged over the difference and the log tie rate."""
    node, weight = np.polynomial.hermite_e.hermegauss(_TIE_NODES if tie_sd.any() else 1)
    total = np.zeros((len(mean), 3))
    for x, w in zip(node, weight / weight.sum(), strict=True):
        total += w * outcome_probabilities(mean, sd, np.exp(tie + x * tie_sd), rules).T
    return total


def _pair_ties(fit: RankFit, new: NewVotes) -> tuple[Floats, Floats]:
    """Return the log tie rate of each pair in its context, relative to the crowd's, and its spread.

    Those of new pairs are 0. Votes of a new context vary as contexts do.
    """
    found, n = fit.parameters, fit.data.n_items
    low, high = np.minimum(new.left, new.right), np.maximum(new.left, new.right)
    pair = low * n + high
    ties, _ = _values_at(pair, found["pair"], found["pair_tie"])
    if "cell" not in found:
        return ties, np.zeros(len(ties))
    cell = np.where(new.context < 0, -1, new.context * n**2 + pair)
    of_cell, is_known = _values_at(cell, found["cell"], found["cell_tie"])
    return ties + of_cell, np.where(is_known, 0.0, found["cell_tie_sd"])


def _values_at(wanted: Codes, codes: Codes, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the values of codes, which are sorted, 0 for others; and which codes there are."""
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    is_known = codes[at] == wanted
    return np.where(is_known, values[at], 0.0), is_known


def _favoured(fit: RankFit, new: NewVotes, share: Floats) -> Floats:
    """Return the probabilities of votes of those who favour one item."""
    item = np.append(fit.parameters["favoured"], -1)[new.annotator]
    n_outcomes = 3 if fit.data.has_ties else 2
    found = share.copy()
    for side, outcome in ((new.left, LEFT), (new.right, RIGHT)):
        shown = side == item
        found[shown] = (1.0 - FAVOURED) / (n_outcomes - 1)
        found[shown, outcome] = FAVOURED
    found[:, n_outcomes:] = 0.0
    return found


def _codes(codes: Codes, n: int, least: int) -> Codes:
    """Return codes; raise unless they are in range."""
    codes = np.asarray(codes, dtype=np.int64)
    try:
        check_index("left, right, annotator or context", codes, n, least)
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
    scaled: Floats = values / fit.parameters["covariate_scale"]
    return scaled
