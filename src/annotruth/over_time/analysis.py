"""From a fit of labels with times to a fit that uses them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np

from annotruth.engines import Session, get_engine
from annotruth.kernels.arrays import Floats, slices
from annotruth.labels import Labels
from annotruth.models.base import Estimator
from annotruth.models.label_evidence import LabelEvidence
from annotruth.models.result import Fit
from annotruth.over_time.clock import read_clock
from annotruth.over_time.results import further_results, no_results
from annotruth.over_time.seconds import learn_seconds
from annotruth.over_time.trajectories import Trajectories, find_trajectories


def add_over_time(fit: Fit, estimator: Estimator) -> Fit:
    """Return a fit with results over time; ``estimator`` holds the fit, and fits again if need be.

    Where annotators change, the labels before and after are fitted as those of two annotators, and the
    results of items, annotators and labels are those of that fit. Without changes they stay as they are,
    except that ``p_serious`` uses the seconds per answer where these are informative.
    """
    engine = get_engine(getattr(estimator, "engine", "memory"))
    problem = ""
    if fit.verdict == "chance":
        problem = "labels agree no better than chance"
    elif engine.capabilities.distributed:
        problem = f"the engine {engine.name} does not use times"
    evidence = None if problem else estimator.label_evidence()
    if evidence is None:
        results = no_results(fit.data, problem or f"{fit.model} does not use times")
        return replace(fit, further={**fit.further, "over_time": results})
    with closing(engine.open(fit.data)) as session:
        return _analyse(fit, estimator, session, evidence)


def _analyse(fit: Fit, estimator: Estimator, session: Session, evidence: LabelEvidence) -> Fit:
    labels, further = fit.data, fit.further
    clock = read_clock(labels)
    trajectories = None if clock is None else find_trajectories(session, clock, evidence)
    reliability = _reliability_of_labels(labels, evidence, trajectories)
    seconds = learn_seconds(labels, reliability, evidence.if_serious, evidence.if_irregular)
    if trajectories is not None and len(trajectories.changes.place):
        parts = trajectories.parts(labels)
        parted = estimator.fit_parts(parts)
        assert parted is not None  # a model with evidence of labels can fit parts of them
        trajectories = trajectories.with_parts(session, parts, parted)
        fit = parted.fit
    if seconds is not None and seconds.gain.is_clear and fit.p_serious is not None:
        fit = replace(fit, p_serious=seconds.update(fit.p_serious))
    results = further_results(labels, trajectories, seconds)
    return replace(fit, further={**further, "over_time": results})


def _reliability_of_labels(
    labels: Labels, evidence: LabelEvidence, trajectories: Trajectories | None
) -> Floats:
    """Return the reliability at each label without its own evidence; constant without a time."""
    reliability = np.empty(labels.n_labels)
    if trajectories is None or len(trajectories.clock.order) < labels.n_labels:
        for some in slices(labels.n_labels, 1 << 16):
            serious, irregular = evidence.if_serious[some], evidence.if_irregular[some]
            p = irregular[:, np.newaxis] + np.outer(serious - irregular, evidence.levels)
            weights = evidence.weights[labels.annotator[some]] / p
            reliability[some] = weights @ evidence.levels / weights.sum(axis=1)
    if trajectories is not None:
        reliability[trajectories.clock.order] = trajectories.smoothed.without[:, 1]
    return reliability
