r"""Subject bias and inconsistency with content ambiguity: Netflix's model of opinion scores."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from annotruth.engines import Engine, Pass, Session, get_engine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.kernels.subject_bias import ROUNDING, proposals
from annotruth.labels import Labels
from annotruth.labels.groups import match_groups
from annotruth.labels.validate import check_ordinal
from annotruth.models.base import Estimator
from annotruth.models.em import Monitor, ProgressCallback, run_em
from annotruth.models.intervals import Z_95
from annotruth.models.result import Fit
from annotruth.models.rounding import rounded_gaussians, rounding_variance
from annotruth.models.squarem import Squarem, newest, numbers, numbers_above

if TYPE_CHECKING:
    import pandas as pd


# Improvements of an item's ambiguity in a step; more save no steps worth having.
_ROUNDS, _BOLD_ROUNDS = 2, 4
_LEAST_SHARE = 0.01  # of the votes' variance at the start: the least variance of a vote


class Parameters(NamedTuple):
    """What votes share: biases, squared inconsistencies, and squared ambiguities of groups."""

    b: Floats
    v2: Floats
    of_group: Floats  # empty unless ambiguity belongs to groups of items
    proven_v2: Floats  # where the log-likelihood is sure to be higher than before the last step


@dataclass(kw_only=True)
class SubjectBias(Estimator):
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
    needs_order: ClassVar[bool] = True

    ambiguity: str | Mapping[Any, Any] | pd.Series[Any] = "item"
    tol: float = 1e-4
    max_iter: int = 1000
    acceleration: bool = True
    engine: str | Engine = "memory"

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        check_ordinal(labels.scale, self.name)
        per, group = self._per(labels)
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = _Steps(labels, session, per, group, bold=self.acceleration)
            start = steps.start()
            parameters, history = run_em(
                steps.step,
                start,
                log_likelihood=steps.read_out,
                tol=self.tol,
                max_iter=self.max_iter,
                watched="log-likelihood",
                progress=progress,
                acceleration=steps.acceleration() if self.acceleration else None,
            )
            psi, a2, precision = (session.gather(name) for name in ("psi", "a2", "precision"))
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
        half = np.where(known, 0.0, Z_95 / np.sqrt(precision))
        items = {"score_low": score - half, "score_high": score + half}
        if per != "shared":
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
        """Say what has an ambiguity, and the group of each item if groups have."""
        if not isinstance(self.ambiguity, str):
            return "group", match_groups(self.ambiguity, labels, role="ambiguity")
        if self.ambiguity not in ("item", "shared"):
            raise InputError(
                f"unknown ambiguity {self.ambiguity!r}: choose item or shared, or give a mapping "
                "or a pandas Series from item to group"
            )
        return self.ambiguity, np.empty(0, dtype=np.int64)


class _Steps:
    """The model's equations over a session; scores and ambiguities of items stay in it."""

    def __init__(
        self, labels: Labels, session: Session, per: str, group: Codes, *, bold: bool
    ) -> None:
        people = labels.n_annotators
        self._bold = bold and per != "group"
        self.floor = 0.0
        self.moments = np.zeros((people, 5))
        self._session = session
        self._values = labels.scale.values
        self._n_votes = labels.labels_per_annotator.astype(float)
        rounds = _BOLD_ROUNDS if self._bold else _ROUNDS
        self._rounds = rounds if per == "item" else 0
        self._share = 0.0 if per == "shared" else 0.5
        self._group = group
        self._n_groups = n_groups = int(group.max(initial=-1)) + 1

        self._has_gold = bool((labels.known >= 0).any())

        family, groups = "subject_bias", "subject_bias_groups"
        self._start = Pass(f"{family}.start", ("psi", "a2"), ((people, 2),))
        self._items = Pass(f"{family}.step", ("psi", "a2", "precision"), ((people, 5), (2,)))
        self._try = Pass(f"{family}.try_annotators", ("psi", "a2"), ((2, people),))
        self._level = Pass(f"{family}.shift_level", ("psi", "a2"), ((2,),))
        self._set_groups = Pass(f"{groups}.set_groups", ("a2", "group"))
        self._step_groups = Pass(f"{groups}.step_groups", ("psi", "a2", "group"), ((n_groups, 4),))
        self._try_groups = Pass(f"{groups}.try_groups", ("psi", "group"), ((2, n_groups),))

    def start(self) -> Parameters:
        """Begin at mean votes, the residuals' means and variances, half of it ambiguity."""
        for name in ("psi", "a2", "precision"):
            self._session.allocate(name, per="items")
        if self._n_groups:
            self._session.put("group", self._group, per="items")
        (moments,) = self._session.run_pass(self._start, self._values, self._share)
        b = moments[:, 0] / self._n_votes
        variance = np.maximum(moments[:, 1] / self._n_votes - b**2, 0.0)
        overall = inner(variance, self._n_votes) / self._n_votes.sum()
        self.floor = max(rounding_variance(self._values), _LEAST_SHARE * overall)
        of_group = np.full(self._n_groups, self._share * overall)
        self._spread(of_group)
        v2 = np.maximum((1.0 - self._share) * variance, self.floor)
        return Parameters(b, v2, of_group, v2)

    def step(self, old: Parameters) -> tuple[Parameters, Monitor]:
        """Improve the items, then the annotators, then the groups of items."""
        moments, (before, after_items) = self._sweep_items(old, self._rounds)
        w, wr, w2, w2r, w2r2 = moments.T
        move = wr / w
        b = old.b + move
        # The sum of (w r)^2 after the move of the bias.
        w2r2 = np.maximum(w2r2 - 2.0 * move * w2r + move**2 * w2, 0.0)
        proposed = np.stack(proposals(old.v2, self._n_votes, w, w2, w2r2, self.floor))
        if self._bold:  # the next pass will tell whether scoring was right
            safe, scoring = proposed
            if self._has_gold:
                b, _ = self._move_level(b, safe)
            monitor = Monitor(float(before), float(after_items))
            return Parameters(b, scoring, old.of_group, safe), monitor
        v2, after = _better(proposed, *self._session.run_pass(self._try, self._values, b, proposed))
        of_group = old.of_group
        if self._n_groups:
            of_group, after = self._improve_groups(old.of_group, b, v2)
            # Only the sums count: share what both have to spare, so that no part meets its
            # bound, where it would wait for all of the other part to make room.
            spare = 0.5 * (of_group.min() - (v2.min() - self.floor))
            v2 = np.maximum(v2 + spare, self.floor)
            of_group = np.maximum(of_group - spare, 0.0)
            self._spread(of_group)
        if self._has_gold:
            b, gain = self._move_level(b, v2)
            after += gain
        return Parameters(b, v2, of_group, v2), Monitor(float(before), after)

    def acceleration(self) -> Squarem[Parameters]:
        """Leap with all that a step depends on; an ambiguity leaps as its group's does."""
        return Squarem(
            Parameters,
            *(numbers, numbers_above(self.floor), numbers_above(0.0), newest),
            session=self._session,
            items={"psi": "numbers", "a2": "variances"},
            safeguarded=(lambda bold: bold._replace(v2=bold.proven_v2)) if self._bold else None,
        )

    def _improve_groups(self, old: Floats, b: Floats, v2: Floats) -> tuple[Floats, float]:
        shared = (self._values, b, v2)
        (moments,) = self._session.run_pass(self._step_groups, *shared)
        n, w, w2, w2r2 = moments.T
        proposed = np.stack(proposals(old, n, w, w2, w2r2, 0.0))
        return _better(proposed, *self._session.run_pass(self._try_groups, *shared, proposed))

    def _move_level(self, b: Floats, v2: Floats) -> tuple[Floats, float]:
        """Fit the level to the known truths; single biases alone would creep toward it."""
        ((wr, w),) = self._session.run_pass(self._level, self._values, b, v2, 0.0)
        move = float(wr / w)
        self._session.run_pass(self._level, self._values, b + move, v2, move)
        return b + move, 0.5 * float(wr) * move

    def _spread(self, of_group: Floats) -> None:
        if self._n_groups:
            self._session.run_pass(self._set_groups, of_group)

    def _sweep_items(self, parameters: Parameters, rounds: int) -> tuple[Floats, Floats]:
        moments, totals = self._session.run_pass(
            self._items, self._values, parameters.b, parameters.v2, rounds
        )
        return moments, totals

    def read_out(self, parameters: Parameters) -> float:
        """Bring the scores up to the final parameters, and return the log-likelihood there."""
        self._sweep_items(parameters, 0)
        self.moments, (log_likelihood, _) = self._sweep_items(parameters, 0)
        return float(log_likelihood)


def _better(proposed: Floats, log_likelihood: Floats) -> tuple[Floats, float]:
    """Take the second proposal, scoring, unless the first, the safe one, is more likely."""
    safe, scoring = log_likelihood
    good = scoring >= safe - ROUNDING * (1.0 + np.abs(safe))
    return np.where(good, proposed[1], proposed[0]), float(np.where(good, scoring, safe).sum())
