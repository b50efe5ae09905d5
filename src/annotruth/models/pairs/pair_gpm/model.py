"""`PairGPM`: scores of items from the votes of annotators who are not always serious."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from annotruth.errors import ConvergenceWarning, setting
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import Verdict
from annotruth.models.em import History, ProgressCallback
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.chance import judge_comparisons
from annotruth.models.pairs.pair_gpm.estimation import PairEstimate, estimate, start_estimate
from annotruth.models.pairs.pair_gpm.predict import predict_outcomes
from annotruth.models.pairs.pair_gpm.results import make_fit
from annotruth.models.pairs.pair_gpm.scores import Prior
from annotruth.models.pairs.pair_gpm.starts import (
    LARGE,
    better_estimate,
    estimate_large,
    sample_votes,
    trimmed_start,
)
from annotruth.models.pairs.pair_gpm.votes import PairVotes, make_votes
from annotruth.models.pairs.passes import Passes, runs_twins
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import Comparisons
from annotruth.observations.validate import check_seed

_SAMPLE = 20_000
_TESTED_PER_ITEM = 20  # comparisons by which chance is tested, if that is more than the sample
_ROUNDS_OF_TEST = 4
_MANY_SERIOUS = 0.75  # the share of serious annotators below which a second start is tried
_CLEAR_EVIDENCE = 15.0  # of the log of the likelihood ratio of serious and random annotators
_EQUAL_SCORES = 1e9  # the precision of a prior that leaves scores equal


@dataclass(kw_only=True)
class PairGPM(PairEstimator):
    r"""Scores of items, and the class, sharpness and habits of those who compared them.

    Vote v compares the items l and r in context c (a prompt, a scene), by annotator s:

    .. math::

        D &= (\theta_l + u_{lc}) - (\theta_r + u_{rc}) + x \cdot k, \qquad
        u_{ic} \sim N(0, \tau^2), \\
        d &= b_s D + \gamma_s, \qquad
        P(\text{left}, \text{right}, \text{tie}) \propto (e^{d/2}, e^{-d/2},
        \nu_s e^{\zeta_{lr} + \eta_{lrc}}),

    with the sharpness b of the annotator, the side bias :math:`\gamma` and the tie rate :math:`\nu`,
    which are habits, the tie rate :math:`\zeta` of the pair, what its context adds (:math:`\eta`, for a vote
    by the votes of others there) and covariates x. Effects of contexts are
    estimated from five contexts on that two annotators evaluated; :math:`\tau` is 0 where contexts do not
    matter. Reported scores are :math:`\theta / \sqrt{1 + 0.692 \tau^2}`, the log odds that a typical
    annotator prefers an item in a *new* context; their intervals take contexts as a sample.

    Annotators are serious (:math:`b > 0`), inverted (:math:`b < 0`), random (:math:`b = 0`, or with
    shares of outcomes of their own), always choose left, right or tie, or favour one item. Each is evaluated
    by the differences D that the votes of everybody else imply. Spammers are named so that at most 5% of
    them are expected to be serious, and never against what can be counted: whose votes go with those of
    others clearly more than when permuted is none. Where sides are not known, there is no gamma, and
    nobody is said to vote for a side. Priors are in `annotruth.models.pairs.pair_gpm.annotators`.

    Where fewer than three quarters of the annotators are serious, estimation starts a second time, without
    the half that agrees least with the others, and the result with the higher likelihood is taken.
    Votes that follow from rankings count less (`annotruth.models.pairs.pair_gpm.votes`).

    Parameters
    ----------
    seed
        Of samples.
    tol, max_iter
        Rounds end where no score and no probability of an annotator's class changes by more than
        ``tol``, or after ``max_iter``.

    Examples
    --------
    >>> from annotruth import simulate
    >>> crowd = simulate.comparers(n_items=10, n_annotators=30, behavior="always left")
    >>> fit = PairGPM().fit(crowd.comparisons).result_
    >>> int(fit.spammer.sum()), sorted(set(fit.behavior))
    (5, ['always left', 'serious'])
    """

    name: ClassVar[str] = "pair-gpm"

    seed: int = 0
    tol: float = 0.01
    max_iter: int = 40

    def _fit(self, data: Comparisons, progress: ProgressCallback | None) -> RankFit:
        check_seed(self.seed)
        verdict = self._judge(data)
        votes = make_votes(data)
        passes = votes.passes(reference=runs_twins(self.engine))
        if verdict == "chance":
            if not (votes.has_contexts and self._agree_in_contexts(votes, passes)):
                return make_fit(self, *self._fit_chance(start_estimate(votes, passes)), verdict)
            verdict = "informative"
        if data.n_comparisons > LARGE and not votes.has_contexts:
            now = estimate_large(votes, passes, self.seed, progress)
            return make_fit(self, now, self._history(now), verdict)
        now = start_estimate(votes, passes)
        estimate(now, tol=self.tol, max_rounds=self.max_iter, progress=progress)
        if now.states.share_serious() < _MANY_SERIOUS:
            other = trimmed_start(now)
            estimate(other, tol=self.tol, max_rounds=self.max_iter, progress=progress)
            now = better_estimate(now, other)
        return make_fit(self, now, self._history(now), verdict)

    def _judge(self, data: Comparisons) -> Verdict | None:
        """Return whether a sample of the comparisons agrees better than chance."""
        n_tested = max(_SAMPLE, _TESTED_PER_ITEM * data.n_items)
        if data.n_comparisons > n_tested:
            data = sample_votes(data, n_tested, self.seed)
        return judge_comparisons(data, self.seed)

    def _agree_in_contexts(self, votes: PairVotes, passes: Passes) -> bool:
        """Whether votes agree within contexts, though not over all: by those of others, once."""
        now = start_estimate(votes, passes)
        estimate(now, tol=self.tol, max_rounds=_ROUNDS_OF_TEST)
        return now.states.serious_evidence() > _CLEAR_EVIDENCE

    def _fit_chance(self, now: PairEstimate) -> tuple[PairEstimate, History]:
        """Fit comparisons that agree no better than chance: with equal scores."""
        precision = now.prior.precision
        now.prior = Prior(_EQUAL_SCORES, 0.0)
        now.iterate(1)
        now.leave_out()
        for _ in range(3):
            now.states.evaluate(now.outcomes, now.passes, now.left_out, n_steps=3)
            now.states.update(now.outcomes)
        now.history.append(now.states.log_likelihood)
        now.prior = Prior(precision, 0.0)
        now.converged = True
        return now, self._history(now)

    def _history(self, now: PairEstimate) -> History:
        """Return the history; warn where the rounds did not converge."""
        objective = np.array(now.history)
        reason = f"change of scores and classes below {self.tol:g}"
        if not now.converged:
            reason = f"reached max_iter ({self.max_iter:,}) before convergence"
            warnings.warn(
                f"{reason}: raise max_iter or tol, such as "
                f"{setting('max_iter', 10 * self.max_iter)}",
                ConvergenceWarning,
                stacklevel=4,
            )
        log_likelihood = np.append(objective, now.states.log_likelihood)
        return History(log_likelihood, objective, now.converged, reason)

    def predict_proba(
        self,
        left: Codes,
        right: Codes,
        annotator: Codes,
        covariates: dict[str, Any] | None = None,
        context: Codes | None = None,
    ) -> Floats:
        """Return the probabilities of left, right and tie, given the votes of annotator and context."""
        return predict_outcomes(self.result_, left, right, annotator, covariates or {}, context)
