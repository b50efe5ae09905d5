"""RobustGPM, the default model: GPM for few labels per item, with named irregular behaviors."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from annotruth.engines import Session, get_engine
from annotruth.errors import ConvergenceWarning, InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.validate import check_ordinal
from annotruth.models.base import Capabilities, EMEstimator
from annotruth.models.base_fit import BaseFit, LatentClasses
from annotruth.models.em import History, ProgressCallback
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.classes import ClassSteps, ConfusionSteps, TrueClasses
from annotruth.models.robust_gpm.opinions import OpinionShapes, count_shapes, opinion_steps
from annotruth.models.robust_gpm.results import (
    FinalState,
    item_classes,
    make_result,
    predict_labels,
)
from annotruth.models.robust_gpm.steps import RobustGPMParameters, RobustGPMSteps

Truth = Literal["auto", "class", "opinions"]

# With truth="auto": opinions differ from this ratio of serious labels next to the class to those
# on it, and on longer ordinal scales in any case.
_OPINIONS_FROM = 0.5
_MAX_ORDINAL_CLASSES = 12

_MAX_CATEGORIES = 128
_MAX_BYTES = 4e9
_N_TABLES = (
    8  # of annotators x categories x classes: the likelihood, partitions' counts, their update
)


@dataclass(kw_only=True)
class RobustGPM(EMEstimator):
    r"""GPM for few labels per item, with named irregular behaviors.

    **Model.** As in GPM, annotator s is serious with probability :math:`\epsilon_s`. But an item e
    belongs to one of K latent classes, to class k with probability :math:`p_k`, and the class is
    summed out, so that a label cannot confirm itself; and irregular labels follow a behavior:

    .. math::
        L = \prod_e \sum_k p_k \prod_{s \in l_e} a_{g_s}(r_{e,s} \mid k), \quad
        a_g(n \mid k) = \epsilon_g \theta^{(d_g)}_{k,n} + (1 - \epsilon_g) b_g(n \mid k).

    The latent classes depend on what the truth is. Where opinions differ, they are 32 shapes: Beta
    distributions with 16 means and the concentrations 5 and 15, in N equal bins; on scales of more than
    8 categories also 45, 135 and 405, as long as a shape's standard deviation is at least 0.6
    categories, with means as much closer to one another. Where every item has
    one right label, they are the N categories, and :math:`\theta_{k}` is a column of the crowd's
    confusion matrix, which is learned from serious labels. By default the labels decide: opinions
    differ if serious labels are next to an item's class at least half as often as on it, according to
    a fit with one right label (with 50 labels of either sort as pseudo-counts). Items on nominal
    scales have one right label; on ordinal scales of more than 12 categories opinions differ.

    **Prior.** An annotator's response strategy g has a reliability (10 levels, and 0.995 for
    annotators who are always serious), an irregular behavior b and, if the reliability is above 0.5,
    a shift d of serious labels.

    - Behaviors: random, 1/N; repeated, always the same label; inverted, :math:`\theta_{k,N+1-n}`;
      mixed, a third of each. Their prior weights are 0.4, 0.2/N, 0.05 and 0.35/N; nominal scales have
      the first two. The label that an annotator may repeat is the one whose share they have most
      above the crowd's.
    - A shift moves the logit of the mean of serious opinion by -1, -0.5, 0, 0.5 or 1, with a Gaussian
      prior of standard deviation 0.5: generous and harsh annotators are serious. With narrower shapes
      the steps are as much finer, and annotators who are always serious have their own sharpness: the
      concentration of their labels is that of the shape times 1/3, 1 or 3 (prior weights 1, 2, 1).
    - The share of annotators who are always serious is learned (pseudo-counts 2 and 1). The other
      levels of reliability have the prior weights 2, 1.5, 0.5, 0.15, 0.15, and 1 from 0.5 on.
    - Pseudo-counts of items: 0.2 per shape, or 0.5 per class; and 0.5 labels per entry of the crowd's
      confusion matrix.
    - An annotator prior counts as labels that are known to be serious, or not to be. A known truth
      fixes the class, or counts as one more serious label for the shape.

    **Inference.** Variational EM:

    .. math::
        w_{e,k} &\propto p_k \prod_{s \in l_e} \exp \sum_g q_{s,g} \log a_g(r_{e,s} \mid k), \\
        q_{s,g} &\propto \pi_g \exp \sum_{e,k} w_{e,k} \log a_g(r_{e,s} \mid k).

    The lower bound of the log-posterior rises in every step; EM stops when the bound per label changes
    by less than ``tol``. Where items have one right label, a second stage follows: Dawid and Skene's
    EM with a confusion matrix per annotator and 3 pseudo-counts per class, distributed as the
    annotator's strategies q have it. Progress, history and stopping are those of the last stage. With
    many labels an engine may hold the tables of shapes in single precision (the memory engine from
    131,072 labels on, unless ``tol`` is below 1e-6).

    **Annotators.** At the end q is computed once more with leave-one-out log-likelihoods: the class of
    each item is inferred without the annotator's own label. The reliability is the posterior mean, its
    interval the central 95% with the likelihood tempered by 0.85. ``p_spammer`` is the probability of
    a reliability below 0.5, ``evidence`` the log10 of the factor by which the labels raised its odds,
    and ``bias``, where opinions differ, how far serious labels are above the crowd's. A behavior is
    named only if the labels say enough: the odds of a spammer changed by a factor of ten or the labels
    gave half a nat of information about the reliability; and, where the interval is wider than 0.5,
    the odds are nine to one.

    **Items.** The posterior of the class is computed with the mean of :math:`a_g` over these q, or with
    the annotators' confusion matrices. An item's distribution is the mean over classes, shifted as the
    crowd is on average; it is certain of a known truth. `predict_proba` returns
    :math:`\sum_k w_{e,k} a_s(n \mid k)` with the same matrices.

    **Intervals of items.** ``score_low`` and ``score_high`` contain the mean serious label, ``may_lead``
    the categories that may be the top label, with 95%. Annotators are compared with one another, so
    errors of items are correlated, most of all about who inverts the scale. Variances are therefore
    multiplied by :math:`1.1 + 29 v / \bar\epsilon^2`, with v the posterior variance of an annotator's
    share of inverted labels, averaged over labels; with one right label by 1.12 + 7.5 S / L, with S
    annotators and L labels.

    **Limitations.** In twelve sorts of simulated crowds with 3 to 25 labels per item, 95% intervals
    contained 94 to 97% of the scores and 93 to 98% of the reliabilities, but 92% of the latter where a
    third of 5 labels per item was inverted. Intervals of scores contained 91 to 92% where serious
    annotators gave 3 labels each or anybody a single one, 88 to 92% where a third of 5 labels per item
    was inverted and opinions were not Beta distributions, and 83% where more than half of all labels
    were inverted. With 3 categories and 5 labels per item, opinions may be mistaken for classes;
    intervals then contain 67%, and ``truth="opinions"`` helps. Long scales whose labels pile up at one
    end, such as sliders left at 0, are not Beta distributions: in simulated votes with a pile-up, and
    where annotators are equally noisy, scores are up to 7% worse than votes less biases. Bins lose
    precision: with 10 bins on a scale of 0 to 100, up to 17%.

    Parameters
    ----------
    truth
        "class": every item has one right label. "opinions": serious annotators differ. "auto": the
        labels decide.
    tol, max_iter
        The stopping rule of every stage and its cap; reaching the cap in the last stage warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels.
    engine
        Where the passes over the labels run.

    Examples
    --------
    >>> import annotruth as at
    >>> rows = [(item, who, item % 3) for item in range(30) for who in ("ann", "bob", "eve")]
    >>> rows += [(item, "clicker", 1) for item in range(30)]
    >>> fit = at.RobustGPM(truth="class").fit(rows).result_
    >>> dict(zip(fit.data.annotators.to_pylist(), fit.behavior))
    {'ann': 'serious', 'bob': 'serious', 'eve': 'serious', 'clicker': 'repeated 1'}
    """

    name: ClassVar[str] = "robust-gpm"
    capabilities: ClassVar[Capabilities] = Capabilities(
        annotator_prior=True, out_of_core=True, distributed=True
    )

    truth: Truth = "auto"

    def latent_classes(self) -> LatentClasses:
        """Return the latent classes and the annotators' confusion, from the fitted parameters."""
        with _one_blas_thread():
            return item_classes(self._local_result())

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        with _one_blas_thread():
            return predict_labels(self.result_, get_engine(self.engine), item, annotator)

    def _fit(
        self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None
    ) -> BaseFit:
        self._check(labels)
        before = None if previous is None else FinalState.from_fit(previous)
        with _one_blas_thread(), closing(get_engine(self.engine).open(labels)) as session:
            fit = None
            if self._may_have_one_truth(labels, before):
                fit = self._fit_classes(labels, session, before, progress)
            return fit or self._fit_opinions(labels, session, before, progress)

    def _may_have_one_truth(self, labels: LabelSummary, before: FinalState | None) -> bool:
        """Whether items may have one right label, before their labels are looked at."""
        if self.truth != "auto":
            return self.truth == "class"
        if labels.scale.is_ordinal and labels.n_categories > _MAX_ORDINAL_CLASSES:
            return False
        return before is None or before.one_truth

    def _fit_classes(
        self,
        labels: LabelSummary,
        session: Session,
        before: FinalState | None,
        progress: ProgressCallback | None,
    ) -> BaseFit | None:
        """Fit items with one right label; return None if the labels show that opinions differ."""
        steps = ClassSteps(TrueClasses(labels), session)
        with warnings.catch_warnings():
            # The second stage, or the fit of opinions, warns.
            warnings.simplefilter("ignore", ConvergenceWarning)
            first, _ = self._run_em(steps, _start(steps, before))
        if self.truth == "auto":
            ratio = steps.items.adjacent_ratio(first.serious, first.class_prior)
            if ratio >= _OPINIONS_FROM:
                return None
        second = ConfusionSteps(steps, first)
        confusion, history = self._run_em(second, second.start(), progress)
        strategies = steps.items.strategies(first.serious)
        loo_log_likelihood = steps.leave_one_out_by(*confusion, strategies)
        state = FinalState(first, confusion, loo_log_likelihood, steps.repeated_label)
        return self._make_fit(steps, state, history)

    def _fit_opinions(
        self,
        labels: LabelSummary,
        session: Session,
        before: FinalState | None,
        progress: ProgressCallback | None,
    ) -> BaseFit:
        """Fit items on which opinions differ."""
        steps = opinion_steps(OpinionShapes(labels), session, self.tol)
        parameters, history = self._run_em(steps, _start(steps, before), progress)
        loo_log_likelihood = steps.leave_one_out(parameters)
        state = FinalState(parameters, None, loo_log_likelihood, steps.repeated_label)
        return self._make_fit(steps, state, history)

    def _make_fit(self, steps: RobustGPMSteps[Any], state: FinalState, history: History) -> BaseFit:
        return make_result(steps, state, model=self.name, settings=self.settings(), history=history)

    def _check(self, labels: LabelSummary) -> None:
        """Refuse options and labels that the model cannot be fitted with."""
        if self.truth not in get_args(Truth):
            raise InputError(f"unknown truth {self.truth!r}: choose auto, class or opinions")
        if self.truth == "opinions":
            check_ordinal(labels.scale, f"{self.name} with truth='opinions'")
        if problem := _size_problem(labels):
            raise InputError(
                f"these labels are too large for {self.name}: {problem}; merge categories, or "
                "choose another model, such as gpm (`--model gpm`)"
            )


def has_room(labels: LabelSummary) -> bool:
    """Whether the labels are within the model's limits of categories and memory."""
    return not _size_problem(labels)


def _size_problem(labels: LabelSummary) -> str:
    """Return which limit the labels exceed; empty if none."""
    n_annotators, n = labels.n_annotators, labels.n_categories
    if n > _MAX_CATEGORIES:
        return f"they have {n:,} categories, and it takes at most {_MAX_CATEGORIES}"
    n_bytes = _N_TABLES * 8 * n_annotators * n * max(n, count_shapes(n))
    if n_bytes > _MAX_BYTES:
        return (
            f"its tables of {n_annotators:,} annotators x {n:,} categories would take "
            f"{n_bytes / 1e9:.1f} GB, and the limit is {_MAX_BYTES / 1e9:.0f} GB"
        )
    return ""


def _start(steps: RobustGPMSteps[Any], before: FinalState | None) -> RobustGPMParameters:
    """Return where EM starts: at a previous fit if its items have the same latent classes."""
    if before is None or before.one_truth != steps.items.one_truth:
        return steps.start()
    return steps.resume(before.parameters)


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Restrict matrix products to one thread.

    Their rounding depends on the number of threads, and idle BLAS threads take cores from the passes.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits
