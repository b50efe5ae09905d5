"""`Estimator`, the base of all models of labels, and the bases of those that are fitted by EM."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from annotruth.engines import (
    AUTO,
    DistributedLabels,
    Engine,
    Session,
    choose_engine,
    get_engine,
    native_engine,
)
from annotruth.errors import AnnotruthError, InputError, NotFittedError, option
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import (
    EMLoop,
    History,
    ProgressCallback,
    Steps,
    run_em,
    start_stage,
)
from annotruth.models.fits.make_fit import (
    BuildItemResults,
    fit_of_original,
    in_canonical_order,
    make_fit,
    of_distributions,
)
from annotruth.models.prediction import RowPredictor
from annotruth.models.registry import check_distributed, check_supported
from annotruth.models.result import Fit
from annotruth.observations import DuplicatePolicy, Labels, LabelSummary
from annotruth.observations.append import append_labels
from annotruth.observations.options import ReadOptions

if TYPE_CHECKING:
    from annotruth.models.latent_classes import LabelEvidence, LatentClasses, PartedFit, Parts

P = TypeVar("P")
S = TypeVar("S", bound=Steps[Any])


@dataclass(kw_only=True)
class Estimator(RowPredictor):
    """Base of all models, with the interface of scikit-learn.

    Options are keyword-only fields. ``fit`` does not change them, and stores the results in
    ``result_``. A subclass has a ``name``, and defines ``_fit`` and ``_predict_proba``; models that
    are fitted by EM derive from `annotruth.models.base.IterativeEstimator`.

    In all models an item's label is its most probable category, and an exact tie goes to the category
    that comes first on the scale. A known truth fixes the distribution, or the score, of its item.
    """

    parameter_axes: ClassVar[Mapping[str, str] | None] = None
    """The axes of each of the fit's ``parameters``, if labels are fitted in canonical order.

    Axes are "annotator", "category", "state" (states of the first category, of the second, ...) or
    another word. Parameters that are codes of categories end in "-> category".
    """

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        gold: Any = None,
        annotator_prior: Any = None,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        data
            Labels, a pandas, polars, pyarrow or Spark frame with item, annotator and label
            columns, or a list of (item, annotator, label) tuples.
        y
            Not used: scikit-learn passes it. Known truths are ``gold``.
        gold
            Known truths of some items: a frame of ``item, label``, a mapping, a Series or a list of
            (item, label) tuples.
        annotator_prior
            What is known about some annotators: their table from an earlier fit, or a mapping of
            annotator to reliability.
        progress
            Called after every iteration with a `Progress`.
        """
        self._check_option_types()
        engine = self.engine_for(data)
        labels: Any = engine.read(data, ReadOptions(), gold=gold, annotator_prior=annotator_prior)
        # The files of distributed labels are removed when they are fitted or refused.
        with closing(labels) if isinstance(labels, DistributedLabels) else nullcontext():
            check_supported(self, engine, labels)
            if getattr(self, "engine", None) == AUTO:
                name = choose_engine(self.name, labels)
                start_stage(progress, f"fitting {self.name} with the engine {name}")
                chosen = replace(self, engine=name)  # type: ignore[call-arg]
                fit = chosen.fit(labels, progress=progress).result_
                settings = {**fit.settings, "engine": f"{AUTO} ({name})"}
                return self.load_fit(replace(fit, settings=settings))
            ordinal_only, axes = self.capabilities.ordinal_only, self.parameter_axes
            if ordinal_only and labels.scale.reason:
                # A scale, unless somebody said that they are classes.
                labels = replace(labels, scale=labels.scale.with_order())
            is_ordinal = ordinal_only or labels.scale.is_ordinal
            reordered = axes is not None and in_canonical_order(labels, keep_categories=is_ordinal)
            if axes is None or not reordered:
                return self.load_fit(self._fit(labels, progress))
            try:
                fit = self._fit(reordered[0].labels, progress)
            except InputError:
                # Refused here too, with a message that names the first at fault in the caller's order.
                return self.load_fit(self._fit(labels, progress))
            return self.load_fit(fit_of_original(fit, labels, reordered, axes))

    def engine_for(self, data: Any) -> Engine:
        """Return the engine to read and fit the data with; raise if it cannot read them."""
        engine = get_engine(getattr(self, "engine", "memory"))
        home = native_engine(data)
        if home is not None and engine.name != home:
            check_distributed(self)
            raise InputError(
                f"these labels are on {home}: pass {option('engine', home)}, or collect them into memory"
            )
        if engine.capabilities.distributed:
            check_distributed(self)
        engine.capabilities.check(engine.name, *self.capabilities.needs, model=self.name)
        return engine

    def load_fit(self, fit: Fit) -> Self:
        """Use an earlier fit, such as a saved one, as this estimator's result; return the estimator."""
        self._result = fit
        return self

    @property
    def result_(self) -> Fit:
        """The fit. Of labels on a distributed engine its kind is "distributed"."""
        if not hasattr(self, "_result"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._result

    def partial_fit(
        self,
        data: Any,
        y: object = None,
        *,
        gold: Any = None,
        duplicates: DuplicatePolicy = "refuse",
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Add labels to those of the last fit, and fit all of them.

        The result is that of `fit` with all labels.

        Parameters
        ----------
        data
            As for `fit`; items and annotators may be new, categories may not.
        y
            Not used: scikit-learn passes it.
        gold
            Known truths, of new or old items.
        duplicates
            What to do if an annotator gives an item another label: "refuse", "keep" (both count) or
            "last" (the new label replaces the old one). The same label again is left out, unless
            this is "keep".
        progress
            Called after every iteration.
        """
        self._check_option_types()
        new = data if isinstance(data, Labels) else Labels.of(data, duplicates=duplicates)
        if not hasattr(self, "_result"):
            return self.fit(new, gold=gold, progress=progress)
        previous = self._local_result()
        appended = append_labels(previous.data, new, gold=gold, duplicates=duplicates)
        self.fit(appended.table, progress=progress)
        return self.load_fit(replace(self._result, chosen=previous.chosen))

    @abstractmethod
    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        """Fit checked labels."""

    def latent_classes(self) -> LatentClasses | None:
        """Return the fitted model's latent classes for `annotruth.analyses.advice`; None if it has none."""
        return None

    def label_log_odds(self, first: Codes, second: Codes) -> Floats | None:
        """Return what each label adds to the log-odds of one category of its item over another.

        ``first`` and ``second`` are one category per item. The sum over an item's labels and the
        log-odds before them is the log-odds after. None for models where items have no right
        label, or labels no such odds.
        """
        return None

    def label_evidence(self) -> LabelEvidence | None:
        """Return how probable each label is if it is serious and if it is not.

        None for models whose annotators are not serious or irregular.
        """
        return None

    def fit_parts(self, parts: Parts) -> PartedFit | None:
        """Fit parts of annotators' labels as annotators, starting from the fitted parameters.

        None for models that have no `label_evidence`.
        """
        return None

    def _local_result(self) -> Fit:
        fit = self.result_
        if fit.kind == "distributed":
            raise AnnotruthError(
                "this fit is distributed: use the tables of result_, which are frames of its engine"
            )
        return fit


@dataclass(kw_only=True)
class EMEstimator(Estimator):
    """Base of models that are fitted by EM, in one run or in several.

    Parameters
    ----------
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels.
    engine
        Where the passes over the labels run.
    """

    tol: float = 1e-4
    max_iter: int = 1000
    acceleration: bool = True
    engine: str | Engine = "memory"

    def _check(self, labels: LabelSummary) -> None:
        """Refuse options and labels that the model cannot be fitted with."""

    def loop(self) -> EMLoop:
        """Return the options of the EM loop."""
        return EMLoop(self.tol, self.max_iter, self.acceleration)

    def _run_em(
        self, steps: Steps[P], start: P, progress: ProgressCallback | None = None
    ) -> tuple[P, History]:
        return run_em(steps, start, self.loop(), progress=progress)


@dataclass(kw_only=True)
class IterativeEstimator(EMEstimator, Generic[S]):
    """Base of models that are fitted by one run of EM: a subclass supplies steps and what they estimate.

    Its options are those of `EMEstimator`.
    """

    item_arrays: ClassVar[tuple[str, ...]] = ()
    """The session's arrays that the results of items are built from."""

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        self._check(labels)
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = self._steps(labels, session)
            parameters, history = self._run_em(steps, steps.start(), progress)
            return self._make_fit(labels, session, steps, parameters, history)

    def _make_fit(
        self, labels: Labels, session: Session, steps: S, parameters: Any, history: History
    ) -> Fit:
        """Return the fit with the final parameters, which `Steps.finalize` has been called with."""
        return make_fit(
            labels,
            session,
            self.item_arrays,
            self._item_results(steps),
            model=self.name,
            settings=self.settings(),
            history=history,
            **self._estimates(steps, parameters),
        )

    @abstractmethod
    def _steps(self, labels: Labels, session: Session) -> S:
        """Return the model's equations over a session."""

    @abstractmethod
    def _estimates(self, steps: S, parameters: Any) -> dict[str, Any]:
        """Return the fields of the fit that do not follow from `item_arrays`."""

    def _item_results(self, steps: S) -> BuildItemResults:
        """Return what builds the results of items from `item_arrays`, on the workers of some engines."""
        return of_distributions
