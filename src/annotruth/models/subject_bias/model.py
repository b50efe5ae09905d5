"""Subject bias and inconsistency with content ambiguity: a model of opinion scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from annotruth.engines import Session
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.covariates import match_groups
from annotruth.labels.validate import check_ordinal
from annotruth.models.capabilities import Capabilities
from annotruth.models.distribution import Z_95
from annotruth.models.em import History
from annotruth.models.em_estimator import IterativeEstimator
from annotruth.models.result import Fit
from annotruth.models.subject_bias.posterior import vote_posterior
from annotruth.models.subject_bias.rounding import rounded_gaussians
from annotruth.models.subject_bias.steps import SubjectBiasParameters, SubjectBiasSteps

if TYPE_CHECKING:
    import pandas as pd


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

    Left open by the paper:

    - The likelihood is unbounded as a variance approaches 0. So every vote's standard deviation is
      at least that of rounding to the scale, :math:`h / \sqrt{12}` with h the smallest distance of
      categories, and at least a tenth of the standard deviation of all votes at the start, which
      matters on fine scales. Annotators whose inconsistency is at this floor are marked
      ``at_floor``, and the stop reason counts them. This is common with few votes per item: the
      item's score then follows the vote of one such annotator.
    - Only differences of biases are identified: their mean is 0, unless known truths fix the level.
    - Only the sums :math:`v_s^2 + a_c^2` are identified: the least ambiguous content has ambiguity
      0, and noise common to all votes counts as inconsistency. An ambiguity shared by all items is
      therefore not reported.

    An item's score is :math:`\psi_e`, which may lie beyond the ends of the scale; a known truth is
    its item's score. There is no distribution and no reliability.

    **Intervals.** At the maximum of the likelihood variances are too small, the more so with few
    votes per item, and the Fisher information of the scores, :math:`\sum_s w`, takes variances and
    biases as known. So ``score_low`` and ``score_high`` are the central 95% of a posterior. Scores have
    a flat prior and are integrated out: given an ambiguity a, with :math:`z = x - b_s`,
    :math:`W = \sum_s w` and :math:`u = w / W`,

    .. math::
        \log p(x_e \mid a) = \tfrac12 \sum_s (\log w - w (z - \psi_e)^2) - \tfrac12 \log W.

    - *Ambiguities* have eight levels, which are summed out; their prior is half of a Gaussian, averaged
      over seven scales by :math:`\sum_e \log \sum_a p(a) \, p(x_e \mid a)`. Those of groups are taken as
      estimated.
    - *Inconsistencies* have 17 levels and a Gaussian prior of their logarithm, averaged over its mean
      and standard deviation by the likelihood. By the chain rule the likelihood of :math:`v_s` is that
      of the votes of s given the votes of the others,

      .. math::
          \sum_e \log \sum_a p(a \mid x_{e,-s}) \, N\bigl(z;\; \psi_{e,-s},\; v_s^2 + a^2 + 1/W_{-s}\bigr)
          - \tfrac12 \log I_s,

      with :math:`I_s` the Fisher information of the bias in it, which integrates the bias out (REML). A
      vote cannot confirm itself in it, so no inconsistency approaches 0. The variance of other votes
      less their biases is :math:`v^2` less that of the bias, because biases are fitted to the same
      votes.
    - *Biases* have the covariance C, the inverse of their Fisher information with scores profiled out,
      :math:`\mathrm{diag}(\sum_e w_e) - \sum_e w_e w_e^T / W_e`, given that their sum is 0. With more
      than 400 annotators they are taken as independent.
    - *The score* has the variance

      .. math::
          \sum_s u^2 (\mathrm{E} v_s^2 + a^2) + u^T C u
          + \sum_s (u \, w \, v_s^2 \, (z - \psi_e))^2 \, \mathrm{var} \log v_s^2 + \rho,

      whose third term is the error of the weights, averaged over ambiguities, plus the variance of
      :math:`\psi_e` between these. :math:`\rho` is the error of rounding that all votes have in common
      (`annotruth.models.subject_bias.rounding.shared_rounding_variance`), which matters where everybody agrees. The
      interval is that of Student's t with this variance and the degrees of freedom, as in
      Satterthwaite's approximation, with which it varies as much as the variance does: 4 plus two over
      the squared coefficient of variation.

    Intervals extend to the estimate where that lies outside. They refer to scores at which the biases
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
    tol, max_iter
        The stopping rule and the maximum number of iterations; reaching it warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels. Scoring steps are then not tested first, which takes a second pass, but rolled back
        if the log-likelihood falls; except where groups share an ambiguity.
    engine
        Where the passes over the labels run.

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
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True)
    parameter_axes: ClassVar[Mapping[str, str] | None] = {}

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
        psi, a2 = (session.collect(name) for name in ("psi", "a2"))
        known = labels.known >= 0
        level = 0.0 if known.any() else parameters.b.mean()
        v2 = parameters.v2 + a2.min()
        at_floor = v2 <= steps.floor * (1.0 + 1e-9)
        if at_floor.any():
            note = (
                f"the inconsistency of {at_floor.sum():,} of {labels.n_annotators:,} annotators "
                f"is at its floor of {np.sqrt(steps.floor):.3g}"
            )
            history = replace(history, stop_reason=f"{history.stop_reason}; {note}")
        score, bias = psi + level, parameters.b - level
        in_groups = steps.per == "group"
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
        annotators: dict[str, Any] = {
            "bias": bias,
            "bias_std": posterior.bias_error(bias),
            "inconsistency": np.sqrt(v2),
            "inconsistency_std": posterior.inconsistency_error(np.sqrt(v2)),
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
            readout="opinion",
        )

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
