"""The equations of subject bias and inconsistency over a session."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.kernels.shared import VARIANCE_ROUNDING, propose_variances
from annotruth.labels import Labels
from annotruth.models.em import Monitor
from annotruth.models.result import Fit
from annotruth.models.squarem import Squarem, newest, numbers, numbers_above
from annotruth.models.subject_bias.rounding import rounding_variance
from annotruth.models.warm_start import with_new_rows

# Updates of an item's ambiguity per step, without and with unproven scoring steps.
_ROUNDS, _UNPROVEN_ROUNDS = 2, 4
_MIN_SHARE = 0.01  # the least variance of a vote, as a share of the votes' variance at the start


class SubjectBiasParameters(NamedTuple):
    """Annotators' biases and squared inconsistencies, and squared ambiguities of groups.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.subject_bias.steps import SubjectBiasParameters
    >>> variance = np.array([0.5, 1.0])
    >>> SubjectBiasParameters(np.zeros(2), variance, np.empty(0), variance).b
    array([0., 0.])
    """

    b: Floats
    v2: Floats
    group_a2: Floats  # empty unless groups of items share an ambiguity
    proven_v2: Floats  # the update that is proven to raise the log-likelihood


class SubjectBiasSteps:
    """The model's equations over a session; scores and ambiguities of items stay in it.

    Parameters
    ----------
    labels, session
        The labels, and the session they are open in.
    per
        What has an ambiguity: each "item", each "group" of items, or all items together, "shared".
    group
        The group of each item, empty unless ``per`` is "group".
    unproven
        Whether to take scoring steps without testing them, which saves a pass. Only with
        acceleration, which rolls them back if the log-likelihood falls.

    Examples
    --------
    >>> from contextlib import closing
    >>> import numpy as np
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.subject_bias.steps import SubjectBiasSteps
    >>> votes = [("a", "ann", 4), ("a", "bob", 5), ("b", "ann", 1), ("b", "bob", 2)]
    >>> labels = at.Labels.of(votes)
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = SubjectBiasSteps(
    ...         labels, session, "shared", np.empty(0, dtype=np.int64), unproven=False
    ...     )
    ...     start = steps.start()
    >>> start.b.tolist()  # bob votes one step higher than ann
    [-0.5, 0.5]
    """

    objective_name = "the log-likelihood"

    def __init__(
        self, labels: Labels, session: Session, per: str, group: Codes, *, unproven: bool
    ) -> None:
        n_annotators = labels.n_annotators
        self._unproven = unproven and per != "group"
        self.per = per
        self.floor = 0.0
        self.noise = 0.0
        self._session = session
        self._values = labels.scale.values
        self._n_items = labels.n_items
        self._n_votes = labels.labels_per_annotator.astype(float)
        rounds = _UNPROVEN_ROUNDS if self._unproven else _ROUNDS
        self._rounds = rounds if per == "item" else 0
        self._share = 0.0 if per == "shared" else 0.5
        self._group = group
        self._n_groups = n_groups = int(group.max(initial=-1)) + 1
        self._has_gold = bool((labels.known >= 0).any())

        values, b, v2 = Input("values"), Input("b"), Input("v2")
        proposed = Input("proposed")
        self._start = Pass(
            "subject_bias.start",
            state=("psi", "a2"),
            inputs=(values, Input("share")),
            sums=(Sum("moments", (n_annotators, 2)),),
        )
        self._items = Pass(
            "subject_bias.step",
            state=("psi", "a2", "precision"),
            inputs=(values, b, v2, Input("rounds")),
            sums=(Sum("moments", (n_annotators, 5)), Sum("totals", (2,))),
        )
        self._try = Pass(
            "subject_bias.log_likelihood_by_annotator",
            state=("psi", "a2"),
            inputs=(values, b, proposed),
            sums=(Sum("log_likelihood", (2, n_annotators)),),
        )
        self._level = Pass(
            "subject_bias.shift_level",
            state=("psi", "a2"),
            inputs=(values, b, v2, Input("move")),
            sums=(Sum("totals", (2,)),),
        )
        self._set_groups = Pass(
            "subject_bias.set_ambiguity", state=("a2", "group"), inputs=(Input("group_a2"),)
        )
        self._step_groups = Pass(
            "subject_bias.moments_by_group",
            state=("psi", "a2", "group"),
            inputs=(values, b, v2),
            sums=(Sum("moments", (n_groups, 4)),),
        )
        self._try_groups = Pass(
            "subject_bias.log_likelihood_by_group",
            state=("psi", "group"),
            inputs=(values, b, v2, proposed),
            sums=(Sum("log_likelihood", (2, n_groups)),),
        )

    def start(self) -> SubjectBiasParameters:
        """Return the mean and the variance of each annotator's residuals from the mean votes.

        Half of the variance is assigned to the ambiguity, unless that is shared by all.
        """
        for name in ("psi", "a2", "precision"):
            self._session.allocate(name, per="items")
        if self._n_groups:
            self._session.put("group", self._group, per="items")
        sums = self._session.run_pass(self._start, values=self._values, share=self._share)
        moments = sums["moments"]
        b = moments[:, 0] / self._n_votes
        variance = np.maximum(moments[:, 1] / self._n_votes - b**2, 0.0)
        overall = inner(variance, self._n_votes) / self._n_votes.sum()
        self.floor = max(rounding_variance(self._values), _MIN_SHARE * overall)
        n_votes = self._n_votes.sum()
        freedom = n_votes - self._n_items - len(b) + 1
        self.noise = max(overall * n_votes / max(freedom, 1.0), self.floor)
        group_a2 = np.full(self._n_groups, self._share * overall)
        self._set_group_a2(group_a2)
        v2 = np.maximum((1.0 - self._share) * variance, self.floor)
        return SubjectBiasParameters(b, v2, group_a2, v2)

    def resume(self, previous: Fit) -> SubjectBiasParameters:
        """Return the biases and variances of a previous fit; scores continue from it, too.

        Ambiguities of groups start as in a first fit, because a fit does not store them.
        """
        start = self.start()
        assert previous.score is not None
        columns = previous.annotator_columns
        items: dict[str, Floats] = {"psi": previous.score}
        if self.per == "item" and "ambiguity" in previous.item_columns:
            items["a2"] = np.square(previous.item_columns["ambiguity"])
        for name, values in items.items():
            extended = with_new_rows(values, self._session.collect(name))
            self._session.put(name, extended, per="items")
        v2 = np.maximum(with_new_rows(columns["inconsistency"] ** 2, start.v2), self.floor)
        b = with_new_rows(columns["bias"], start.b)
        return SubjectBiasParameters(b, v2, start.group_a2, v2)

    def step(self, old: SubjectBiasParameters) -> tuple[SubjectBiasParameters, Monitor]:
        """Update the items, then the annotators, then the groups of items."""
        moments, (before, after_items) = self._pass_items(old, self._rounds)
        w, wr, w2, w2r, w2r2 = moments.T
        move = wr / w
        b = old.b + move
        # The sum of (w r)^2 after the move of the bias.
        w2r2 = np.maximum(w2r2 - 2.0 * move * w2r + move**2 * w2, 0.0)
        proposed = np.stack(propose_variances(old.v2, self._n_votes, w, w2, w2r2, self.floor))
        if self._unproven:  # the next pass computes the log-likelihood of the scoring step
            safe, scoring = proposed
            if self._has_gold:
                b, _ = self._move_level(b, safe)
            monitor = Monitor(float(before), float(after_items))
            return SubjectBiasParameters(b, scoring, old.group_a2, safe), monitor
        tried = self._session.run_pass(self._try, values=self._values, b=b, proposed=proposed)
        v2, after = _choose(proposed, tried["log_likelihood"])
        group_a2 = old.group_a2
        if self._n_groups:
            group_a2, after = self._update_groups(old.group_a2, b, v2)
            # Only the sums v2 + a2 are identified. The slack to the bounds is divided evenly, so that
            # neither variance is held at its bound while the other could still fall.
            slack = 0.5 * (group_a2.min() - (v2.min() - self.floor))
            v2 = np.maximum(v2 + slack, self.floor)
            group_a2 = np.maximum(group_a2 - slack, 0.0)
            self._set_group_a2(group_a2)
        if self._has_gold:
            b, gain = self._move_level(b, v2)
            after += gain
        return SubjectBiasParameters(b, v2, group_a2, v2), Monitor(float(before), after)

    def acceleration(self) -> Squarem[SubjectBiasParameters]:
        """Extrapolate the scores, biases and variances."""

        def proven(parameters: SubjectBiasParameters) -> SubjectBiasParameters:
            return parameters._replace(v2=parameters.proven_v2)

        return Squarem(
            SubjectBiasParameters,
            *(numbers, numbers_above(self.floor), numbers_above(0.0), newest),
            session=self._session,
            items={"psi": "numbers", "a2": "variances"},
            safeguarded=proven if self._unproven else None,
        )

    def _update_groups(self, old: Floats, b: Floats, v2: Floats) -> tuple[Floats, float]:
        inputs = {"values": self._values, "b": b, "v2": v2}
        moments = self._session.run_pass(self._step_groups, **inputs)["moments"]
        n, w, w2, w2r2 = moments.T
        proposed = np.stack(propose_variances(old, n, w, w2, w2r2, 0.0))
        tried = self._session.run_pass(self._try_groups, **inputs, proposed=proposed)
        return _choose(proposed, tried["log_likelihood"])

    def _move_level(self, b: Floats, v2: Floats) -> tuple[Floats, float]:
        """Fit the level of all biases to the known truths, which separate updates reach slowly."""
        inputs = {"values": self._values, "v2": v2}
        wr, w = self._session.run_pass(self._level, **inputs, b=b, move=0.0)["totals"]
        move = float(wr / w)
        self._session.run_pass(self._level, **inputs, b=b + move, move=move)
        return b + move, 0.5 * float(wr) * move

    def _set_group_a2(self, group_a2: Floats) -> None:
        if self._n_groups:
            self._session.run_pass(self._set_groups, group_a2=group_a2)

    def _pass_items(self, parameters: SubjectBiasParameters, rounds: int) -> tuple[Floats, Floats]:
        sums = self._session.run_pass(
            self._items, values=self._values, b=parameters.b, v2=parameters.v2, rounds=rounds
        )
        return sums["moments"], sums["totals"]

    def finalize(self, parameters: SubjectBiasParameters) -> float:
        """Compute the scores of the final parameters; return their log-likelihood."""
        self._pass_items(parameters, 0)
        _, (log_likelihood, _) = self._pass_items(parameters, 0)
        return float(log_likelihood)


def _choose(proposed: Floats, log_likelihood: Floats) -> tuple[Floats, float]:
    """Return the scoring step of each variance, or the EM step where that is more likely."""
    safe, scoring = log_likelihood
    accepted = scoring >= safe - VARIANCE_ROUNDING * (1.0 + np.abs(safe))
    log_likelihood = np.where(accepted, scoring, safe)
    return np.where(accepted, proposed[1], proposed[0]), float(log_likelihood.sum())
