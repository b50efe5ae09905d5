r"""Subject bias and inconsistency with content ambiguity: Netflix's model of opinion scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.kernels.subject_bias import ROUNDING, propose_variances
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.covariates import match_groups
from annotruth.labels.validate import check_ordinal
from annotruth.models.base import Capabilities, IterativeEstimator
from annotruth.models.em import History, Monitor
from annotruth.models.intervals import Z_95
from annotruth.models.result import Fit
from annotruth.models.rounding import rounded_gaussians, rounding_variance
from annotruth.models.squarem import Squarem, newest, numbers, numbers_above
from annotruth.models.warm_start import with_new_rows

if TYPE_CHECKING:
    import pandas as pd


# Updates of an item's ambiguity per step, without and with unproven scoring steps.
_ROUNDS, _UNPROVEN_ROUNDS = 2, 4
_LEAST_SHARE = 0.01  # of the votes' variance at the start: the least variance of a vote


class SubjectBiasParameters(NamedTuple):
    """Biases, squared inconsistencies, and squared ambiguities of groups."""

    b: Floats
    v2: Floats
    of_group: Floats  # empty unless ambiguity belongs to groups of items
    proven_v2: Floats  # the update that is proven to raise the log-likelihood


@dataclass(kw_only=True)
class SubjectBias(IterativeEstimator["SubjectBiasSteps"]):
    r"""Recover Subjective Quality Scores from Noisy Measurements (Li and Bampis, 2017).

    The vote of annotator s on item e is a number: the item's score, the annotator's bias, and
    noise from the annotator's inconsistency and from the ambiguity of the item's content c:

    .. math:: x_{e,s} \sim N(\psi_e + b_s,\; v_s^2 + a_c^2).

    Maximum likelihood. With residuals :math:`r = x - \psi_e - b_s` and weights
    :math:`w = 1 / (v_s^2 + a_c^2)`, each step takes in turn

    .. math::
        \psi_e = \frac{\sum_s w (x - b_s)}{\sum_s w}, \quad
        a_c^2 \leftarrow a_c^2 + \frac{\sum (w^2 r^2 - w)}{\sum w^2}, \quad
        b_s = \frac{\sum_e w (x - \psi_e)}{\sum_e w}, \quad
        v_s^2 \leftarrow v_s^2 + \frac{\sum_e (w^2 r^2 - w)}{\sum_e w^2},

    the best score and bias given the rest, and Fisher scoring for each variance. A variance that
    scoring would leave less likely than a step of EM takes the EM (or MM) step, so that the
    log-likelihood rises at every step. (The paper refreshes each quantity with a tenth of a
    Newton step; that may lower the likelihood, and sticks where a deviation reaches 0.) It
    starts at the mean votes and each annotator's mean and variance of the residuals, with half
    of the variance given to the ambiguity, and stops when the log-likelihood changes by less
    than ``tol``.

    What the paper leaves open:

    - The likelihood grows without bound as a variance vanishes. So every vote's deviation is at
      least what rounding to the scale leaves, :math:`h / \sqrt{12}` for categories h apart
      (where they are closest), and at least a tenth of the deviation of all votes at the start,
      which counts on fine scales. Annotators whose inconsistency is held there are marked
      ``at_floor``, and the stop reason counts them. With few votes an item that is common: an
      item's score then follows the vote of one such annotator.
    - Only differences of biases count: their mean is 0, unless known truths fix the level.
    - Only sums :math:`v_s^2 + a_c^2` count: the least ambiguous content has ambiguity 0, and the
      noise that all votes share is inconsistency. A single ambiguity shared by all items is
      therefore not told apart, and is absent.

    An item's score is :math:`\psi_e`, which may lie beyond the ends of the scale; a known truth
    is its item's score. ``score_low`` and ``score_high`` are its 95% interval from the Fisher
    information :math:`\sum_s w`, as are the standard deviations of bias and inconsistency, each
    with all else taken as it is. There is no distribution and no reliability. `predict_proba` predicts
    a vote by the model's Gaussian rounded to the scale, its variance enlarged by that of the score
    (its Fisher information's inverse).

    Parameters
    ----------
    ambiguity
        What has an ambiguity of its own: every "item"; nothing, for one "shared" by all; or
        groups of items, such as the versions of one source video, as a mapping or a pandas
        Series from item to group. With a column of groups beside the labels, give
        ``df.set_index("item")["content"]``. Every item must have one group.
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to leap ahead along EM's steps (`annotruth.models.squarem`) for fewer passes
        over the labels. Scoring then is not tried first, which takes a second pass, but taken
        back should the log-likelihood fall; except where ambiguity belongs to groups.
    engine
        Where the passes over the labels run.
    """

    name: ClassVar[str] = "subject-bias"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True)

    ambiguity: str | Mapping[Any, Any] | pd.Series[Any] = "item"

    def _check(self, labels: LabelSummary) -> None:
        check_ordinal(labels.scale, self.name)

    def _steps(self, labels: Labels, session: Session) -> SubjectBiasSteps:
        per, group = self._per(labels)
        return SubjectBiasSteps(labels, session, per, group, unproven=self.acceleration)

    def _make_fit(
        self,
        labels: Labels,
        session: Session,
        steps: SubjectBiasSteps,
        parameters: SubjectBiasParameters,
        history: History,
    ) -> Fit:
        psi, a2, precision = (session.collect(name) for name in ("psi", "a2", "precision"))
        known = labels.known >= 0
        level = 0.0 if known.any() else parameters.b.mean()
        v2 = parameters.v2 + a2.min()
        at_floor = v2 <= steps.floor * (1.0 + 1e-9)
        if at_floor.any():
            held = (
                f"the inconsistency of {at_floor.sum():,} of {labels.n_annotators:,} annotators "
                f"is held at its floor of {np.sqrt(steps.floor):.3g}"
            )
            history = replace(history, stop_reason=f"{history.stop_reason}; {held}")
        score = psi + level
        half_width = np.where(known, 0.0, Z_95 / np.sqrt(precision))
        items = {"score_low": score - half_width, "score_high": score + half_width}
        if steps.per != "shared":
            items["ambiguity"] = np.sqrt(a2 - a2.min())
        annotators: dict[str, Any] = {
            "bias": parameters.b - level,
            "bias_std": 1.0 / np.sqrt(steps.moments[:, 0]),
            "inconsistency": np.sqrt(v2),
            "inconsistency_std": 1.0 / np.sqrt(2.0 * v2 * steps.moments[:, 2]),
            "at_floor": at_floor,
        }
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=history,
            score=score,
            item_columns=items,
            annotator_columns=annotators,
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit = self.result_
        assert fit.score is not None
        of_item, of_annotator = fit.item_columns, fit.annotator_columns
        of_score = (of_item["score_high"] - of_item["score_low"]) / (2.0 * Z_95)
        ambiguity = of_item.get("ambiguity", np.zeros(fit.data.n_items))
        variance = (
            of_annotator["inconsistency"][annotator] ** 2 + (of_score**2 + ambiguity**2)[item]
        )
        mean = fit.score[item] + of_annotator["bias"][annotator]
        return rounded_gaussians(fit.data.scale.values, mean, np.sqrt(variance))

    def _per(self, labels: Labels) -> tuple[str, Codes]:
        """Return what has an ambiguity, and the group of each item if groups have."""
        if not isinstance(self.ambiguity, str):
            return "group", match_groups(self.ambiguity, labels.items, role="ambiguity")
        if self.ambiguity not in ("item", "shared"):
            raise InputError(
                f"unknown ambiguity {self.ambiguity!r}: choose item or shared, or give a mapping "
                "or a pandas Series from item to group"
            )
        return self.ambiguity, np.empty(0, dtype=np.int64)


class SubjectBiasSteps:
    """The model's equations over a session; scores and ambiguities of items stay in it."""

    objective_name = "log-likelihood"

    def __init__(
        self, labels: Labels, session: Session, per: str, group: Codes, *, unproven: bool
    ) -> None:
        n_annotators = labels.n_annotators
        self._unproven = unproven and per != "group"
        self.per = per
        self.floor = 0.0
        self.moments = np.zeros((n_annotators, 5))
        self._session = session
        self._values = labels.scale.values
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
            "subject_bias_groups.set_ambiguity", state=("a2", "group"), inputs=(Input("of_group"),)
        )
        self._step_groups = Pass(
            "subject_bias_groups.moments_by_group",
            state=("psi", "a2", "group"),
            inputs=(values, b, v2),
            sums=(Sum("moments", (n_groups, 4)),),
        )
        self._try_groups = Pass(
            "subject_bias_groups.log_likelihood_by_group",
            state=("psi", "group"),
            inputs=(values, b, v2, proposed),
            sums=(Sum("log_likelihood", (2, n_groups)),),
        )

    def start(self) -> SubjectBiasParameters:
        """Return the start: mean votes, the residuals' means and variances, half of it ambiguity."""
        for name in ("psi", "a2", "precision"):
            self._session.allocate(name, per="items")
        if self._n_groups:
            self._session.put("group", self._group, per="items")
        sums = self._session.run_pass(self._start, values=self._values, share=self._share)
        moments = sums["moments"]
        b = moments[:, 0] / self._n_votes
        variance = np.maximum(moments[:, 1] / self._n_votes - b**2, 0.0)
        overall = inner(variance, self._n_votes) / self._n_votes.sum()
        self.floor = max(rounding_variance(self._values), _LEAST_SHARE * overall)
        of_group = np.full(self._n_groups, self._share * overall)
        self._spread(of_group)
        v2 = np.maximum((1.0 - self._share) * variance, self.floor)
        return SubjectBiasParameters(b, v2, of_group, v2)

    def resume(self, previous: Fit) -> SubjectBiasParameters:
        """Return the start with the scores, biases and variances of a previous fit.

        Ambiguities of groups start as in a first fit: a fit does not hold them by group.
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
        return SubjectBiasParameters(b, v2, start.of_group, v2)

    def step(self, old: SubjectBiasParameters) -> tuple[SubjectBiasParameters, Monitor]:
        """Improve the items, then the annotators, then the groups of items."""
        moments, (before, after_items) = self._pass_items(old, self._rounds)
        w, wr, w2, w2r, w2r2 = moments.T
        move = wr / w
        b = old.b + move
        # The sum of (w r)^2 after the move of the bias.
        w2r2 = np.maximum(w2r2 - 2.0 * move * w2r + move**2 * w2, 0.0)
        proposed = np.stack(propose_variances(old.v2, self._n_votes, w, w2, w2r2, self.floor))
        if self._unproven:  # the next pass shows whether scoring raised the log-likelihood
            safe, scoring = proposed
            if self._has_gold:
                b, _ = self._move_level(b, safe)
            monitor = Monitor(float(before), float(after_items))
            return SubjectBiasParameters(b, scoring, old.of_group, safe), monitor
        tried = self._session.run_pass(self._try, values=self._values, b=b, proposed=proposed)
        v2, after = _better(proposed, tried["log_likelihood"])
        of_group = old.of_group
        if self._n_groups:
            of_group, after = self._improve_groups(old.of_group, b, v2)
            # Only the sums are identified: divide what both have to spare, so that neither part
            # reaches its bound, where it would wait for the other to make room.
            spare = 0.5 * (of_group.min() - (v2.min() - self.floor))
            v2 = np.maximum(v2 + spare, self.floor)
            of_group = np.maximum(of_group - spare, 0.0)
            self._spread(of_group)
        if self._has_gold:
            b, gain = self._move_level(b, v2)
            after += gain
        return SubjectBiasParameters(b, v2, of_group, v2), Monitor(float(before), after)

    def acceleration(self) -> Squarem[SubjectBiasParameters]:
        """Extrapolate scores, biases and variances; an ambiguity as that of its group."""

        def proven(parameters: SubjectBiasParameters) -> SubjectBiasParameters:
            return parameters._replace(v2=parameters.proven_v2)

        return Squarem(
            SubjectBiasParameters,
            *(numbers, numbers_above(self.floor), numbers_above(0.0), newest),
            session=self._session,
            items={"psi": "numbers", "a2": "variances"},
            safeguarded=proven if self._unproven else None,
        )

    def _improve_groups(self, old: Floats, b: Floats, v2: Floats) -> tuple[Floats, float]:
        inputs = {"values": self._values, "b": b, "v2": v2}
        moments = self._session.run_pass(self._step_groups, **inputs)["moments"]
        n, w, w2, w2r2 = moments.T
        proposed = np.stack(propose_variances(old, n, w, w2, w2r2, 0.0))
        tried = self._session.run_pass(self._try_groups, **inputs, proposed=proposed)
        return _better(proposed, tried["log_likelihood"])

    def _move_level(self, b: Floats, v2: Floats) -> tuple[Floats, float]:
        """Fit the common level to the known truths; single biases alone would approach it slowly."""
        inputs = {"values": self._values, "v2": v2}
        wr, w = self._session.run_pass(self._level, **inputs, b=b, move=0.0)["totals"]
        move = float(wr / w)
        self._session.run_pass(self._level, **inputs, b=b + move, move=move)
        return b + move, 0.5 * float(wr) * move

    def _spread(self, of_group: Floats) -> None:
        if self._n_groups:
            self._session.run_pass(self._set_groups, of_group=of_group)

    def _pass_items(self, parameters: SubjectBiasParameters, rounds: int) -> tuple[Floats, Floats]:
        sums = self._session.run_pass(
            self._items, values=self._values, b=parameters.b, v2=parameters.v2, rounds=rounds
        )
        return sums["moments"], sums["totals"]

    def finalize(self, parameters: SubjectBiasParameters) -> float:
        """Update the scores to the final parameters; return the log-likelihood there."""
        self._pass_items(parameters, 0)
        self.moments, (log_likelihood, _) = self._pass_items(parameters, 0)
        return float(log_likelihood)


def _better(proposed: Floats, log_likelihood: Floats) -> tuple[Floats, float]:
    """Return the second proposal, scoring, unless the first, the safe one, is more likely."""
    safe, scoring = log_likelihood
    good = scoring >= safe - ROUNDING * (1.0 + np.abs(safe))
    return np.where(good, proposed[1], proposed[0]), float(np.where(good, scoring, safe).sum())
