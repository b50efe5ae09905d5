"""Fits of labels with groups of annotators (``by``): the groups, and tables, facts and lines on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from annotruth.analyses.groups.coupling import NO_GROUP
from annotruth.analyses.groups.differences import SIGNIFICANCE, GroupDifferences, find_differences
from annotruth.analyses.groups.model import GroupModel, fit_group_model, id_order
from annotruth.engines import Engine
from annotruth.errors import InputError, counted, did_you_mean, listed, option, shorten, shown
from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import table_of
from annotruth.models.distribution import Z_95
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.fits.further import FurtherResults
from annotruth.models.fits.make_fit import fit_of_original
from annotruth.models.fits.tables import MOST_COLUMNS
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.observations import Labels
from annotruth.observations.encode import to_text
from annotruth.observations.frames import as_arrow
from annotruth.observations.options import ReadOptions
from annotruth.observations.scale import parse_numbers
from annotruth.observations.validate import missing

if TYPE_CHECKING:
    from annotruth.models.base import Estimator


MAX_NUMBERS = 12
"""The most different numbers in a column of traits that are taken as groups."""

MAX_GROUPS = 50
"""The most groups."""

_SEPARATOR = ", "  # between the values of several columns

_TIMES_NOT_USED = "groups: times of labels are not used; for reliability over time, fit without {}"
_NAMED = 5  # groups that the summary names


@dataclass(frozen=True, eq=False)
class AnnotatorGroups:
    """The groups of annotators."""

    by: tuple[str, ...]  # the columns of traits
    names: tuple[str, ...]  # the names of the groups, in the order of their text
    group: Codes  # the group of each annotator: a place in ``names``, or `NO_GROUP`

    @classmethod
    def of(cls, labels: Labels, by: str | Sequence[str]) -> AnnotatorGroups:
        """Return the groups by one column of the annotators' traits, or by several together."""
        columns = tuple(dict.fromkeys([by] if isinstance(by, str) else by))
        traits = labels.covariates.annotators
        for name in columns:
            _check_column(name, traits)
        values = [_trait_values(traits[name]) for name in columns]
        names: list[str | None] = [
            None if None in each else _SEPARATOR.join(map(str, each))
            for each in zip(*values, strict=True)
        ]
        known = sorted({name for name in names if name is not None})
        _check_groups(columns, known)
        place = {name: code for code, name in enumerate(known)}
        group = np.array([NO_GROUP if name is None else place[name] for name in names])
        return cls(columns, tuple(known), group)


def check_by(by: Any) -> None:
    """Refuse columns that are not named by text."""
    names = [by] if isinstance(by, str) else by
    if not (isinstance(names, Sequence) and names and all(isinstance(n, str) for n in names)):
        raise InputError(
            f"by is {shown(by)}: give the name of a column of annotators, or a list of names"
        )


def _check_column(name: str, traits: Any) -> None:
    """Refuse a column that is not there, or whose values are not groups."""
    if name not in traits:
        raise InputError(
            f"annotators have no column {shown(name)} for {option('by')}: choose {listed(traits)}"
            f"{did_you_mean(name, traits)}"
        )
    column = traits[name]
    if pa.types.is_nested(column.type):
        raise InputError(f"column {shown(name)} holds {column.type}: give text or numbers")
    values = column.filter(pa.array(~missing(column))).unique()
    if len(values) > MAX_NUMBERS and parse_numbers(values) is not None:
        raise InputError(
            f"column {shown(name)} has {len(values):,} different numbers, each of which would be a "
            "group: replace them by bands, such as 18-34 and 35-64, and name that column"
        )


def _trait_values(column: pa.Array) -> list[str | None]:
    """Return the values of a column as text without blanks around it, None where there is none."""
    text = to_text(column).to_pylist()
    is_missing = missing(column)
    return [None if gone else value.strip() for value, gone in zip(text, is_missing, strict=True)]


def _check_groups(columns: tuple[str, ...], names: list[str]) -> None:
    """Refuse a single group, and too many."""
    what = " and ".join(map(shown, columns))
    if len(names) < 2:
        found = f"all annotators are in the group {shown(names[0])}" if names else "there are none"
        raise InputError(
            f"there are no two groups by {what}: {found}; choose another column for {option('by')}"
        )
    if len(names) > MAX_GROUPS:
        raise InputError(
            f"there are {counted(len(names), 'group')} by {what}, and at most {MAX_GROUPS} are "
            "compared: choose a column with fewer values, or merge some"
        )


