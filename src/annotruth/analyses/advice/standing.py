"""Standing verdicts: what holds about annotators over the fits of a campaign.

The verdict of a fit depends on its labels alone, so near a threshold it changes from week to week. The standing
verdict remembers: it begins as too few labels, and changes on clear evidence only. Of a model that flags people,

- "drop" is given to those who are flagged and careless with a probability of `SURE`, unless they were not flagged
  with more than nine tenths of their labels. It is taken back once they are rather serious, or once their labels
  clearly agree with the others'.
- "keep" is given to those whose labels follow the items, if they are serious with a probability of `SURE`.
- "unsure" is given to those who are noticed and rather serious, after they have been noticed in every fit since
  they had two thirds of their labels. "keep" follows "unsure" after as many labels.

Of other models, the verdict of a fit holds, but "keep" until the reliability itself is below `SPAMMER_BELOW`, not just
the lower end of its interval, and "drop" until it is above. Where a model has no intervals, that of a share near one half on
as many labels stands in for it.

A verdict that was given is not replaced by too few labels, and fits without verdicts on people change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import basis_of
from annotruth.analyses.advice.annotators import annotator_advice, has_flags, verdicts
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.fits import past_fits
from annotruth.models.result import Fit

SURE, RATHER = 0.95, 0.5
"""Probabilities from which somebody is clearly, or rather, what they are called."""

# of the labels now: as many as there were when a verdict was first given
_SHARE_BEFORE, _SHARE_BEFORE_DROP = 2 / 3, 0.9
_LEAST_AGREEMENT, _CLEARLY = 0.1, 2.0
_NORMAL_95 = 1.96


class Standing(NamedTuple):
    """What holds about an annotator."""

    verdict: str  # the standing verdict
    said: str  # the verdict of the last fit
    since: int  # how many labels the annotator had when fits began to say so
    n_labels: int = 0  # and in the last fit


def standing_verdicts(
    fit: Fit[Any],
    names: Sequence[str],
    verdict: NDArray[np.str_],
    before: Mapping[str, Standing],
) -> list[Standing]:
    """Return what holds about every annotator, given the verdicts of a fit and what held before it.

    ``names`` are the annotators' ids, as in ``before``.
    """
    too_few = fit.too_few[0]
    n_labels = np.asarray(fit.data.labels_per_annotator)
    past = [before.get(name, Standing(too_few, "", 0)) for name in names]
    last = np.array([each.verdict for each in past], dtype=object)
    said = np.array([each.said for each in past], dtype=object)
    since = np.where(said == verdict, [each.since for each in past], n_labels)
    if fit.verdict in ("chance", "camps") or fit.is_void:
        now = last
    elif has_flags(fit):
        sudden = np.minimum(since, [each.n_labels for each in past]) > _SHARE_BEFORE_DROP * n_labels
        now = _by_flags(fit, verdict, last, since <= _SHARE_BEFORE * n_labels, sudden)
    else:
        now = np.where(_is_held(fit, last) | (verdict == too_few), last, verdict)
    return [
        Standing(*each)
        for each in zip(
            now.tolist(), verdict.tolist(), since.tolist(), n_labels.tolist(), strict=True
        )
    ]


def _by_flags(
    fit: Fit[Any],
    verdict: NDArray[np.str_],
    last: NDArray[np.object_],
    long: NDArray[np.bool_],
    sudden: NDArray[np.bool_],
) -> NDArray[np.object_]:
    """Return the standing verdicts of a model that flags people.

    ``long``: where fits said so for long; ``sudden``: where a small part of the labels made the last fit say so.
    """
    columns = fit.annotator_columns
    n_labels = np.maximum(fit.data.labels_per_annotator, 1)
    p_spammer, agreement = (np.asarray(columns[name]) for name in ("p_spammer", "agreement"))
    follows = agreement > np.maximum(_LEAST_AGREEMENT, _CLEARLY / np.sqrt(n_labels))
    dropped = last == "drop"
    none = fit.too_few[0]
    return np.select(
        [
            dropped & (p_spammer >= RATHER) & ~follows,
            (verdict == "drop") & (p_spammer >= SURE) & ~sudden,
            (verdict == "keep") & (p_spammer <= 1.0 - SURE) & (long | dropped | (last == none)),
            (verdict == "unsure") & (p_spammer < RATHER) & long,
        ],
        ["drop", "drop", "keep", "unsure"],
        default=np.where(dropped, none, last),
    )


def _is_held(fit: Fit[Any], last: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Return who keeps the last verdict of a model without flags."""
    if fit.reliability is None:
        return np.zeros(len(last), dtype=np.bool_)
    is_low = fit.reliability < SPAMMER_BELOW
    if fit.low is None or fit.high is None:
        margin = _NORMAL_95 * 0.5 / np.sqrt(np.maximum(fit.data.labels_per_annotator, 1))
        held = (np.abs(fit.reliability - SPAMMER_BELOW) < margin) & (last != fit.too_few[0])
    else:
        between = (fit.low < SPAMMER_BELOW) & (fit.high >= SPAMMER_BELOW)
        held = between & np.where(is_low, last == "drop", last == "keep")
    return np.asarray(held, dtype=np.bool_)


def keep_table(fit: Fit) -> pa.Table:
    """Return annotator, verdict, ask and reason, as ``annotruth fit --keep`` writes them.

    A fit that continues others has the standing verdicts beside them.
    """
    table = annotator_advice(fit, basis_of(fit).label_gain).table(fit)
    if fit.earlier_fits is None:
        return table
    return table.add_column(2, "standing", standing_table(fit)["standing"])


def standing_table(fit: Fit) -> pa.Table:
    """Return the standing verdicts over all fits up to this one: annotator, verdict, since, standing."""
    names = past_fits.annotator_names(fit)
    before = {}
    if fit.earlier_fits is not None:
        last = past_fits.last_fit(fit.earlier_fits)
        fields = ("annotator", "standing", "verdict", "since", "n_labels")
        columns = (last[name].to_pylist() for name in fields)
        before = {name: Standing(*rest) for name, *rest in zip(*columns, strict=True)}
    standing = standing_verdicts(fit, names.to_pylist(), verdicts(fit)[0], before)
    now, said, since, _ = zip(*standing, strict=True)
    return pa.table({"annotator": names, "verdict": said, "since": since, "standing": now})
