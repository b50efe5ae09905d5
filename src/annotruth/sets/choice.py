"""How many types of items there are, and how far answers can be trusted, by held-out answers."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, get_engine
from annotruth.kernels.arrays import Codes, Floats, mix_bits, slices
from annotruth.kernels.reference.sets.presence import type_posterior
from annotruth.models.em import EMLoop, ProgressCallback, run_em, start_stage
from annotruth.observations import Labels
from annotruth.observations.sets import members
from annotruth.sets.steps import SetParameters, SetSteps

MAX_TYPES = 6
"""The most types of items that are tried."""

_POWERS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_PART = 5  # one answer in five is held out
_MIN_HELD_OUT = 30
_LOSS_PER_TYPE = 1.0  # what a further type must add to the log-likelihood of held-out answers
_USUAL_POWER, _POWER_SPREAD = 0.8, 0.2  # a normal prior, which decides where few are held out
_FAILURES = 2  # after so many numbers of types that predict no better, no more are tried
_VALUES_AT_ONCE = 1 << 22


class TypesChoice(NamedTuple):
    """The number of types and the power that tempers posteriors.

    Where there are too few answers to hold some out, the power is 1, and so is the number if it is not given.
    """

    n_types: int
    power: float
    n_held_out: int  # how many answers were held out


class _TriedTypes(NamedTuple):
    """A number of types, how well it predicts held-out answers, and its fit to the others.

    ``score`` is the mean log-likelihood of held-out answers, less `_LOSS_PER_TYPE` for each further type.
    """

    n_types: int
    score: float
    parameters: SetParameters
    evidence: Floats


def choose_types(
    labels: Labels,
    n_types: int | None,
    loop: EMLoop,
    *,
    engine: str | Engine,
    progress: ProgressCallback | None,
) -> TypesChoice:
    """Choose the number of types, unless it is given, and the power, by held-out answers."""
    held_out = _held_out(labels)
    if np.count_nonzero(held_out) < _MIN_HELD_OUT:
        return TypesChoice(n_types or 1, power=1.0, n_held_out=0)
    start_stage(progress, "choosing types of items")
    train = labels.subset(~held_out)
    answers = _answers_of(labels, held_out)
    with closing(get_engine(engine).open(train)) as session:
        steps = SetSteps(train, session)
        run = partial(run_em, steps, loop=loop, progress=progress)
        single, _ = run(steps.start())
        own = steps.own_rates()
        best: _TriedTypes | None = None
        failures = 0
        for n in range(1, MAX_TYPES + 1) if n_types is None else [n_types]:
            found = single
            steps.finalize(single)
            if n > 1:
                found, _ = run(steps.with_types(single, n))
            evidence = session.collect("evidence").copy()
            score = float(_log_likelihoods(answers, found, evidence, own).mean())
            score -= (n - 1) * _LOSS_PER_TYPE / len(answers.item)
            if best is None or score > best.score:
                best, failures = _TriedTypes(n, score, found, evidence), 0
                continue
            failures += 1
            if failures == _FAILURES:
                break
    assert best is not None
    return TypesChoice(best.n_types, _choose_power(answers, best, own), len(answers.item))


def _choose_power(answers: _Answers, chosen: _TriedTypes, own: Floats) -> float:
    """Return the power with which held-out answers, and a prior of the power, are most probable."""
    log_posterior = [
        float(
            _log_likelihoods(
                answers, chosen.parameters.tempered(power), power * chosen.evidence, own
            ).mean()
        )
        * len(answers.item)
        - 0.5 * ((power - _USUAL_POWER) / _POWER_SPREAD) ** 2
        for power in _POWERS
    ]
    return _POWERS[int(np.argmax(log_posterior))]


def _held_out(labels: Labels) -> NDArray[np.bool_]:
    """Mark one answer in five, but neither the only one of an item nor of an annotator."""
    item, annotator = labels.item_of_label().astype(np.uint64), labels.annotator.astype(np.uint64)
    order = mix_bits(mix_bits(item + np.uint64(1)) + annotator)
    held_out: NDArray[np.bool_] = order % np.uint64(_PART) == 0
    for codes, n in (
        (labels.item_of_label(), labels.n_items),
        (labels.annotator, labels.n_annotators),
    ):
        held_out &= np.bincount(codes[~held_out], minlength=n)[codes] > 0
    return held_out


class _Answers(NamedTuple):
    """Held-out answers: codes among the training answers, and the sets."""

    item: Codes
    annotator: Codes
    given: NDArray[np.bool_]


def _answers_of(labels: Labels, held_out: NDArray[np.bool_]) -> _Answers:
    """Return the held-out answers with the codes that items and annotators have in the rest."""
    items = np.unique(labels.item_of_label()[~held_out])
    annotators = np.unique(labels.annotator[~held_out])
    sets = members(labels.scale)[labels.category_of_label()[held_out]]
    return _Answers(
        np.searchsorted(items, labels.item_of_label()[held_out]),
        np.searchsorted(annotators, labels.annotator[held_out]),
        sets,
    )


def _log_likelihoods(
    answers: _Answers, parameters: SetParameters, evidence: Floats, own: Floats
) -> Floats:
    """Return the log-likelihood of each held-out answer, given the other answers to its item."""
    none = np.zeros((1, evidence.shape[1]))
    result = np.empty(len(answers.item))
    for rows in slices(len(answers.item), max(1, _VALUES_AT_ONCE // parameters.theta.size)):
        item, annotator = answers.item[rows], answers.annotator[rows]
        given = answers.given[rows]
        unknown = np.full(len(item), -1)
        weight, within, _ = type_posterior(
            evidence[item], none, unknown, parameters.theta, parameters.types
        )
        hit = parameters.present[annotator][:, np.newaxis]
        false = 1.0 - parameters.absent[annotator][:, np.newaxis]
        rate = within * hit + (1.0 - within) * false
        by_label = np.where(given[:, np.newaxis], np.log(rate), np.log1p(-rate)).sum(axis=2)
        serious = np.logaddexp.reduce(np.log(np.maximum(weight, 1e-300)) + by_label, axis=1)
        rate = own[annotator]
        irregular = np.where(given, np.log(rate), np.log1p(-rate)).sum(axis=1)
        share = np.clip(parameters.irregular[annotator], 1e-12, 1.0 - 1e-12)
        result[rows] = np.logaddexp(np.log1p(-share) + serious, np.log(share) + irregular)
    return result
