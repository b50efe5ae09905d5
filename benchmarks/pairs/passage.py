"""Difficulty of passages: concordance with the grades, and who is a spammer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.metrics import concordance
from annotruth.models.result import RankFit
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure
from benchmarks.pairs.fits import compared, fit_votes
from benchmarks.pairs.sets import SPAMMERS, PassageCrowd, passage_crowd

DEFAULT_RUNS = 5
MIN_VOTES = 15
F1 = {"always left": 0.99, "inverted": 0.99, "random": 0.85, "mixed": 0.90}
NAMED = Target(low=0.80)


def passage(options: PartOptions) -> list[PartTable]:
    """Measure models on the passages, clean and with 80% more annotators who are spammers."""
    folder = options.data() / "pairs-passage"
    seeds = range(options.seed, options.seed + options.runs_or(DEFAULT_RUNS))
    rows: list[tuple[Sequence[str], Sequence[TargetFigure | str]]] = []
    for kind in SPAMMERS:
        crowds = [passage_crowd(folder, kind, seed) for seed in (seeds if kind != "clean" else [0])]
        for name in compared(options.model):
            fits = [fit_votes(crowd.data, name) for crowd in crowds]
            checked = name == options.model
            scores = [_concordance(crowd, fit) for crowd, fit in zip(crowds, fits, strict=True)]
            goal = Target(low=0.700 if kind == "clean" else 0.697) if checked else None
            found = _spammers(kind, crowds, fits) if checked else ["", "", "", ""]
            rows.append(((kind, name), [TargetFigure(float(np.mean(scores)), goal, 4), *found]))
    description = (
        f"Passages (472 items) with 80% more annotators added, all of them spammers: mean over "
        f"{len(seeds)} seeds of the share of pairs of passages in the order of their grades; and for "
        f"annotators with {MIN_VOTES} or more votes, F1 of who is a spammer, the share of spammers "
        "whose behavior is named right, of those found and of all, and the number of real "
        "annotators called spammers per seed (any number of votes)."
    )
    columns = ("concordance", "F1", "named (found)", "named (all)", "false alarms")
    return [PartTable("Passages", description, ("added", "model"), columns, rows)]


def _concordance(crowd: PassageCrowd, fit: RankFit) -> float:
    return concordance(crowd.grade, fit.scores.mean)


def _spammers(
    kind: str, crowds: Sequence[PassageCrowd], fits: Sequence[RankFit]
) -> list[TargetFigure | str]:
    """Return F1, the shares named right, and the false alarms."""
    if fits[0].spammer is None or fits[0].behavior is None:
        return ["", "", "", ""]
    f1, named_found, named, alarms = [], [], [], []
    for crowd, fit in zip(crowds, fits, strict=True):
        assert fit.spammer is not None
        assert fit.behavior is not None
        many = crowd.data.comparisons_per_annotator >= MIN_VOTES
        true, flagged = crowd.behavior != "serious", np.asarray(fit.spammer)
        right = np.asarray(fit.behavior) == crowd.behavior
        n_found = np.count_nonzero(true & flagged & many)
        n_either = int(np.count_nonzero(true & many) + np.count_nonzero(flagged & many))
        f1.append(2.0 * n_found / max(n_either, 1))
        named_found.append(np.mean(right[true & flagged & many]) if n_found else np.nan)
        named.append(np.mean(right[true & many]) if (true & many).any() else np.nan)
        alarms.append(np.count_nonzero(flagged & ~true))
    n_alarms = float(np.mean(alarms))
    if kind == "clean":
        return ["", "", "", TargetFigure(n_alarms, Target(high=0.0), 1)]
    return [
        TargetFigure(float(np.mean(f1)), Target(low=F1[kind])),
        TargetFigure(float(np.mean(named_found)), NAMED),
        TargetFigure(float(np.mean(named)), None),
        TargetFigure(n_alarms, None, 1),
    ]
