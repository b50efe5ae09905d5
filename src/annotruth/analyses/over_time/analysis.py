"""From a fit of labels with times to a fit that uses them."""

from __future__ import annotations

from contextlib import closing
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.over_time.clock import read_clock
from annotruth.analyses.over_time.results import further_results, no_results
from annotruth.analyses.over_time.sample import sample_annotators
from annotruth.analyses.over_time.seconds import learn_seconds
from annotruth.analyses.over_time.trajectories import Trajectories, find_trajectories
from annotruth.engines import Session, get_engine
from annotruth.kernels.arrays import Floats, slices
from annotruth.models.base import Estimator
from annotruth.models.em_estimator import EMEstimator
from annotruth.models.latent_classes import LabelEvidence
from annotruth.models.result import Fit
from annotruth.observations import Labels


def add_over_time(fit: Fit, estimator: Estimator) -> Fit:
    """Return a fit with results over time; ``estimator`` holds the fit, and fits again if need be.

    Where annotators change, the labels before and after are fitted as those of two annotators, and the
    results of items and annotators are those of that fit; ``p_serious`` is by the reliability at each
    label. Without changes results stay as they are, except that ``p_serious`` uses the seconds per
    answer where these are informative. Where an engine does not run the kernels over time, all of it is
    computed in memory.
    """
    engine = get_engine(getattr(estimator, "engine", "memory"))
    can_run = engine.capabilities.over_time or engine.capabilities.distributed
    if isinstance(estimator, EMEstimator) and not can_run:
        engine = get_engine("memory")
        estimator = copy(estimator)
        estimator.engine = engine.name
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
    clock, sampled = read_clock(session, labels), sample_annotators(labels)
    trajectories = seconds = None
    if clock is not None:
        trajectories = find_trajectories(session, clock, evidence, sampled)
    if "seconds" in labels.covariates.labels:
        reliability = _reliability_of_labels(labels, evidence, trajectories, sampled)
        seconds = learn_seconds(session, labels, evidence, reliability, sampled)
    if trajectories is not None and len(trajectories.changes.place):
        parts = trajectories.parts(labels)
        parted = estimator.fit_parts(parts)
        assert parted is not None  # a model with evidence of labels can fit parts of them
        trajectories = trajectories.with_parts(parts, parted)
        fit = parted.fit
        if fit.p_serious is not None:
            fit = replace(fit, p_serious=trajectories.update(fit.p_serious))
    if seconds is not None and seconds.gain.is_clear and fit.p_serious is not None:
        fit = replace(fit, p_serious=seconds.update(fit.p_serious))
    results = further_results(labels, trajectories, seconds)
    return replace(fit, further={**further, "over_time": results})


def _reliability_of_labels(
    labels: Labels,
    evidence: LabelEvidence,
    trajectories: Trajectories | None,
    sampled: NDArray[np.bool_],
) -> Floats:
    """Return the reliability at each label of a sample without its own evidence.

    It is constant for labels without a time.
    """
    reliability = np.full(labels.n_labels, np.nan)
    is_constant = sampled[labels.annotator]
    if trajectories is not None:
        place = trajectories.clock.order[trajectories.sample.place]
        reliability[place] = trajectories.sample.changing
        is_constant[place] = False
    places = np.flatnonzero(is_constant)
    for some in slices(len(places), 1 << 16):
        j = places[some]
        serious, irregular = evidence.if_serious[j], evidence.if_irregular[j]
        p = irregular[:, np.newaxis] + np.outer(serious - irregular, evidence.levels)
        weights = evidence.weights[labels.annotator[j]] / p
        reliability[j] = weights @ evidence.levels / weights.sum(axis=1)
    return reliability
