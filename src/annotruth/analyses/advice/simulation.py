"""Items drawn from what a fit says of them, to be labelled by its annotators in simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.advice.advice import AdviceBasis
from annotruth.analyses.advice.generic import OpinionBasis, ScoreBasis
from annotruth.analyses.advice.latent_classes import MAX_NUMBERS, ClassPosterior, LatentClassBasis
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Z_95

_ROWS = 1000  # items simulated, some of them several times where there are fewer
_LEAST_ROWS = 100


class SimulatedItems(Protocol):
    """Items with a drawn truth, and what the labels so far say of them."""

    def gains(self) -> tuple[Floats, Floats]:
        """Return the uncertainty of each item and the gain of one more label."""

    def label(self, rows: Codes, annotators: Codes) -> None:
        """Draw one label for each of these items, and update what is known of them."""

    def measure(self) -> Floats:
        """Return the target's measure of every item."""


def simulate(
    basis: AdviceBasis, target: str, ask: NDArray[np.bool_], rng: np.random.Generator
) -> SimulatedItems:
    """Draw items and their truths from a basis; labels will be by those to ask."""
    if isinstance(basis, LatentClassBasis):
        return SimulatedClasses(basis, target, ask, rng)
    if isinstance(basis, OpinionBasis):
        return SimulatedOpinions(basis, target, ask, rng)
    assert isinstance(basis, ScoreBasis)
    if target != "score":
        raise InputError(
            f"{basis.fit.model} estimates scores, not distributions: choose the target score, or a "
            f"model that gives distributions for {target}"
        )
    return SimulatedScores(basis, rng)


