r"""RobustGPM: GPM whose items are summed out and whose annotators have named behaviors."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from annotruth.engines import Session, get_engine
from annotruth.errors import ConvergenceWarning, InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.validate import check_ordinal
from annotruth.models.base import Capabilities, IterativeEstimator
from annotruth.models.base_fit import BaseFit
from annotruth.models.em import History, ProgressCallback
from annotruth.models.latent_classes import LatentClasses, variance_inflation
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotator_confusion import OwnRows
from annotruth.models.robust_gpm.prediction import predicted
from annotruth.models.robust_gpm.results import Kinds, Reached, judged, kinds_of, reached, read
from annotruth.models.robust_gpm.single_precision import opinions_of
from annotruth.models.robust_gpm.steps import MEANS, Classes, Steps

Truth = Literal["auto", "class", "opinions"]

_AS_OFTEN = 0.5  # serious labels next to the class, over those on it, from which opinions differ
_MOST_CLASSES = 12  # longer ordinal scales are not tried for one truth
_MOST_CATEGORIES = 128
_MOST_BYTES = 4e9
_TABLES = 8  # rates, the counts of four parts, and what becomes of them


@dataclass(kw_only=True)
class RobustGPM(IterativeEstimator[Steps]):
    r"""GPM for few labels an item, with named behaviors.

    As in GPM, annotator s is serious with probability :math:`\epsilon_s`. But an item is of one of
    K kinds, with probability :math:`p_k`, and is summed out, so that nobody's own label can make
    itself look likely; and what is not serious is a behavior with a name:

    .. math::
        L = \prod_e \sum_k p_k \prod_{s \in l_e} a_{g_s}(r_{e,s} \mid k), \quad
        a_g(n \mid k) = \epsilon_g \theta^{(d_g)}_{k,n} + (1 - \epsilon_g) b_g(n \mid k).

    An annotator's way g is a reliability (10 levels, and 0.995 for the always serious), a
    behavior b and, for those serious more than half of the time, a shift d:

    - random, 1/N; repeated, one label of their own; inverted, :math:`\theta_{k,N+1-n}`; mixed, a
      third of each. The label tried as the repeated one is what they say most beyond the crowd.
      Prior weights 0.4, 0.2/N, 0.05 and 0.35/N; nominal scales have the first two.
    - a shift moves the logit of a serious opinion's mean by -1, -0.5, 0, 0.5 or 1, with weights of
      a Gaussian of deviation 0.5: the generous and the harsh are serious.
    - the share of the always serious is learned, from 2 of 3 annotators; other levels weigh 2, 1.5,
      0.5, 0.15, 0.15 and, from 0.5 on, 1: few are serious every other time.

    Kinds of items depend on what the truth is. Where opinions differ they are 32 shapes, Betas of
    16 means and the concentrations 5 and 15 in N equal bins, with 0.2 items of each seen
    before the first. Where there is one right answer they are the N classes, and
    :math:`\theta_{k}` is the row of the crowd's confusion matrix, learned from serious labels.

    Which of the two it is the data tell: by the classes' fit, do serious labels fall next to an
    item's class half as often as on it? (50 labels of either sort are counted before the first.)
    Then opinions differ. On nominal scales there is one answer; ordinal ones of more than 12
    categories hold opinions.

    Variational EM: :math:`w_{e,k} \propto p_k \prod_s \exp \sum_g q_{s,g} \log a_g(r_{e,s} | k)`,
    :math:`q_{s,g} \propto \pi_g \exp \sum_{e,k} w_{e,k} \log a_g(r_{e,s} | k)`. The bound of the
    log-posterior rises in every step; it stops when the bound per label changes by less than
    ``tol``. With classes a second round follows, Dawid and Skene's EM in which every annotator's
    rows are their own, as if they had given 3 labels a class as their ways q have it.

    At the end an annotator's posterior over ways is computed once more with each item's kind
    judged without their own label; the reliability is its mean, the interval its middle 95% (the
    labels counting 0.85 of what they say). Items then are judged with the mean rates of these
    posteriors. An item's distribution is the mean of its kinds', shifted as the crowd is on
    average; ``score_low`` and ``score_high`` hold the mean serious label, ``may_lead`` the
    categories that lead with 95%. As annotators are judged by one another, they may be wrong
    together, most of all about who inverts the scale: variances are multiplied by
    :math:`1.1 + 29 v / \bar\epsilon^2`, with v the posterior variance of an annotator's share of
    inverted labels, in the mean over labels (with classes by 1.12 + 7.5 S / L, with S annotators
    and L labels). A known truth fixes the class, or counts as one serious label more for the
    shape; the item's distribution is certain of it. A record of an annotator counts as labels seen
    to be serious, or not to be. `predict_proba` predicts the label n with
    :math:`\sum_k w_{e,k} a_s(n \mid k)`, where :math:`a_s` are those mean rates, or the annotator's
    own rows.

    Annotators further have ``p_spammer``, ``evidence`` (the log10 of how much the labels raised a
    spammer's odds) and, where opinions differ, ``bias``. A behavior is named only where the labels
    tell: ten to one for or against a spammer, or at least half a nat about the reliability, and
    nine to one where the interval is wider than 0.5.

    Where it fails: in twelve sorts of simulated crowds, of 3 to 25 labels an item, 95% intervals
    held 94 to 97% of the scores and 93 to 98% of the reliabilities; but 92% of the latter where a
    third of 5 labels an item was inverted. Scores' intervals held 91 to 92% where serious people
    gave 3 labels each or anybody a single one, 88 to 92% where a third of 5 labels an item was
    inverted and opinions were no Betas in equal bins, and 83% where more than half of all labels
    were inverted. With 3 categories and 5 labels an item, opinions may be taken for classes; intervals
    then hold 67%, and ``truth="opinions"`` helps. Long scales whose labels pile up at one end, such
    as sliders left at 0, are no Betas.

    Progress, history and stopping are of the last round. From 131,072 labels on, and unless
    ``tol`` is below 1e-6, the passes of the opinions' round are in single precision.

    Parameters
    ----------
    truth
        "class": every item has one right answer. "opinions": serious people differ. "auto" lets
        the labels tell.
    tol, max_iter
        The stopping rule of every round and its cap; reaching the cap warns.
    acceleration
        Whether to leap ahead along EM's steps (`annotruth.models.squarem`) for fewer passes
        over the labels.
    engine
        Where the passes over the labels run.
    """

    name: ClassVar[str] = "robust-gpm"
    capabilities: ClassVar[Capabilities] = Capabilities(
        annotator_prior=True, out_of_core=True, distributed=True
    )

    truth: Truth = "auto"

    def _fit(
        self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None
    ) -> BaseFit:
        self._check(labels)
        before = None if previous is None else Reached.of(previous)
        with _one_blas_thread(), closing(get_engine(self.engine).open(labels)) as session:
            found = self._one_truth(labels, session, progress, before)
            return found if found is not None else self._opinions(labels, session, progress, before)

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        data = self.result_.data
        return predicted(self._kinds(), data, get_engine(self.engine), item, annotator)

    def latent_classes(self) -> LatentClasses:
        """Return the latent classes and the annotators' rates, from the fitted parameters."""
        kinds, labels = self._kinds(), self._local_result().data
        label_weight = 1.0 / variance_inflation(labels)
        bin_width = 0.0 if kinds.one_truth else float(np.ptp(labels.scale.values)) / MEANS
        return LatentClasses(
            prior=kinds.prior,
            known_truth=kinds.gate,
            rates=kinds.rates,
            opinions=kinds.opinions,
            one_truth=kinds.one_truth,
            label_weight=label_weight,
            score_variance=bin_width**2 / 12.0,
            # A weight below 1 inflates variances already; the fit may inflate them further.
            score_inflation=kinds.wider**2 * label_weight,
        )

    def _kinds(self) -> Kinds:
        """Compute the latent classes from the fitted parameters, without EM."""
        data, end = self.result_.data, Reached.of(self.result_)
        with _one_blas_thread(), closing(get_engine(self.engine).open(data)) as session:
            steps = self._steps_at(data, session, end)
            return kinds_of(steps, end, judged(steps, end).weights)

    def _steps_at(self, labels: Labels, session: Session, end: Reached) -> Steps:
        """Return the steps that ended there."""
        one_truth = end.rows is not None
        steps = Classes(labels, session) if one_truth else opinions_of(labels, session, self.tol)
        steps.repeated = end.repeated
        return steps

    def _one_truth(
        self,
        labels: LabelSummary,
        session: Session,
        progress: ProgressCallback | None,
        before: Reached | None,
    ) -> BaseFit | None:
        """Fit classes; None where the labels do not speak for them."""
        if self.truth == "opinions" or (self.truth == "auto" and _long(labels)):
            return None
        if self.truth == "auto" and before is not None and before.rows is None:
            return None
        steps = Classes(labels, session)
        with warnings.catch_warnings():
            # Another round follows, which warns of the cap where it matters.
            warnings.simplefilter("ignore", ConvergenceWarning)
            resumed = before is not None and before.rows is not None
            start = steps.resume(before.at) if before and resumed else steps.start()
            first, _ = self._run_em(steps, start)
        if self.truth == "auto" and steps.neighbours(first) >= _AS_OFTEN:
            return None
        second = OwnRows(steps, first)
        rows, history = self._run_em(second, second.start(), progress)
        return self._read(steps, reached(steps, first, rows), history)

    def _opinions(
        self,
        labels: LabelSummary,
        session: Session,
        progress: ProgressCallback | None,
        before: Reached | None,
    ) -> BaseFit:
        steps = opinions_of(labels, session, self.tol)
        resumed = before is not None and before.rows is None
        start = steps.resume(before.at) if before and resumed else steps.start()
        found, history = self._run_em(steps, start, progress)
        return self._read(steps, reached(steps, found, None), history)

    def _read(self, steps: Steps, end: Reached, history: History) -> BaseFit:
        return read(steps, end, model=self.name, settings=self.settings(), history=history)

    def _steps(self, labels: Labels, session: Session) -> Steps:
        return Classes(labels, session)

    def _make_fit(self, *arguments: Any) -> BaseFit:
        raise NotImplementedError  # two rounds of EM make one fit

    def _check(self, labels: LabelSummary) -> None:
        """Refuse options and labels that the model cannot be fitted with."""
        if self.truth not in get_args(Truth):
            raise InputError(f"unknown truth {self.truth!r}: choose auto, class or opinions")
        if self.truth == "opinions":
            check_ordinal(labels.scale, f"{self.name} with truth='opinions'")
        if not has_room(labels):
            raise InputError(
                f"{self.name} has no room for {labels.n_annotators:,} annotators and "
                f"{labels.n_categories:,} categories: merge categories, or choose the model gpm"
            )


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Hold products of matrices to one thread.

    On several they round differently on every number of them, and these threads go on spinning
    where the passes need the cores.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits


def has_room(labels: LabelSummary) -> bool:
    """Whether tables of annotators x categories x kinds of items fit into memory."""
    categories = labels.n_categories
    table = 8 * labels.n_annotators * categories * max(categories, 32)
    return categories <= _MOST_CATEGORIES and _TABLES * table <= _MOST_BYTES


def _long(labels: LabelSummary) -> bool:
    return labels.scale.is_ordinal and labels.n_categories > _MOST_CLASSES
