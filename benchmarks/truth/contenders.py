"""The models to compare: ours by name, and those of crowd-kit where it is installed."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

import annotruth
from annotruth import simulate
from annotruth.models.registry import AUTO, MODELS
from annotruth.observations import Labels, Scale
from benchmarks.truth.scoring import Score, score_classes, score_probabilities
from benchmarks.truth.sets import TruthSet

OURS = (
    "robust-gpm",
    "gpm",
    "majority",
    "dawid-skene",
    "glad",
    "one-coin",
    "ibcc",
    "ebcc",
    "bwa",
    "mace",
    AUTO,
)
CROWD_KIT = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE", "MMSR", "Wawa")
# Their own examples' number of iterations, where the class has no default.
_ITERATIONS = {"DawidSkene": 100, "OneCoinDawidSkene": 100}

Contender = Callable[[TruthSet], Score]


def has_crowd_kit() -> bool:
    return importlib.util.find_spec("crowdkit") is not None


def ours(names: Sequence[str]) -> tuple[dict[str, Contender], list[str]]:
    """Return our models by name, compiled, and the names that the package does not have."""
    known = [name for name in names if name in MODELS or name == AUTO]
    crowd = simulate.crowd(n_items=20, n_annotators=8, seed=0).labels
    small = replace(crowd, scale=Scale.nominal(crowd.scale.names))
    contenders: dict[str, Contender] = {}
    for name in known:
        _fit(small, name)  # compiles or loads the kernels, which is not part of the time
        contenders[name] = _our_contender(name)
    return contenders, [name for name in names if name not in known]


def _our_contender(name: str) -> Contender:
    def score(found: TruthSet) -> Score:
        start = perf_counter()
        fit = _fit(found.labels, name)
        seconds = perf_counter() - start
        if fit.distribution is None:
            return score_classes(found, fit.label, seconds)
        p = fit.distribution.dense(found.labels.n_categories)
        return score_probabilities(found, p, seconds)

    return score


def _fit(labels: Labels, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that reaches its maximum of iterations counts
        return annotruth.fit(labels, name)


def crowd_kit(names: Sequence[str] = CROWD_KIT) -> dict[str, Contender]:
    """Return models of crowd-kit by the names of their classes."""
    return {f"{name} (crowd-kit)": _peer(name) for name in names}


def _peer(name: str) -> Contender:
    def score(found: TruthSet) -> Score:
        import pandas as pd
        from crowdkit import aggregation

        labels = found.labels
        columns = (labels.item_of_label(), labels.annotator, labels.category_of_label())
        frame = pd.DataFrame(dict(zip(("task", "worker", "label"), columns, strict=True)))
        options = {"n_iter": _ITERATIONS[name]} if name in _ITERATIONS else {}
        model: Any = getattr(aggregation, name)(**options)
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit_predict(frame)
        seconds = perf_counter() - start
        probas = getattr(model, "probas_", None)
        items = np.arange(labels.n_items)
        if probas is None:
            return score_classes(found, model.labels_.loc[items].to_numpy(), seconds)
        classes = range(labels.n_categories)
        p = probas.reindex(index=items, columns=classes).fillna(0.0).to_numpy()
        return score_probabilities(found, p, seconds)

    return score
