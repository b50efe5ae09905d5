"""Subject bias and inconsistency with content ambiguity: a model of opinion scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.kernels.shared import VARIANCE_ROUNDING, propose_variances
from annotruth.models.base import IterativeEstimator
from annotruth.models.distribution import Z_95
from annotruth.models.em import Monitor, ProgressCallback, one_blas_thread
from annotruth.models.registry import Capabilities
from annotruth.models.result import Fit
from annotruth.models.scales.subject_bias_posterior import (
    rounded_gaussians,
    rounding_variance,
    vote_posterior,
)
from annotruth.models.squarem import Squarem, numbers, numbers_above
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.truth import match_groups
from annotruth.observations.validate import check_ordinal

if TYPE_CHECKING:
    import pandas as pd


_ROUNDS = 2  # updates of an item's ambiguity per step
_MIN_SHARE = 0.01  # the least variance of a vote, as a share of the votes' variance at the start


class SubjectBiasParameters(NamedTuple):
    """Annotators' biases and squared inconsistencies, and squared ambiguities of groups."""

    b: Floats
    v2: Floats
    group_a2: Floats  # empty unless groups of items share an ambiguity


class SubjectBiasSteps:
    """The model's equations over a session; scores and ambiguities of items stay in it.

    ``per`` says what has an ambiguity: each "item", each "group" of items, or all together, "shared".
    """

    objective_name = "the log-likelihood"

    def __init__(self, labels: Labels, session: Session, per: str, group: Codes) -> None:
        n_annotators = labels.n_annotators
        self.per = per
        self.floor = 0.0
        self.noise = 0.0
        self.labels, self.session = labels, session
        self._values = labels.scale.values
        self._n_items = labels.n_items
        self._n_votes = labels.labels_per_annotator.astype(float)
        self._rounds = _ROUNDS if per == "item" else 0
        self._share = 0.0 if per == "shared" else 0.5
        self._group = group
        self._n_groups = n_groups = int(group.max(initial=-1)) + 1
        self._has_gold = bool((labels.known >= 0).any())

        def one(kernel: str, state: str, inputs: str, *sums: Sum) -> Pass:
            named = tuple(map(Input, inputs.split()))
            return Pass(f"subject_bias.{kernel}", tuple(state.split()), named, sums)

        totals = Sum("totals", (2,))
        self._start = one("start", "psi a2", "values share", Sum("moments", (n_annotators, 2)))
        moments = Sum("moments", (n_annotators, 5))
        self._items = one("step", "psi a2 precision", "values b v2 rounds", moments, totals)
        by_annotator = Sum("log_likelihood", (2, n_annotators))
        self._try = one("log_likelihood_by_annotator", "psi a2", "values b proposed", by_annotator)
        self._level = one("shift_level", "psi a2", "values b v2 move", totals)
        self._set_groups = one("set_ambiguity", "a2 group", "group_a2")
        moments = Sum("moments", (n_groups, 4))
        self._step_groups = one("moments_by_group", "psi a2 group", "values b v2", moments)
        by_group = Sum("log_likelihood", (2, n_groups))
        self._try_groups = one(
            "log_likelihood_by_group", "psi group", "values b v2 proposed", by_group
        )

    def start(self) -> SubjectBiasParameters:
        """Return the mean and the variance of each annotator's residuals from the mean votes.

        Half of the variance is assigned to the ambiguity, unless that is shared by all.
        """
        for name in ("psi", "a2", "precision"):
            self.session.allocate(name, per="items")
        if self._n_groups:
            self.session.put("group", self._group, per="items")
        sums = self.session.run_pass(self._start, values=self._values, share=self._share)
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
        return SubjectBiasParameters(b, v2, group_a2)

    def step(self, old: SubjectBiasParameters) -> tuple[SubjectBiasParameters, Monitor]:
        """Update the items, then the annotators, then the groups of items."""
        moments, (before, _) = self._pass_items(old, self._rounds)
        w, wr, w2, w2r, w2r2 = moments.T
        move = wr / w
        b = old.b + move
        # The sum of (w r)^2 after the move of the bias.
        w2r2 = np.maximum(w2r2 - 2.0 * move * w2r + move**2 * w2, 0.0)
        proposed = np.stack(propose_variances(old.v2, self._n_votes, w, w2, w2r2, self.floor))
        tried = self.session.run_pass(self._try, values=self._values, b=b, proposed=proposed)
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
        return SubjectBiasParameters(b, v2, group_a2), Monitor(float(before), after)

    def acceleration(self) -> Squarem[SubjectBiasParameters]:
        """Extrapolate the scores, biases and variances."""
        return Squarem(
            SubjectBiasParameters,
            *(numbers, numbers_above(self.floor), numbers_above(0.0)),
            session=self.session,
            items={"psi": "numbers", "a2": "variances"},
        )

    def _update_groups(self, old: Floats, b: Floats, v2: Floats) -> tuple[Floats, float]:
        inputs = {"values": self._values, "b": b, "v2": v2}
        moments = self.session.run_pass(self._step_groups, **inputs)["moments"]
        n, w, w2, w2r2 = moments.T
        proposed = np.stack(propose_variances(old, n, w, w2, w2r2, 0.0))
        tried = self.session.run_pass(self._try_groups, **inputs, proposed=proposed)
        return _choose(proposed, tried["log_likelihood"])

    def _move_level(self, b: Floats, v2: Floats) -> tuple[Floats, float]:
        """Fit the level of all biases to the known truths, which separate updates reach slowly."""
        inputs = {"values": self._values, "v2": v2}
        wr, w = self.session.run_pass(self._level, **inputs, b=b, move=0.0)["totals"]
        move = float(wr / w)
        self.session.run_pass(self._level, **inputs, b=b + move, move=move)
        return b + move, 0.5 * float(wr) * move

    def _set_group_a2(self, group_a2: Floats) -> None:
        if self._n_groups:
            self.session.run_pass(self._set_groups, group_a2=group_a2)

    def _pass_items(self, parameters: SubjectBiasParameters, rounds: int) -> tuple[Floats, Floats]:
        sums = self.session.run_pass(
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


@dataclass(kw_only=True)
class SubjectBias(IterativeEstimator[SubjectBiasSteps]):
    r"""Subject bias, subject inconsistency and content ambiguity.

    Li and Bampis, "Recover Subjective Quality Scores from Noisy Measurements" (2017). The vote of
    annotator s on item e is a number: the item's score, the annotator's bias, and noise from the
    annotator's inconsistency and from the ambiguity of the item's content c:

    .. math:: x_{e,s} \sim N(\psi_e + b_s,\; v_s^2 + a_c^2).

    The estimates maximise the likelihood. With residuals :math:`r = x - \psi_e - b_s` and weights
    :math:`w = 1 / (v_s^2 + a_c^2)`, each step updates in turn

    .. math::
        \psi_e = \frac{\sum_s w (x - b_s)}{\sum_s w}, \quad
        a_c^2 \leftarrow a_c^2 + \frac{\sum (w^2 r^2 - w)}{\sum w^2}, \quad
        b_s = \frac{\sum_e w (x - \psi_e)}{\sum_e w}, \quad
        v_s^2 \leftarrow v_s^2 + \frac{\sum_e (w^2 r^2 - w)}{\sum_e w^2}:

    score and bias are optimal given the rest, and variances take Fisher scoring steps. Where an EM
    (or MM) step leads to a higher likelihood than scoring, that is taken instead, so that the
    log-likelihood rises at every step. (The paper takes a tenth of a Newton step on each quantity,
    which may lower the likelihood, and cannot leave a standard deviation of 0.) The start: the
    mean votes, and each annotator's mean and variance of the residuals, half of the variance
    assigned to the ambiguity. The loop stops when the log-likelihood changes by less than ``tol``.

    The likelihood is unbounded as a variance approaches 0. So every vote's standard deviation is at
    least that of rounding to the scale, and a tenth of that of all votes at the start; annotators
    whose inconsistency is at this floor are marked ``at_floor``. The biases have mean 0, unless known
    truths fix the level, and the least ambiguous content has ambiguity 0.

    An item's score is :math:`\psi_e`, which may lie beyond the ends of the scale; a known truth is
    its item's score. There is no distribution and no reliability.

    ``score_low`` and ``score_high`` are the central 95% of a posterior in which scores and biases are
    integrated out, and inconsistencies and ambiguities have a few levels with estimated priors: at the
    maximum of the likelihood variances are too small. They extend to the estimate where that lies
    outside, and refer to scores at which the biases
    of these annotators have mean 0: the mean vote of this panel. Near the ends of a scale that is
    nearer to the middle than the score of a vote without limits would be. ``bias_std`` and
    ``inconsistency_std`` are roots of the expected squared errors of the estimates in this posterior.
    `predict_proba` rounds the model's Gaussian to the scale; its variance includes that of the score.

    **Limitations.** In simulated panels of 5 to 40 annotators and 10 to 200 items, complete or with 3 to
    6 votes per item, 92 to 97% of the scores were in their intervals; with fewer than 4 votes per
    annotator 89 to 93%.

    Parameters
    ----------
    ambiguity
        What has an ambiguity: each "item"; all items together, "shared"; or groups of items, such
        as the versions of one source video, given as a mapping or a pandas Series from item to
        group, such as ``df.set_index("item")["content"]``. Every item must have one group.
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`.

    Examples
    --------
    >>> import annotruth as at
    >>> votes = [(item, "ann", item) for item in (1, 2, 3, 4)]
    >>> votes += [(item, "bob", item + 1) for item in (1, 2, 3, 4)]
    >>> fit = at.SubjectBias().fit(votes).result_
    >>> fit.annotator_table()["bias"].to_pylist()  # bob votes one step higher
    [-0.5, 0.5]
    >>> fit.score.round(6).tolist()
    [1.5, 2.5, 3.5, 4.5]
    """

    name: ClassVar[str] = "subject-bias"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True, gives_labels=False)
    parameter_axes: ClassVar[Mapping[str, str] | None] = {}

    ambiguity: str | Mapping[Any, Any] | pd.Series[Any] = "item"

    def _check(self, labels: LabelSummary) -> None:
        check_ordinal(labels.scale, self.name)

    def _steps(self, labels: Labels, session: Session) -> SubjectBiasSteps:
        per, group = self._per(labels)
        return SubjectBiasSteps(labels, session, per, group)

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        fit = super()._fit(labels, progress)
        if n := np.count_nonzero(fit.annotator_columns["at_floor"]):
            floor = np.min(fit.annotator_columns["inconsistency"])
            note = (
                f"the inconsistency of {n:,} of {labels.n_annotators:,} annotators is at its floor "
                f"of {floor:.3g}"
            )
            history = replace(fit.history, stop_reason=f"{fit.stop_reason}; {note}")
            fit = replace(fit, history=history)
        return fit

    def _estimates(
        self, steps: SubjectBiasSteps, parameters: SubjectBiasParameters
    ) -> dict[str, Any]:
        labels, session = steps.labels, steps.session
        psi, a2 = (session.collect(name) for name in ("psi", "a2"))
        level = 0.0 if (labels.known >= 0).any() else parameters.b.mean()
        v2 = parameters.v2 + a2.min()
        score, bias = psi + level, parameters.b - level
        in_groups = steps.per == "group"
        with one_blas_thread():
            posterior = vote_posterior(
                labels,
                session,
                bias,
                a2 - a2.min() if in_groups else np.zeros(len(a2)),
                steps.noise,
                floor=steps.floor,
                ambiguous=steps.per == "item",
            )
        low, high = (posterior.score + sign * posterior.half_width for sign in (-1.0, 1.0))
        items = {"score_low": np.minimum(low, score), "score_high": np.maximum(high, score)}
        if steps.per != "shared":
            items["ambiguity"] = np.sqrt(a2 - a2.min())
        annotators = {
            "bias": bias,
            "bias_std": posterior.bias_error(bias),
            "inconsistency": np.sqrt(v2),
            "inconsistency_std": posterior.inconsistency_error(np.sqrt(v2)),
            "at_floor": v2 <= steps.floor * (1.0 + 1e-9),
        }
        return {
            "score": score,
            "item_columns": items,
            "annotator_columns": annotators,
            "readout": "opinion",
        }

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit = self.result_
        assert fit.score is not None
        items, annotators = fit.item_columns, fit.annotator_columns
        score_std = (items["score_high"] - items["score_low"]) / (2.0 * Z_95)
        ambiguity = items.get("ambiguity", np.zeros(fit.data.n_items))
        variance = annotators["inconsistency"][annotator] ** 2 + (score_std**2 + ambiguity**2)[item]
        mean = fit.score[item] + annotators["bias"][annotator]
        return rounded_gaussians(fit.data.scale.values, mean, np.sqrt(variance))

    def _per(self, labels: Labels) -> tuple[str, Codes]:
        """Return what has an ambiguity, and the group of each item if that is groups."""
        if not isinstance(self.ambiguity, str):
            return "group", match_groups(self.ambiguity, labels.items, role="ambiguity")
        if self.ambiguity not in ("item", "shared"):
            raise InputError(
                f"unknown ambiguity {self.ambiguity!r}: choose 'item' or 'shared', or pass a "
                "mapping or a pandas Series from item to group"
            )
        return self.ambiguity, np.empty(0, dtype=np.int64)
