"""Tables, figures and lines on groups, from a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.analyses.groups.coupling import NO_GROUP
from annotruth.analyses.groups.differences import SIGNIFICANCE, Differences
from annotruth.analyses.groups.model import GroupModel
from annotruth.analyses.groups.traits import AnnotatorGroups
from annotruth.errors import counted, listed, shorten
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import table_of
from annotruth.models.distribution import Z_95
from annotruth.models.fits.further import FurtherResults
from annotruth.models.fits.tables import MOST_COLUMNS
from annotruth.observations.frames import as_arrow

_NAMED = 5  # groups that the summary names


def make_results(
    model: GroupModel, groups: AnnotatorGroups, differences: Differences, place: Codes
) -> FurtherResults:
    """Return the results; ``place`` is that of each of the model's items in tables."""
    theta = _pair_distributions(model)
    tables = {
        "groups": _group_table(model, groups, theta, place),
        "group_differences": _difference_table(model, groups, differences, theta, place),
        "group_summary": _summary_table(model, groups, differences),
    }
    n_differ = int((differences.q_value <= SIGNIFICANCE).sum())
    differ = [
        name
        for name, q in zip(groups.names, differences.group_q_value, strict=True)
        if q <= SIGNIFICANCE
    ]
    facts = {
        "by": list(groups.by),
        "n_groups": len(groups.names),
        "n_annotators_without_group": groups.n_without,
        "n_items_compared": len(differences.items),
        "n_items_differ": n_differ,
        "groups_differ": differ,
        "differing_share": 1.0 - model.parameters.coupling.agreed_share,
        "false_discovery_rate": SIGNIFICANCE,
        "n_permutations": differences.n_permutations,
    }
    return FurtherResults(tables, facts, _lines(model, groups, facts))


def _pair_distributions(model: GroupModel) -> Floats:
    """Return the distribution of opinion of each pair of an item and a group."""
    pairs = model.messages.pairs
    theta = np.empty((len(pairs.item), model.labels.n_categories))
    for rows, opinion in zip(
        pairs.rows, [*model.opinions, model.opinions.mean(axis=0)], strict=True
    ):
        theta[rows] = model.posterior[rows] @ opinion
    distributions: Floats = theta / theta.sum(axis=1, keepdims=True)
    return distributions


def _group_table(
    model: GroupModel, groups: AnnotatorGroups, theta: Floats, place: Codes
) -> pa.Table:
    """Return one row per item and group that labelled it."""
    pairs, scale = model.messages.pairs, model.labels.scale
    rows = np.flatnonzero(pairs.group != NO_GROUP)
    rows = rows[np.lexsort((pairs.group[rows], place[pairs.item[rows]]))]
    mode = theta.argmax(axis=1)
    estimate, low, high = _intervals(model, mode)
    columns: dict[str, Any] = {
        "item": model.labels.items.take(as_arrow(pairs.item[rows])),
        "group": pa.array(groups.names).take(as_arrow(pairs.group[rows])),
        "n_labels": pairs.labels.labels_per_item[rows],
        "label": scale.categories.take(as_arrow(mode[rows])),
    }
    if scale.is_ordinal:
        columns["expectation"] = estimate[rows]
    columns |= {"low": low[rows], "high": high[rows]}
    if len(scale) <= MOST_COLUMNS:
        names = [f"p_{name}" for name in scale.names]
        columns |= dict(zip(names, theta[rows].T, strict=True))
    return table_of(columns)


def _intervals(model: GroupModel, mode: Codes) -> tuple[Floats, Floats, Floats]:
    """Return an estimate of each pair with its 95% interval: the score, or the top label's share."""
    scale, pairs = model.labels.scale, model.messages.pairs
    estimate, variance = np.empty(len(mode)), np.empty(len(mode))
    for rows, opinion in zip(
        pairs.rows, [*model.opinions, model.opinions.mean(axis=0)], strict=True
    ):
        if scale.is_ordinal:
            values = np.broadcast_to(opinion @ scale.values, (len(rows), len(opinion)))
        else:
            values = opinion[:, mode[rows]].T
        mean = (model.posterior[rows] * values).sum(axis=1)
        square = (model.posterior[rows] * values**2).sum(axis=1)
        estimate[rows], variance[rows] = mean, np.maximum(square - mean**2, 0.0)
    margin = Z_95 * np.sqrt(model.variance_inflation * (variance + model.score_variance))
    lowest, highest = (scale.values[0], scale.values[-1]) if scale.is_ordinal else (0.0, 1.0)
    return estimate, np.maximum(estimate - margin, lowest), np.minimum(estimate + margin, highest)


def _difference_table(
    model: GroupModel,
    groups: AnnotatorGroups,
    differences: Differences,
    theta: Floats,
    place: Codes,
) -> pa.Table:
    """Return one row per item that two groups or more labelled."""
    order = np.argsort(place[differences.items])
    items = differences.items[order]
    one, other, distance = _most_distant(model, theta, items)
    names = pa.array(groups.names)
    return table_of(
        {
            "item": model.labels.items.take(as_arrow(items)),
            "p_value": differences.p_value[order],
            "q_value": differences.q_value[order],
            "differs": differences.q_value[order] <= SIGNIFICANCE,
            "group": names.take(as_arrow(one)),
            "other": names.take(as_arrow(other)),
            "distance": distance,
        }
    )


def _most_distant(model: GroupModel, theta: Floats, items: Codes) -> tuple[Codes, Codes, Floats]:
    """Return, for each item, the two groups that differ most, and their Hellinger distance.

    On ordinal scales the group with the lower mean comes first.
    """
    pairs, scale = model.messages.pairs, model.labels.scale
    rows = np.flatnonzero(pairs.group != NO_GROUP)
    item, group, roots = pairs.item[rows], pairs.group[rows], np.sqrt(theta[rows])
    level = theta[rows] @ scale.values if scale.is_ordinal else -group.astype(np.float64)
    bounds = np.searchsorted(item, np.stack([items, items + 1]))
    found = np.empty((len(items), 2), dtype=np.int64)
    distance = np.empty(len(items))
    for place, (first, last) in enumerate(bounds.T):
        affinity = roots[first:last] @ roots[first:last].T
        pair = np.array(np.unravel_index(affinity.argmin(), affinity.shape))
        distance[place] = np.sqrt(max(1.0 - affinity[*pair], 0.0))
        found[place] = first + pair[np.argsort(level[first + pair], kind="stable")]
    return group[found[:, 0]], group[found[:, 1]], distance


def _summary_table(
    model: GroupModel, groups: AnnotatorGroups, differences: Differences
) -> pa.Table:
    """Return one row per group: its annotators, and how it differs from the others."""
    fit, codes = model.fit, range(len(groups.names))
    assert fit.reliability is not None
    assert fit.spammer is not None
    reliability, spammer = fit.reliability, fit.spammer
    n_labels = model.labels.labels_per_annotator
    columns: dict[str, Any] = {
        "group": pa.array(groups.names),
        "n_annotators": np.bincount(model.group[model.group >= 0], minlength=len(codes)),
        "n_labels": np.array([n_labels[model.group == code].sum() for code in codes]),
        "reliability": np.array([np.median(reliability[model.group == code]) for code in codes]),
        "n_spammers": np.array([np.count_nonzero(spammer[model.group == code]) for code in codes]),
    }
    if model.labels.scale.is_ordinal:
        columns["level"] = differences.level
    columns |= {
        "p_value": differences.group_p_value,
        "q_value": differences.group_q_value,
        "differs": differences.group_q_value <= SIGNIFICANCE,
    }
    return table_of(columns)


def _lines(model: GroupModel, groups: AnnotatorGroups, facts: dict[str, Any]) -> list[str]:
    """Return what the summary says."""
    sizes = np.bincount(model.group[model.group >= 0], minlength=len(groups.names))
    largest = np.argsort(-sizes, kind="stable")[:_NAMED]
    named = [f"{shorten(groups.names[code])} ({sizes[code]:,})" for code in largest]
    if len(groups.names) > _NAMED:
        named.append(f"and {len(groups.names) - _NAMED} more")
    title = shorten(groups.title)
    lines = [f"groups by {title}, with their annotators: {', '.join(named)}"]
    if groups.n_without:
        who = counted(groups.n_without, "annotator has", "annotators have")
        lines.append(f"groups: {who} no {title}, and count for the crowd only")
    rate = f"at a false-discovery rate of {SIGNIFICANCE:.0%}"
    lines.append(
        f"groups differ on {facts['n_items_differ']:,} of "
        f"{counted(facts['n_items_compared'], 'item')} {rate}; estimated share of items with "
        f"different opinions: {facts['differing_share']:.0%}"
    )
    found = listed(facts["groups_differ"], _NAMED)
    lines.append(f"groups that differ from the others overall, {rate}: {found}")
    return lines