def check(
    options: Mapping[str, Any], estimator: Estimator | None, engine: Engine, read: ReadOptions
) -> None:
    """Refuse groups that cannot be fitted, before labels are read."""
    by = options.get("by")
    if by is None:
        raise InputError(
            f"{option('annotators')}: traits of annotators are for groups; name a column of them, "
            f"such as {option('by', 'gender')}"
        )
    check_by(by)
    if not isinstance(estimator, RobustGPM):
        name = "auto" if estimator is None else estimator.name
        raise InputError(
            f"{name} has no groups: leave out {option('by')}, or choose "
            f"{option('model', 'robust-gpm')}"
        )
    if read.memory is not None:
        raise InputError(
            f"groups need the labels in memory: leave out {option('memory')} or {option('by')}"
        )
    if engine.capabilities.distributed:
        raise InputError(
            f"groups are for the engines memory and reference, not for {engine.name}: leave out "
            f"{option('engine')} or {option('by')}"
        )
    for name in ("classifier", "warm_start"):
        if name in options:
            raise InputError(
                f"groups take no {name.replace('_', ' ')}: leave out {option('by')} or {option(name)}"
            )


def analyse(
    options: Mapping[str, Any],
    estimator: RobustGPM,
    labels: Labels,
    read: ReadOptions,
    progress: ProgressCallback | None,
) -> Fit:
    """Return the fit of labels with groups by the columns ``by`` of the annotators' traits.

    ``annotators`` are the traits, a path or a frame with a column ``annotator``, unless the labels have them.
    On ordinal scales of more than two categories the groups' opinions differ, unless the estimator has
    ``truth="class"``.
    """
    annotators = options.get("annotators")
    with file_named_in_errors(annotators):
        if annotators is not None:
            traits = load_table(annotators, max_size=read.max_size)
            labels = labels.with_annotator_covariates(traits)
        elif not labels.covariates.annotators:
            raise InputError(
                "there are no traits of annotators to group them by: pass "
                f"{option('annotators', 'FILE')}"
            )
        groups = AnnotatorGroups.of(labels, options["by"])
    if estimator.truth == "auto" and labels.scale.is_ordinal and labels.n_categories > 2:
        estimator = replace(estimator, truth="opinions")
    model = fit_group_model(estimator, labels, groups.group, len(groups.names), progress)
    start_stage(progress, "comparing groups")
    differences = find_differences(model.crowd, model.group, len(groups.names))
    order = id_order(labels)
    results = make_results(model, groups, differences, place=order.item)
    if labels.covariates.has_times:
        results = replace(results, lines=[*results.lines, _TIMES_NOT_USED.format(option("by"))])
    axes = estimator.parameter_axes
    assert axes is not None
    fit = fit_of_original(model.fit, labels, [labels.reordered(order)], axes)
    return replace(fit, further={"groups": results})


def analyse_again(
    before: Fit, estimator: Estimator, labels: Labels, progress: ProgressCallback | None
) -> Fit:
    """Return the fit of more or fewer labels by the same traits; new annotators have no group."""
    by: Any = before.further["groups"].facts.get("by")
    check_by(by)
    if not isinstance(estimator, RobustGPM):
        raise InputError(f"{estimator.name} has no groups: fit again (`annotruth fit`)")
    return analyse({"by": by}, estimator, labels, ReadOptions(), progress)


def make_results(
    model: GroupModel, groups: AnnotatorGroups, differences: GroupDifferences, place: Codes
) -> FurtherResults:
    """Return the results; ``place`` is that of each of the model's items in tables."""
    theta = _pair_distributions(model)
    tables = {
        "groups": _group_table(model, groups, theta, place),
        "group_differences": _difference_table(model, groups, differences, theta, place),
        "group_summary": _summary_table(model, groups, differences),
    }
    names = pa.array(groups.names)
    facts = {
        "by": list(groups.by),
        "n_groups": len(groups.names),
        "n_annotators_without_group": int((groups.group == NO_GROUP).sum()),
        "n_items_compared": len(differences.items),
        "n_items_differ": int((differences.q_value <= SIGNIFICANCE).sum()),
        "groups_differ": names.filter(differences.group_q_value <= SIGNIFICANCE).to_pylist(),
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
    differences: GroupDifferences,
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
    model: GroupModel, groups: AnnotatorGroups, differences: GroupDifferences
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
    title = shorten(" and ".join(groups.by))
    lines = [f"groups by {title}, with their annotators: {', '.join(named)}"]
    if n_without := facts["n_annotators_without_group"]:
        who = counted(n_without, "annotator has", "annotators have")
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