class SimulatedClasses:
    """Items with a drawn latent class."""

    def __init__(
        self,
        basis: LatentClassBasis,
        target: str,
        ask: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> None:
        self._classes, self._rng = basis.classes, rng
        self._typical = basis.typical_confusion(ask)
        most = int(np.clip(MAX_NUMBERS // basis.classes.confusion[0].size, _LEAST_ROWS, _ROWS))
        chosen = _chosen_items(basis.fit.data.n_items, most, rng)
        parts = [
            posterior.take(chosen[(chosen >= lo) & (chosen < hi)] - lo)
            for lo, hi, posterior in basis.posteriors()
        ]
        halves = [part.halves for part in parts if part.halves is not None]
        self.posterior = ClassPosterior(
            np.concatenate([part.weights for part in parts]),
            basis.classes.opinions,
            np.concatenate(halves) if halves else None,
        )
        self._truth = _draw(self.posterior.weights, rng)
        self._measure = self._measure_of(target, basis.fit.data.scale.values)
        n_rows = len(self._truth)
        self._uncertainty, self._gain = np.empty(n_rows), np.empty(n_rows)
        self._is_changed = np.ones(n_rows, dtype=np.bool_)  # since the gains were computed

    def gains(self) -> tuple[Floats, Floats]:
        """Return the uncertainty of each item and the gain of one more label."""
        rows = np.flatnonzero(self._is_changed)
        changed = self.posterior.take(rows)
        self._uncertainty[rows] = changed.uncertainty()
        self._gain[rows] = changed.gain(self._typical)
        self._is_changed[:] = False
        return self._uncertainty.copy(), self._gain.copy()

    def label(self, rows: Codes, annotators: Codes) -> None:
        """Draw labels by the annotators' confusion, and update the posterior."""
        confusion, truth = self._classes.confusion[annotators], self._truth[rows]
        some = self.posterior.take(rows)
        last = confusion.shape[2] - 1
        chances = confusion[np.arange(len(rows)), :, np.minimum(truth, last)]
        if some.halves is not None:
            divided = np.einsum("enk,ek->en", confusion, some.halves)
            chances = np.where((truth > last)[:, np.newaxis], divided, chances)
        label = _draw(chances, self._rng)
        counted = confusion[np.arange(len(rows)), label] ** self._classes.label_weight
        self.posterior.weights[rows] = some.updated(counted).weights
        self._is_changed[rows] = True

    def measure(self) -> Floats:
        """Return the target's measure of every item, expected by the posterior."""
        return self._measure(self.posterior)

    def _measure_of(self, target: str, values: Floats) -> Callable[[ClassPosterior], Floats]:
        if target == "hellinger":
            return ClassPosterior.expected_distance
        if target == "accuracy":
            return ClassPosterior.p_top_label
        inflation, within = self._classes.score_inflation, self._classes.score_variance
        return lambda now: Z_95 * np.sqrt(inflation * now.score_variance(values) + within)


class SimulatedOpinions:
    """Items with a drawn distribution of serious opinion."""

    def __init__(
        self, basis: OpinionBasis, target: str, ask: NDArray[np.bool_], rng: np.random.Generator
    ) -> None:
        labels, theta = basis.fit.data, basis.fit.distribution
        assert theta is not None
        n = labels.n_categories
        rows = _chosen_items(labels.n_items, min(_ROWS, max(MAX_NUMBERS // n, _LEAST_ROWS)), rng)
        # Items that stand in several rows are made dense once.
        some, place = np.unique(rows, return_inverse=True)
        entries = np.isin(theta.item(), some)
        counts = np.full((len(some), n), basis.prior_count)
        item = np.searchsorted(some, theta.item()[entries])
        counts[item, theta.category[entries]] = basis.pseudo_counts()[entries]
        self._basis, self._target, self._ask, self._rng = basis, target, ask, rng
        self._values = labels.scale.values
        self.counts = counts[place]
        drawn = np.maximum(rng.standard_gamma(self.counts), 1e-300)
        self._truth = drawn / drawn.sum(axis=1, keepdims=True)

    def gains(self) -> tuple[Floats, Floats]:
        """Return the uncertainty of each item and the gain of one more label."""
        return self._basis.gains_of_counts(self.counts, self._ask)

    def label(self, rows: Codes, annotators: Codes) -> None:
        """Draw serious labels from the truth, others at random; count them as GPM would."""
        reliability = self._basis.label_gain[annotators]
        n = self.counts.shape[1]
        chances = reliability[:, np.newaxis] * self._truth[rows]
        label = _draw(chances + (1.0 - reliability[:, np.newaxis]) / n, self._rng)
        share = self.counts[rows, label] / self.counts[rows].sum(axis=1)
        serious = reliability * share
        self.counts[rows, label] += serious / (serious + (1.0 - reliability) / n)

    def measure(self) -> Floats:
        """Return the target's measure of every item, against the drawn truth."""
        total = self.counts.sum(axis=1, keepdims=True)
        mean = self.counts / total
        if self._target == "hellinger":
            affinity = np.sqrt(self._truth * mean).sum(axis=1)
            distance: Floats = np.sqrt(np.maximum(1.0 - affinity, 0.0))
            return distance
        if self._target == "accuracy":
            right: Floats = np.equal(mean.argmax(axis=1), self._truth.argmax(axis=1)).astype(float)
            return right
        variance = mean @ self._values**2 - (mean @ self._values) ** 2
        half: Floats = Z_95 * np.sqrt(np.maximum(variance, 0.0) / (total[:, 0] + 1.0))
        return half


class SimulatedScores:
    """Items whose scores' standard errors fall with the number of labels."""

    def __init__(self, basis: ScoreBasis, rng: np.random.Generator) -> None:
        rows = _chosen_items(basis.fit.data.n_items, _ROWS, rng)
        self._basis = basis
        self._first = basis.fit.data.labels_per_item[rows].astype(np.float64)
        self._error = basis.standard_error[rows]
        self.n_labels = self._first.copy()

    def gains(self) -> tuple[Floats, Floats]:
        """Return the uncertainty of each item and the gain of one more label."""
        uncertainty = self._basis.uncertainty_of_errors(self.measure() / Z_95)
        return uncertainty, uncertainty / (self.n_labels + 1.0)

    def label(self, rows: Codes, annotators: Codes) -> None:
        """Count one more label."""
        self.n_labels[rows] += 1.0

    def measure(self) -> Floats:
        """Return half the width of every score's 95% interval."""
        half: Floats = Z_95 * self._error * np.sqrt(self._first / self.n_labels)
        return half


def _chosen_items(n_items: int, n_rows: int, rng: np.random.Generator) -> Codes:
    """Draw items without replacement; of fewer items, take each about as often."""
    if n_items >= n_rows:
        return np.sort(rng.choice(n_items, size=n_rows, replace=False))
    return np.sort(np.arange(n_rows) % n_items)


def _draw(weights: Floats, rng: np.random.Generator) -> Codes:
    """Draw one index per row by its weights."""
    reached = np.cumsum(weights, axis=1)
    threshold = rng.random((len(weights), 1)) * reached[:, -1:]
    index: Codes = np.minimum((reached <= threshold).sum(axis=1), weights.shape[1] - 1)
    return index
