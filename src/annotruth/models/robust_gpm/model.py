"""RobustGPM, the default model: GPM for few labels per item, with named irregular behaviors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from annotruth.engines import Session, get_engine
from annotruth.errors import ConvergenceWarning, InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.validate import check_choice, check_ordinal
from annotruth.models.base_fit import BaseFit, Verdict
from annotruth.models.capabilities import Capabilities
from annotruth.models.em import (
    History,
    ProgressCallback,
    check_loop_options,
    one_blas_thread,
    run_em,
)
from annotruth.models.em_estimator import EMEstimator
from annotruth.models.latent_classes import LatentClasses
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.class_steps import CLASS_TOL, ClassParameters, ClassSteps
from annotruth.models.robust_gpm.classes import TrueClasses
from annotruth.models.robust_gpm.opinion_results import (
    OpinionState,
    make_opinion_fit,
    opinion_latent_classes,
    predict_opinion_labels,
)
from annotruth.models.robust_gpm.opinion_steps import opinion_steps
from annotruth.models.robust_gpm.opinions import OpinionShapes, adjacent_ratio
from annotruth.models.robust_gpm.pooling import (
    GROUP,
    PREFIX,
    PooledLabels,
    fit_of_merged,
    max_states,
    merge_categories,
    needs_pooling,
    pooled_labels,
    size_problem,
)
from annotruth.models.robust_gpm.resampling import (
    Folds,
    assign_folds,
    judge_agreement,
    sampled_items,
)

if TYPE_CHECKING:
    from annotruth.models.label_evidence import LabelEvidence, PartedFit, Parts
    from annotruth.models.robust_gpm.class_results import ClassState

Truth = Literal["auto", "class", "opinions"]

# With truth="auto", items on ordinal scales have one right label only if there are clearly fewer serious
# labels next to the class, per label on it, than this and than shapes of opinion have.
_MAX_ADJACENT_RATIO = 0.5
_MAX_ORDINAL_CLASSES = 12  # on ordinal scales of more categories, opinions differ in any case

_LEAST_WEIGHT = 0.01  # of the alternative to the model that held-out labels choose


def _with_merged_categories(axes: dict[str, str]) -> dict[str, str]:
    """Return the axes of parameters, and those of the same parameters of merged categories."""
    merged = {
        PREFIX + name: axis.partition(" -> ")[0]
        .replace("category", "group")
        .replace("state", "group_state")
        for name, axis in axes.items()
    }
    return {**axes, **merged, GROUP: "category"}


@dataclass(kw_only=True)
class RobustGPM(EMEstimator):
    r"""GPM for few labels per item, with named irregular behaviors and calibrated certainty.

    As in GPM, a label of annotator s is serious with probability :math:`\epsilon_s`, and irregular
    otherwise. It differs from GPM in three ways:

    - An item is in one of a few latent states z, in z with probability :math:`p_z`. The states are summed
      out, so that a label cannot confirm itself.
    - Irregular labels follow a behavior: *random*, any label; *repeated*, always the same label (the one
      whose share the annotator has most above the crowd's); on ordinal scales also *inverted*, a serious
      label counted from the other end of the scale, and *mixed*, a third of each.
    - An annotator has a posterior q over response strategies g. A strategy is a reliability
      :math:`\epsilon_g` (0.05, 0.15, ..., 0.95, or 0.995 for annotators who are always serious), an
      irregular behavior :math:`b_g` and, where opinions differ, a shift :math:`d_g` of serious labels.

    With :math:`\theta_z` the distribution of serious labels in state z, strategy g has the labels

    .. math::
        a_g(n \mid z) = \epsilon_g \theta^{(d_g)}_{z,n} + (1 - \epsilon_g) b_g(n \mid z).

    The list of strategies and their priors are in `annotruth.models.robust_gpm.strategies`. What the
    states are depends on the items.

    **One right label.** A state is a class k, one of the N categories, and one of M subtypes, so that
    items of a class may be easy or hard. :math:`\theta` is the crowd's confusion matrix, in which no
    label is likelier than the class. Annotators have confusion matrices of their own around what their
    strategies expect,

    .. math::
        v_{s,z} \sim \mathrm{Dirichlet}\Bigl(c \sum_g q_{s,g} a_g(\cdot \mid z)\Bigr), \quad
        L = \prod_e \sum_z p_z \prod_{s \in l_e} v_{s,z}(r_{e,s}).

    A fixed-point iteration of EM steps updates all of these, and stops when the log-likelihood per label
    changes by less than ten times ``tol``. What every step raises, and the history has as the
    objective, is derived in `annotruth.models.robust_gpm.class_steps.ClassSteps`. *Held-out labels* choose the rest: whether
    :math:`\theta` is learned or serious labels are right; M, 1 or 3; and c, 4, 16 or 1024. Among candidates
    within one standard error of the best the simplest is taken. :math:`\rho`, the correlation of an item's
    labels within its state, is the posterior mean over 8 values from 0 to 0.8, by the likelihood of held-out
    labels; 0 has a prior probability of one half (`annotruth.models.robust_gpm.choice`).

    At the end an item's labels are taken out of the counts that they are read by, and m labels count as
    :math:`m / (1 + (m - 1) \rho)`. ``distributions("right")``, the default, are the probabilities of the
    right label: in the easiest subtype of a class it is the class, in a harder one it may also be a label
    that the crowd gives more often there (`TrueClasses.right_labels`). A label that nobody gave the item is never more probable than the best
    one that somebody gave. ``distributions("opinion")`` are the labels in the item's states, weighted by
    the annotators' reliabilities.

    **Opinions differ.** A state is a shape of opinion: a Beta distribution over the scale, in N equal bins,
    with one of 16 means and 2 concentrations; on scales of more than 8 categories there are also narrower
    ones. A shift moves the logit of the mean: generous and harsh annotators are serious. Shapes, shifts
    and their priors are in `annotruth.models.robust_gpm.opinions`. Variational EM

    .. math::
        w_{e,z} &\propto p_z \prod_{s \in l_e} \exp \sum_g q_{s,g} \log a_g(r_{e,s} \mid z), \\
        q_{s,g} &\propto \pi_g \exp \sum_{e,z} w_{e,z} \log a_g(r_{e,s} \mid z)

    raises the lower bound of the log-posterior in every step, and stops when the bound per label
    changes by less than ``tol``. With many labels an engine may hold the tables of shapes in single
    precision (the memory engine from 131,072 labels on, unless ``tol`` is below 1e-6).
    ``distributions("opinion")``, the default, are the means over shapes, shifted as the crowd is on
    average; ``distributions("right")`` are the probabilities that a label leads.

    **Which of the two.** With ``truth="auto"``, items on scales that are nominal or have two categories
    have one right label, and opinions differ on ordinal scales of more than 12 categories. On other
    ordinal scales items have one right label if serious labels next to an item's class are clearly (by two
    standard errors) fewer than half of those on it, in a fit with one right label; with 3 and 4
    categories, fewer than in the shapes of opinion, where they are 0.30 and 0.42 of those on it.

    **Many categories.** With more than 32 classes and few labels per class, and with more than 128
    categories, these are merged for the fit (`annotruth.models.robust_gpm.pooling`).

    **Chance.** On all scales, the likelihood of serious annotators is compared with that of labels
    drawn by chance (`annotruth.models.robust_gpm.resampling.judge_agreement`). ``verdict`` says which
    of the two the labels are, or None if there are too few to tell. If labels are those of chance and
    items have one right label, nothing is learned: an item's labels count as one label, and annotators are
    compared with the others' votes. If there are too few to tell, as with one label per item, EM starts
    at annotators who are right half of the time and guess otherwise.

    **Knowledge.** An annotator prior counts as labels that are known to be serious, or not to be. A
    known truth fixes the class, or counts as one more serious label for the shape.

    **Annotators.** At the end q is computed once more with leave-one-out log-likelihoods: the state of
    each item is inferred without the annotator's own label. ``reliability`` is the mean of this posterior,
    ``low`` and ``high`` are the ends of a 95% interval, and ``bias``, where opinions differ, is how far serious
    labels are above the crowd's (`annotruth.models.robust_gpm.annotators`). A second stage,
    `annotruth.models.people`, allows annotators skills and tendencies of their own. ``accuracy`` is the
    probability that a label is right, ``p_spammer`` that fewer than half of the labels are serious or that they
    are consistently wrong, ``evidence`` the log10 of the factor by which the labels raised the odds of that,
    and ``agreement`` that with the others' labels, 0 for the own labels shuffled. ``spammer`` are those who are
    flagged (`annotruth.models.people.verdicts`): at most 5% of them are expected to be fine. Reliabilities that
    say the opposite of clear evidence are those of the second stage. Where
    items have one right label, intervals are those of a mean over a learned :math:`\theta` and serious labels
    that are right, weighted by how probably each predicts labels better: with few labels, this is open.

    Pairs of annotators whose labels match more often than their items explain are listed by
    ``dependent_annotators`` (`annotruth.models.robust_gpm.dependent_annotators`).

    **Intervals of items.** ``score_low`` and ``score_high`` contain the mean serious label, ``may_lead``
    the categories that may be the top label, with 95%. Annotators are compared with one another, so
    errors of items are correlated, most of all about who inverts the scale, and annotators may copy from
    one another. Variances are therefore multiplied by factors that were chosen on simulated crowds
    (`OpinionShapes.variance_inflation`, `annotruth.models.robust_gpm.dependent_annotators`,
    `annotruth.models.latent_classes.variance_inflation`).

    **Limitations.** In twenty sorts of simulated crowds with 3 to 25 labels per item, 95% intervals
    contained 94 to 97% of the scores and of the reliabilities. Intervals of scores contained 89% where
    annotators gave a single label, 92% with 300 labels per item, and 74% where more than half of all
    labels were inverted. With 3 categories, items with one right label may be mistaken for ones about
    which opinions differ; ``truth="class"`` helps. Long scales whose labels pile up at one
    end, such as sliders left at 0, are not Beta distributions: in simulated votes with a pile-up, and
    where annotators are equally noisy, scores are up to 7% worse than votes less biases. Bins lose
    precision: with 10 bins on a scale of 0 to 100, up to 17%.

    Parameters
    ----------
    truth
        "class": every item has one right label. "opinions": serious annotators differ. "auto": the
        labels decide.
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels, where opinions differ.
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
        annotator_prior=True,
        classifier=True,
        out_of_core=True,
        distributed=True,
        warm_start=False,
    )
    parameter_axes: ClassVar[Mapping[str, str] | None] = _with_merged_categories(
        {
            # of items with one right label
            "state_prior": "state",
            "serious": "category state",
            "strategy_prior": "strategy",
            "counts": "annotator category state",
            "pseudo_counts": "annotator category state",
            "choice": "field",
            "loo_log_likelihood": "annotator strategy",
            "repeated_label": "annotator -> category",
            # of items on which opinions differ
            "weights": "annotator strategy",
            "prior": "shape",
            "always": "share",
            "support": "annotator strategy",
            "repeated": "annotator -> category",
            # with a classifier
            "classifier_exponent": "field",
            "classifier_likelihood": "category category",
        }
    )

    truth: Truth = "auto"

    _pools: ClassVar[bool] = True

    def without_pooling(self) -> RobustGPM:
        """Return the same model with tables of all categories, however many there are."""
        return _UnpooledRobustGPM(**self.get_params())

    def latent_classes(self) -> LatentClasses | None:
        """Return the latent classes and the annotators' confusion, from the fitted parameters.

        None if categories were merged.
        """
        fit = self._local_result()
        if GROUP in fit.parameters:
            return None
        with one_blas_thread():
            if not is_class_fit(fit):
                return opinion_latent_classes(fit)
            from annotruth.models.robust_gpm.class_results import class_latent_classes

            return class_latent_classes(fit)

    def label_log_odds(self, first: Codes, second: Codes) -> Floats | None:
        """Return what each label adds to the log-odds of one category of its item over another.

        None where opinions differ. The odds are those of `class_log_odds`.
        """
        fit = self._local_result()
        pooled = pooled_labels(fit)
        if pooled is not None:
            fit = fit_of_merged(fit, pooled.labels)
            first, second = pooled.group[first], pooled.group[second]
        if not is_class_fit(fit):
            return None
        from annotruth.models.robust_gpm.label_likelihoods import class_log_odds

        odds = class_log_odds(fit, first, second)
        return odds if pooled is None else pooled.in_original_order(odds)

    def label_evidence(self) -> LabelEvidence | None:
        """Return how probable each label is if it is serious and if it is not.

        None if categories were merged.
        """
        from annotruth.models.robust_gpm.evidence import class_evidence, opinion_evidence

        fit, engine = self._local_result(), get_engine(self.engine)
        if GROUP in fit.parameters:
            return None
        with one_blas_thread():
            return (class_evidence if is_class_fit(fit) else opinion_evidence)(fit, engine)

    def fit_parts(self, parts: Parts) -> PartedFit:
        """Fit parts of annotators' labels as annotators, starting from the fitted parameters.

        What held-out labels chose stays as it is.
        """
        from annotruth.models.robust_gpm.parts import fit_class_parts, fit_opinion_parts

        fit = self._local_result()
        with one_blas_thread():
            return (fit_class_parts if is_class_fit(fit) else fit_opinion_parts)(self, fit, parts)

    def fit_beside(
        self, people: Fit, labels: Labels, *, progress: ProgressCallback | None = None
    ) -> Fit:
        """Fit labels of which some count less (`Labels.annotator_weight`), and return the fit.

        ``people`` is a fit of this model to the labels of some annotators, which all count, and which
        come first among those of ``labels``, as do their items. What held-out labels chose in it, and
        whether labels agree better than chance, is not asked again: labels that depend on one another
        would predict each other.
        """
        self._check(labels)
        with one_blas_thread(), closing(get_engine(self.engine).open(labels)) as session:
            found = self._fit_weighted(labels, session, people, progress)
        assert isinstance(found, Fit)
        return self.load_fit(found).result_

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit, engine = self.result_, get_engine(self.engine)
        pooled = pooled_labels(fit)
        if pooled is not None:
            merged = self.without_pooling().load_fit(fit_of_merged(fit, pooled.labels))
            return pooled.predict(merged.predict_proba(item, annotator), item)
        with one_blas_thread():
            if not is_class_fit(fit):
                return predict_opinion_labels(fit, engine, item, annotator)
            from annotruth.models.robust_gpm.class_results import predict_class_labels

            return predict_class_labels(fit, engine, item, annotator)

    def _fit(
        self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None
    ) -> BaseFit:
        self._check(labels)
        if labels.annotator_weight is not None:
            raise InputError("labels that count less than others are fitted by fit_beside only")
        if self._pools and needs_pooling(labels):
            pooled = PooledLabels.of(labels, merge_categories(labels))
            merged = self.without_pooling()._fit(pooled.labels, progress, None)
            assert isinstance(merged, Fit)
            return pooled.expanded(merged)
        with one_blas_thread(), closing(get_engine(self.engine).open(labels)) as session:
            folds = Folds.of(labels)
            hashes = assign_folds(labels, session, folds)
            verdict = judge_agreement(labels, sampled_items(session, folds), hashes)
            if not self._has_one_truth(labels, session):
                _refuse_classifier(labels)
                return self._fit_opinions(labels, session, verdict, None, progress)
            # A classifier that predicts the labels shows that they are not drawn by chance.
            if verdict == "chance" and labels.classifier is None:
                return self._fit_chance(labels, session)
            return self._fit_classes(labels, session, folds, verdict, progress)

    def _fit_weighted(
        self,
        labels: Labels,
        session: Session,
        people: Fit,
        progress: ProgressCallback | None,
    ) -> BaseFit:
        """Fit labels of which some count less, as `fit_beside` does."""
        if not is_class_fit(people):
            return self._fit_opinions(labels, session, people.verdict, people, progress)
        if people.verdict == "chance":
            return self._fit_chance(labels, session)
        from annotruth.models.robust_gpm.class_results import ClassState, final_state

        before = ClassState.from_fit(people)
        steps = before.choice.candidate.steps(labels, session)
        start = steps.start_beside(before.parameters)
        parameters, history = self._run_class_em(steps, start, progress)
        state = final_state(steps, parameters, before.choice, before.verdict)
        return self._make_class_fit(steps, state, history)

    def _has_one_truth(self, labels: LabelSummary, session: Session) -> bool:
        """Whether items have one right label: as the option says, or as the labels do."""
        if self.truth != "auto":
            return self.truth == "class"
        if not labels.scale.is_ordinal or labels.n_categories <= 2:
            return True
        if labels.n_categories > _MAX_ORDINAL_CLASSES:
            return False
        steps = ClassSteps(TrueClasses(labels), session)
        parameters = self._run_plain_em(steps, steps.start())
        limit = min(_MAX_ADJACENT_RATIO, adjacent_ratio(labels.n_categories))
        return steps.items.max_adjacent_ratio(parameters) < limit

    def _fit_classes(
        self,
        labels: LabelSummary,
        session: Session,
        folds: Folds,
        verdict: Verdict | None,
        progress: ProgressCallback | None,
    ) -> BaseFit:
        """Fit items with one right label."""
        # Loaded only where items have one right label.
        from annotruth.models.robust_gpm.choice import choose
        from annotruth.models.robust_gpm.class_results import final_state

        sampled = sampled_items(session, folds)
        choice, alternative = choose(labels, sampled, folds, max_states=max_states(labels))
        steps = choice.candidate.steps(labels, session)
        parameters, history = self._run_class_em(steps, _class_start(steps, verdict), progress)
        state = final_state(steps, parameters, choice, verdict)
        if alternative is not None and alternative.weight >= _LEAST_WEIGHT:
            others = alternative.candidate.steps(labels, session)
            parameters = self._run_plain_em(others, _class_start(others, verdict))
            other = final_state(others, parameters, choice, verdict)
            state = state.averaged(other, alternative.weight)
        if labels.classifier is None:
            return self._make_class_fit(steps, state, history)

        def make(steps: ClassSteps, state: ClassState, history: History) -> BaseFit:
            if state.verdict == "chance":
                return self._fit_chance(labels, session)
            return self._make_class_fit(steps, state, history)

        from annotruth.models.robust_gpm.with_classifier import ClassifierFit

        assert isinstance(labels, Labels)
        engine, run = get_engine(self.engine), partial(self._run_class_em, progress=progress)
        return ClassifierFit(labels, engine, run, make).continue_from(steps, state, history)

    def _fit_chance(self, labels: LabelSummary, session: Session) -> BaseFit:
        """Fit items with one right label whose labels agree no better than chance."""
        from annotruth.models.robust_gpm.class_results import chance_history, chance_state

        steps, state = chance_state(labels, session)
        return self._make_class_fit(steps, state, chance_history(labels))

    def _run_class_em(
        self, steps: ClassSteps, start: ClassParameters, progress: ProgressCallback | None = None
    ) -> tuple[ClassParameters, History]:
        """Run EM where items have one right label."""
        tol = CLASS_TOL * self.tol
        return run_em(steps, start, tol=tol, max_iter=self.max_iter, progress=progress)

    def _run_plain_em(self, steps: ClassSteps, start: ClassParameters) -> ClassParameters:
        """Run EM for parameters that are not the result."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self._run_class_em(steps, start)[0]

    def _make_class_fit(self, steps: ClassSteps, state: ClassState, history: History) -> BaseFit:
        """Return the fit of a final state where items have one right label."""
        from annotruth.models.robust_gpm.class_results import make_class_fit

        return make_class_fit(
            steps, state, model=self.name, settings=self.settings(), history=history
        )

    def _fit_opinions(
        self,
        labels: LabelSummary,
        session: Session,
        verdict: Verdict | None,
        people: Fit | None,
        progress: ProgressCallback | None,
    ) -> BaseFit:
        """Fit items on which opinions differ, starting from a fit of some annotators if there is one."""
        steps = opinion_steps(OpinionShapes(labels), session, self.tol)
        start = steps.start()
        if people is not None:
            start = steps.start_beside(OpinionState.from_fit(people).parameters)
        parameters, history = self._run_em(steps, start, progress)
        state = OpinionState(parameters, steps.leave_one_out(parameters), steps.repeated_label)
        return make_opinion_fit(
            steps,
            state,
            model=self.name,
            settings=self.settings(),
            history=history,
            verdict=verdict,
        )

    def _check(self, labels: LabelSummary) -> None:
        """Refuse options and labels that the model cannot be fitted with."""
        check_loop_options(tol=self.tol, max_iter=self.max_iter)
        check_choice("truth", self.truth, get_args(Truth))
        if self.truth == "opinions":
            check_ordinal(labels.scale, f"{self.name} with truth='opinions'")
        if problem := size_problem(labels, pools=self._pools):
            raise InputError(
                f"these labels are too large for {self.name}: {problem}; merge categories, or "
                "choose another model, such as gpm (`--model gpm`)"
            )


class _UnpooledRobustGPM(RobustGPM):
    """RobustGPM with tables of all categories, however many there are."""

    _pools: ClassVar[bool] = False


def _class_start(steps: ClassSteps, verdict: Verdict | None) -> ClassParameters:
    """Return the start of EM where items have one right label.

    Shares of labels as a start would make annotators certain, and with too few labels to tell whether
    they agree, EM would not correct it.
    """
    return steps.start_without_labels() if verdict is None else steps.start()


def _refuse_classifier(labels: LabelSummary) -> None:
    """Refuse a classifier where opinions differ."""
    if labels.classifier is not None:
        raise InputError(
            "a classifier is for items with one right label, and on this scale opinions differ: pass "
            "truth='class' (`--set truth=class`), scale='nominal' (`--scale nominal`) or "
            "model='dawid-skene' (`--model dawid-skene`), or leave out the classifier"
        )


def is_class_fit(fit: BaseFit) -> bool:
    """Whether every item has one right label in a fit of RobustGPM."""
    return "state_prior" in fit.parameters
