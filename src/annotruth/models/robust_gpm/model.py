"""RobustGPM, the default model: GPM for few labels per item, with named irregular behaviors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from annotruth.engines import Session, get_engine
from annotruth.errors import InputError, option, setting
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import EMEstimator
from annotruth.models.em import ProgressCallback, check_loop_options, one_blas_thread
from annotruth.models.evidence.chance import Folds, assign_folds, judge_agreement
from annotruth.models.latent_classes import LabelEvidence, LatentClasses, PartedFit, Parts
from annotruth.models.registry import Capabilities
from annotruth.models.result import Fit
from annotruth.models.robust_gpm import readouts
from annotruth.models.robust_gpm.class_model import RightLabelModel
from annotruth.models.robust_gpm.class_results import class_latent_classes, class_log_odds
from annotruth.models.robust_gpm.class_steps import ClassSteps, is_class_fit
from annotruth.models.robust_gpm.opinion_model import OpinionModel, OpinionState, final_model
from annotruth.models.robust_gpm.opinions import adjacent_ratio
from annotruth.models.robust_gpm.pooling import (
    GROUP,
    PREFIX,
    PooledLabels,
    fit_of_merged,
    merge_categories,
    needs_pooling,
    pooled_labels,
    size_problem,
)
from annotruth.models.robust_gpm.states import TrueClasses
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.validate import check_choice, check_ordinal

Truth = Literal["auto", "class", "opinions"]

# With truth="auto", items on ordinal scales have one right label only if there are clearly fewer serious
# labels next to the class, per label on it, than this and than shapes of opinion have.
_MAX_ADJACENT_RATIO = 0.5
_MAX_ORDINAL_CLASSES = 12  # on ordinal scales of more categories, opinions differ in any case


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
    otherwise. Unlike in GPM, an item is in one of a few latent states z, which are summed out, so that a
    label cannot confirm itself, and an annotator has a posterior over response strategies g:

    .. math:: p(r_{e,s} = n \mid z, g) = \epsilon_g \theta_z(n) + (1 - \epsilon_g) b_g(n \mid z),

    with a reliability :math:`\epsilon_g` and an irregular behavior :math:`b_g`: *random*, *repeated* (the
    label whose share the annotator has most above the crowd's) and, on ordinal scales, *inverted* and
    *mixed* (`annotruth.models.robust_gpm.strategies`).

    **Two models**, of which one is fitted. If every item has one right label, states are classes with
    subtypes (`annotruth.models.robust_gpm.class_model.RightLabelModel`). If opinions differ, they are
    shapes of opinion (`annotruth.models.robust_gpm.opinion_model.OpinionModel`). With ``truth="auto"``,
    items on scales that are nominal or have two categories have one right label, and opinions differ on
    ordinal scales of more than 12 categories. On the others items have one right label if serious labels
    next to an item's class are clearly (by two standard errors) fewer than half of those on it, in a fit
    with one right label; with 3 and 4 categories, fewer than in the shapes of opinion.

    **Around them** are the test of labels against labels drawn by chance, whose result is ``verdict``
    (`annotruth.models.evidence.chance`), the calibration of a classifier
    (`annotruth.models.evidence.classifier`), and pairs of annotators who depend on one another
    (`annotruth.models.evidence.dependent_annotators`). Many categories are merged for the fit
    (`annotruth.models.robust_gpm.pooling`).

    **Annotators.** ``reliability``, its 95% interval and ``bias`` (where opinions differ, how far serious
    labels are above the crowd's) are leave-one-out (`annotruth.models.robust_gpm.annotators`). A second
    stage, `annotruth.models.people`, allows annotators skills and tendencies of their own: it has
    ``accuracy``, ``p_spammer``, ``evidence``, ``agreement`` and ``spammer``, of whom at most 5% are
    expected to be fine. An annotator prior counts as labels that are known to be serious, or not to be.

    **Limitations.** In twenty sorts of simulated crowds with 3 to 25 labels per item, 95% intervals
    contained 94 to 97% of the scores and of the reliabilities; of scores 89% where annotators gave a
    single label, and 74% where more than half of all labels were inverted. With 3 categories, items with
    one right label may be mistaken for ones about which opinions differ; ``truth="class"`` helps. Long
    scales whose labels pile up at one end, such as sliders left at 0, are not Beta distributions.

    Parameters
    ----------
    truth
        "class": every item has one right label. "opinions": serious annotators differ. "auto": the
        labels decide.
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`; acceleration only where opinions differ.

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
            if is_class_fit(fit):
                return class_latent_classes(fit)
            return final_model(fit.data, OpinionState.from_fit(fit)).classes

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
        odds = class_log_odds(fit, first, second)
        return odds if pooled is None else pooled.in_original_order(odds)

    def label_evidence(self) -> LabelEvidence | None:
        """Return how probable each label is if it is serious and if it is not.

        None if categories were merged.
        """
        fit = self._local_result()
        if GROUP in fit.parameters:
            return None
        return readouts.label_evidence(fit, get_engine(self.engine))

    def fit_parts(self, parts: Parts) -> PartedFit:
        """Fit parts of annotators' labels as annotators, starting from the fitted parameters."""
        return readouts.fit_parts(self, self._local_result(), parts)

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
            found = (
                RightLabelModel(self).fit_beside(people, labels, session, progress)
                if is_class_fit(people)
                else OpinionModel(self).fit(labels, session, people.verdict, progress, people)
            )
        return self.load_fit(found).result_

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit = self.result_
        pooled = pooled_labels(fit)
        if pooled is not None:
            merged = self.without_pooling().load_fit(fit_of_merged(fit, pooled.labels))
            return pooled.predict(merged.predict_proba(item, annotator), item)
        model = RightLabelModel(self) if is_class_fit(fit) else OpinionModel(self)
        with one_blas_thread():
            return model.predict_proba(fit, item, annotator)

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        self._check(labels)
        if labels.annotator_weight is not None:
            raise InputError("labels that count less than others are fitted by fit_beside only")
        if self._pools and needs_pooling(labels):
            pooled = PooledLabels.of(labels, merge_categories(labels))
            merged = self.without_pooling()._fit(pooled.labels, progress)
            return pooled.expanded(merged)
        with one_blas_thread(), closing(get_engine(self.engine).open(labels)) as session:
            folds = Folds.of(labels)
            hashes = assign_folds(labels, session, folds)
            verdict = judge_agreement(labels, session, hashes)
            if self._has_one_truth(labels, session):
                return RightLabelModel(self).fit(labels, session, folds, verdict, progress)
            return OpinionModel(self).fit(labels, session, verdict, progress)

    def _has_one_truth(self, labels: LabelSummary, session: Session) -> bool:
        """Whether items have one right label: as the option says, or as the labels do."""
        if self.truth != "auto":
            return self.truth == "class"
        if not labels.scale.is_ordinal or labels.n_categories <= 2:
            return True
        if labels.n_categories > _MAX_ORDINAL_CLASSES:
            return False
        steps = ClassSteps(TrueClasses(labels), session)
        parameters, _ = steps.run_em(steps.start(), self.loop(), warn=False)
        limit = min(_MAX_ADJACENT_RATIO, adjacent_ratio(labels.n_categories))
        return steps.items.max_adjacent_ratio(parameters) < limit

    def _check(self, labels: LabelSummary) -> None:
        """Refuse options and labels that the model cannot be fitted with."""
        check_loop_options(tol=self.tol, max_iter=self.max_iter)
        check_choice("truth", self.truth, get_args(Truth))
        if self.truth == "opinions":
            check_ordinal(labels.scale, f"{self.name} with {setting('truth', 'opinions')}")
        if problem := size_problem(labels, pools=self._pools):
            raise InputError(
                f"these labels are too large for {self.name}: {problem}; merge categories, or "
                f"choose another model, such as {option('model', 'gpm')}"
            )


class _UnpooledRobustGPM(RobustGPM):
    """RobustGPM with tables of all categories, however many there are."""

    _pools: ClassVar[bool] = False
