"""RobustGPM with a classifier's probabilities, where every item has one right label."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from annotruth.engines import Engine
from annotruth.labels import Labels
from annotruth.models.base_fit import BaseFit
from annotruth.models.classifier import Calibration, choose_calibration, not_used
from annotruth.models.em import History
from annotruth.models.robust_gpm.class_results import ClassState, final_state, state_posterior
from annotruth.models.robust_gpm.class_steps import ClassParameters, ClassSteps

_N_ROUNDS = 2  # with the classifier annotators are known better, and then the classifier is


# How much of annotators' confusion matrices is uniform at the start of a round. With one label per item
# annotators seem never to be wrong without the classifier, which EM would leave slowly.
_UNIFORM = 0.3


@dataclass(frozen=True)
class ClassifierFit:
    """Fits labels together with a classifier's probabilities.

    Attributes
    ----------
    labels, engine
        The labels, and where passes over them run.
    run
        Runs EM with given steps from given parameters.
    make
        Returns the fit of a final state.

    Examples
    --------
    >>> import annotruth as at
    >>> import pyarrow as pa
    >>> labels = [(item, who, "ab"[item % 2]) for item in range(40) for who in range(2)]
    >>> p = [0.1 + 0.8 * (item % 2) for item in range(40)]
    >>> classifier = pa.table({"item": range(40), "p_a": [1 - b for b in p], "p_b": p})
    >>> fit = at.fit(labels, classifier=classifier)
    >>> fit.parameters["classifier_likelihood"].shape
    (2, 2)
    """

    labels: Labels
    engine: Engine
    run: Callable[[ClassSteps, ClassParameters], tuple[ClassParameters, History]]
    make: Callable[[ClassSteps, ClassState, History], BaseFit]

    def continue_from(
        self, steps: ClassSteps, state: ClassState, history: History, n_rounds: int = _N_ROUNDS
    ) -> BaseFit:
        """Return the fit with the classifier, given where EM ended without it, or in the last round.

        In each round the classifier is calibrated on the last state, and EM continues with it.
        """
        if n_rounds == 0:
            return self.make(steps, state, history)
        calibration = self._calibrate(steps, state)
        if state.calibration is None and not calibration.is_used:
            return self.make(steps, replace(state, calibration=calibration), history)
        candidate = state.choice.candidate
        known = replace(state, calibration=calibration).known_items(self.labels)
        with closing(self.engine.open(known.labels)) as session:
            again = ClassSteps(
                candidate.items(self.labels, known.table), session, candidate.concentration
            )
            parameters, history = self.run(again, self._softened(state.parameters))
            verdict = "informative" if state.verdict == "chance" else state.verdict
            after = final_state(again, parameters, state.choice, verdict)
            after = replace(after, calibration=calibration)
            return self.continue_from(again, after, history, n_rounds - 1)

    def _softened(self, parameters: ClassParameters) -> ClassParameters:
        """Return the parameters with annotators who are less certain."""
        confusion = (1.0 - _UNIFORM) * parameters.confusion + _UNIFORM / self.labels.n_categories
        return parameters._replace(confusion=confusion)

    def _calibrate(self, steps: ClassSteps, state: ClassState) -> Calibration:
        """Return the calibration of the classifier on what labels alone say about items."""
        labels, n = self.labels, self.labels.n_categories
        assert labels.classifier is not None
        posterior = state_posterior(steps.session, state, steps.items.known_truth)
        evidence = posterior.reshape(labels.n_items, n, -1).sum(axis=2)
        prior = state.parameters.state_prior.reshape(n, -1).sum(axis=1)
        before = state.calibration or not_used(n)
        evidence /= prior * before.of_items(labels.classifier)
        return choose_calibration(labels.classifier, evidence, prior)
