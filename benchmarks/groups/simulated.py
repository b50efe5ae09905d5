"""Simulated groups: the opinion of each group, and reliability of a minority."""

from __future__ import annotations

import numpy as np

import annotruth as at
from annotruth.kernels.arrays import Floats
from annotruth.metrics import hellinger
from annotruth.models.result import Fit
from annotruth.simulate import GroupSimulation
from benchmarks.groups.tables import markdown

_LABELS_PER_GROUP = 5
_DESIGNS = {2: 20, 4: 15, 6: 15}  # the number of groups, and the annotators in each
_DIFFERING = (0.0, 0.1, 0.3, 1.0)
_MINORITIES = ((10, 0.5), (10, 1.0), (20, 0.5), (20, 1.0))  # labels per item, share of items


def group_accuracy(n_runs: int) -> str:
    """Return the distance of groups' opinions from the truth, beside separate fits and one fit."""
    rows = []
    for n_groups, size in _DESIGNS.items():
        for share in _DIFFERING:
            found = [_distances(n_groups, size, share, seed) for seed in range(n_runs)]
            grouped, separate, one = np.mean(found, axis=0)
            rows.append(
                [
                    *(f"{n_groups}", f"{share:.0%}", f"{grouped:.3f}", f"{separate:.3f}"),
                    *(f"{one:.3f}", f"{1 - grouped / separate:.0%}"),
                ]
            )
    title = (
        f"Hellinger distance of each group's opinion, {_LABELS_PER_GROUP} labels per item and group"
    )
    header = [
        "groups",
        "items that differ",
        "with groups",
        "separate fits",
        "one fit",
        "below separate",
    ]
    return markdown(title, header, rows)


def _distances(
    n_groups: int, size: int, differing_share: float, seed: int
) -> tuple[float, float, float]:
    simulated = at.simulate.groups(
        n_items=300,
        sizes={f"group {k}": size for k in range(n_groups)},
        differing_share=differing_share,
        labels_per_item=_LABELS_PER_GROUP * n_groups,
        seed=seed,
    )
    labels = simulated.crowd.labels
    fit = at.fit(labels, annotators=simulated.annotators, by="group")
    plain = at.fit(labels, truth="opinions")
    grouped, separate, one = [], [], []
    for code in range(n_groups):
        truth = simulated.distributions[code]
        items, shares = _opinions(fit, simulated, code)
        grouped.append(hellinger(shares, truth[items]))
        one.append(hellinger(_shares(plain)[items], truth[items]))
        own = at.fit(labels.subset(simulated.group[labels.annotator] == code), truth="opinions")
        separate.append(hellinger(_shares(own), truth[own.data.items.to_numpy() - 1]))
    with_groups, separately, together = (
        float(np.concatenate(each).mean()) for each in (grouped, separate, one)
    )
    return with_groups, separately, together


def _opinions(fit: Fit, simulated: GroupSimulation, code: int) -> tuple[Floats, Floats]:
    """Return the items that a group labelled, and its opinions on them."""
    table = fit.further_table("groups", "groups")
    rows = np.flatnonzero(np.array(table["group"].to_pylist()) == simulated.names[code])
    shares = np.stack([table[f"p_{n}"].to_numpy() for n in fit.data.scale.names], axis=1)
    return table["item"].to_numpy()[rows] - 1, shares[rows]


def _shares(fit: Fit) -> Floats:
    assert fit.distribution is not None
    return fit.distribution.dense(fit.data.n_categories)


def minority(n_runs: int) -> str:
    """Return how many of a minority with another opinion are called spammers."""
    rows = []
    for per_item, share in _MINORITIES:
        with_groups, without, of_most = [], [], []
        for seed in range(n_runs):
            simulated = at.simulate.groups(
                n_items=300,
                sizes={"most": 85, "few": 15},
                differing_share=share,
                labels_per_item=per_item,
                spammer_share=0.1,
                least_reliability=0.8,
                seed=seed,
            )
            labels = simulated.crowd.labels
            fit = at.fit(labels, annotators=simulated.annotators, by="group")
            plain = at.fit(labels, truth="opinions")
            assert fit.spammer is not None
            assert plain.spammer is not None
            serious = simulated.crowd.reliability >= 0.5
            few, most = ((simulated.group == code) & serious for code in (1, 0))
            with_groups.append(fit.spammer[few])
            without.append(plain.spammer[few])
            of_most.append(fit.spammer[most])
        rows.append(
            [
                *(f"{per_item}", f"{share:.0%}"),
                *(f"{np.concatenate(each).mean():.1%}" for each in (with_groups, without, of_most)),
            ]
        )
    title = "Serious annotators called spammers: a minority of 15% with another opinion"
    header = [
        "labels per item",
        "items that differ",
        "with groups",
        "without",
        "majority, with groups",
    ]
    return markdown(title, header, rows)
