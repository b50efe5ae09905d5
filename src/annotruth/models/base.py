"""What every estimator offers: scikit-learn's fit, crowd-kit's fit_predict, one result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import closing, nullcontext
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from annotruth.engines import DistributedLabels, Engine, Session, get_engine, native_engine
from annotruth.errors import AnnotruthError, InputError, NotFittedError
from annotruth.io.options import ReadOptions
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import DuplicatePolicy, Labels, LabelSummary
from annotruth.labels.append import append_labels
from annotruth.labels.encode import to_text
from annotruth.labels.frames import need_pandas
from annotruth.labels.validate import check_option
from annotruth.models.base_fit import BaseFit
from annotruth.models.em import History, ProgressCallback, Steps, run_em
from annotruth.models.result import Fit

if TYPE_CHECKING:
    import pandas as pd

    from annotruth.models.latent_classes import LatentClasses

P = TypeVar("P")


@dataclass(frozen=True)
class Capabilities:
    """What a model can do beyond fitting labels in memory.

    Attributes
    ----------
    annotator_prior
        Whether it uses knowledge about annotators from earlier work.
    out_of_core
        Whether it fits labels on disk, without an array of them in memory.
    distributed
        Whether it fits labels on other machines: it uses nothing but a `LabelSummary` and passes.
    ordinal_only
        Whether its results need categories that have an order.
    """

    annotator_prior: bool = False
    out_of_core: bool = False
    distributed: bool = False
    ordinal_only: bool = False


@dataclass(kw_only=True)
class Estimator(ABC):
    """Base of all models.

    Options are keyword-only fields; ``fit`` does not change them and stores what it estimated in
    ``result_``.
    """

    name: ClassVar[str]
    """The model's name on the command line."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    """What the model can do beyond fitting labels in memory."""

    def fit(
        self,
        data: Any,
        *,
        gold: Any = None,
        annotator_prior: Any = None,
        warm_start: Fit | None = None,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        data
            Labels, a pandas, polars, pyarrow or Spark frame with item, annotator and label
            columns, or a list of (item, annotator, label) tuples.
        gold
            Known truths of some items: a frame of ``item, label``, a mapping or a Series.
        annotator_prior
            What is known about some annotators: their table from an earlier fit, or a mapping of
            annotator to reliability.
        warm_start
            A fit of the same model to start from. Its items and annotators must come first in
            ``data``, in the same order, as in labels that were appended to.
        progress
            Called after every iteration with a `Progress`.
        """
        self._check_option_types()
        engine = self.engine_for(data)
        labels = engine.read(data, ReadOptions(), gold=gold, annotator_prior=annotator_prior)
        # The files of distributed labels are removed when they are fitted or refused.
        with closing(labels) if isinstance(labels, DistributedLabels) else nullcontext():
            self.check_supported(engine, labels)
            previous = (
                None if warm_start is None else check_warm_start(self.name, warm_start, labels)
            )
            # A model that fits distributed labels uses nothing but their summary.
            return self.load_fit(self._fit(cast("Labels", labels), progress, previous))

    def _check_option_types(self) -> None:
        """Refuse options of a wrong type."""
        types = {option.name: str(option.type) for option in fields(self)}
        for name, value in self.get_params().items():
            check_option(name, types[name], value)

    def engine_for(self, data: Any) -> Engine:
        """Return the engine that reads and fits the data: the option's, which must suit them."""
        engine = get_engine(getattr(self, "engine", "memory"))
        home = native_engine(data)
        if home is not None and engine.name != home:
            self.check_distributed()
            raise InputError(f"these labels are on {home}: choose engine={home!r}, or collect them")
        if engine.capabilities.distributed:
            self.check_distributed()
        return engine

    def check_supported(self, engine: Engine, labels: LabelSummary) -> None:
        """Refuse labels that the model cannot fit."""
        if labels.annotator_prior is not None and not self.capabilities.annotator_prior:
            raise InputError(
                f"{self.name} takes no annotator_prior (`--annotator-prior`): choose "
                f"{_names_with('annotator_prior')}"
            )
        if labels.on_disk:
            self.check_out_of_core()

    def check_distributed(self) -> None:
        """Refuse a distributed engine if the model cannot run there."""
        if not self.capabilities.distributed:
            raise InputError(
                f"{self.name} runs on the engines memory and reference only; on a distributed "
                f"engine choose {_names_with('distributed')}"
            )

    def check_out_of_core(self) -> None:
        """Refuse labels on disk if the model would load them into memory."""
        if not self.capabilities.out_of_core:
            raise InputError(
                f"{self.name} needs all labels in memory: leave out memory (`--memory`), or choose "
                f"{_names_with('out_of_core')}"
            )

    def load_fit(self, fit: BaseFit) -> Self:
        """Continue from a fit made before, such as a saved one, to predict from it or update it."""
        self._result = fit
        return self

    @property
    def result_(self) -> Fit:
        """The fit. Of labels on a distributed engine it is a `DistributedFit`."""
        if not hasattr(self, "_result"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return cast("Fit", self._result)

    def partial_fit(
        self,
        data: Any,
        *,
        gold: Any = None,
        duplicates: DuplicatePolicy = "refuse",
        refit: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Add labels to those fitted before, and fit all of them starting from the last fit.

        Parameters
        ----------
        data
            As for `fit`; items and annotators may be new, categories may not.
        gold
            Known truths, of new or old items.
        duplicates
            What to do when a person labels an item again: "refuse", "keep" (two votes) or "last"
            (the new one counts).
        refit
            Whether to fit all labels from scratch instead.
        progress
            Called after every iteration.
        """
        self._check_option_types()
        new = data if isinstance(data, Labels) else Labels.of(data, duplicates=duplicates)
        if not hasattr(self, "_result"):
            return self.fit(new, gold=gold, progress=progress)
        previous = self._local_result()
        labels = append_labels(previous.data, new, gold=gold, duplicates=duplicates)
        self.fit(labels, warm_start=None if refit else previous, progress=progress)
        return self.load_fit(replace(self._result, chosen=previous.chosen))

    @abstractmethod
    def _fit(
        self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None
    ) -> BaseFit:
        """Fit checked labels, starting from a previous fit if there is one."""

    def predict_proba(self, item: ArrayLike, annotator: ArrayLike) -> Floats:
        """Return the probability of each category if the annotator labelled the item.

        Parameters
        ----------
        item, annotator
            Codes of the fitted labels, places in ``result_.data.items`` and
            ``result_.data.annotators``: one of each for every label to predict.

        Returns
        -------
        ndarray
            One row per label to predict, one column per category; rows sum to 1. Labels that were
            fitted are not new to the model: to measure how well it predicts, fit without them, as
            `annotruth.held_out` does.
        """
        data = self._local_result().data
        items, annotators = (np.asarray(codes, dtype=np.int64) for codes in (item, annotator))
        if items.ndim != 1 or items.shape != annotators.shape:
            raise InputError(
                "predict_proba expects as many item codes as annotator codes, in two lists"
            )
        if not len(items):
            return np.empty((0, data.n_categories))
        for codes, n, role in (
            (items, data.n_items, "item"),
            (annotators, data.n_annotators, "annotator"),
        ):
            if not (codes.min() >= 0 and codes.max() < n):
                raise InputError(f"predict_proba expects {role} codes from 0 to {n - 1:,}")
        return self._predict_proba(items, annotators)

    @abstractmethod
    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        """Return the probability of each category, from checked codes."""

    def latent_classes(self) -> LatentClasses | None:
        """Return the fitted model's latent classes for `annotruth.advice`; None if it has none."""
        return None

    def settings(self) -> dict[str, Any]:
        """Return the options this estimator was made with, as strings and numbers."""
        return {name: _plain(value) for name, value in self.get_params().items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options this estimator was made with (scikit-learn's interface)."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def set_params(self, **options: Any) -> Self:
        """Set options (scikit-learn's interface)."""
        self.check_options(options)
        for name, value in options.items():
            setattr(self, name, value)
        return self

    @classmethod
    def check_options(cls, options: Iterable[str]) -> None:
        """Refuse options that the model does not have."""
        known = [f.name for f in fields(cls) if f.init]
        for name in options:
            if name not in known:
                has = ", ".join(known) or "none"
                raise InputError(f"{cls.name} has no option {name!r}: it has {has}")

    def fit_predict(self, data: Any, true_labels: Any = None) -> pd.Series[Any]:
        """Fit and return the label of each item (crowd-kit's interface): a Series by item."""
        return self.fit(data, gold=true_labels).labels_

    def fit_predict_proba(self, data: Any, true_labels: Any = None) -> pd.DataFrame:
        """Fit and return each item's distribution (crowd-kit's interface): a frame by item."""
        return self.fit(data, gold=true_labels).probas_

    @property
    def labels_(self) -> pd.Series[Any]:
        """The label of each item (crowd-kit's name and form)."""
        table = self._local_result().item_table()
        return self._column(table, "label", index="task", name_as="agg_label")

    @property
    def probas_(self) -> pd.DataFrame:
        """The distribution of each item, one column per category (crowd-kit's name and form)."""
        need_pandas()
        import pandas as pd

        fit = self._local_result()
        if fit.distribution is None:
            raise AnnotruthError(
                f"{self.name} estimates scores, not distributions: use result_.items() instead"
            )
        return pd.DataFrame(
            fit.distribution.dense(fit.data.n_categories),
            index=pd.Index(fit.data.items.to_pandas(), name="task"),
            columns=fit.data.scale.categories.to_pylist(),
        )

    @property
    def skills_(self) -> pd.Series[Any]:
        """The reliability of each annotator (crowd-kit's name and form)."""
        table = self._local_result().annotator_table()
        return self._column(table, "reliability", index="worker", name_as="skill")

    def _column(self, table: pa.Table, name: str, *, index: str, name_as: str) -> pd.Series[Any]:
        """Return a column of a table as a Series indexed by its first column, the id."""
        need_pandas()
        import pandas as pd

        if name not in table.column_names:
            raise AnnotruthError(f"{self.name} has no column {name!r}: see the tables of result_")
        ids = pd.Index(table.column(0).to_pandas(), name=index)
        return pd.Series(table[name].to_pandas().to_numpy(), index=ids, name=name_as)

    def _local_result(self) -> Fit:
        fit: BaseFit = self.result_
        if not isinstance(fit, Fit):
            raise AnnotruthError(
                "this fit is distributed: its items, annotators and labels are frames of result_"
            )
        return fit


S = TypeVar("S", bound=Steps[Any])


@dataclass(kw_only=True)
class IterativeEstimator(Estimator, Generic[S]):
    """Base of the models that are fitted by EM: a subclass supplies steps and reads the result.

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

    def _fit(
        self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None
    ) -> BaseFit:
        self._check(labels)
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = self._steps(labels, session)
            if previous is None:
                parameters, history = self._run_em(steps, steps.start(), progress)
            else:
                parameters, history = self._resume_em(steps, steps.resume(previous), progress)
            return self._make_fit(labels, session, steps, parameters, history)

    def _run_em(
        self, steps: Steps[P], start: P, progress: ProgressCallback | None = None
    ) -> tuple[P, History]:
        return run_em(
            steps,
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            accelerate=self.acceleration,
            progress=progress,
        )

    def _resume_em(
        self, steps: Steps[P], start: P, progress: ProgressCallback | None
    ) -> tuple[P, History]:
        """Run EM from the parameters of a previous fit, by default with the same stopping rule."""
        return self._run_em(steps, start, progress)

    def _check(self, labels: LabelSummary) -> None:
        """Refuse options and labels that the model cannot be fitted with."""

    @abstractmethod
    def _steps(self, labels: Labels, session: Session) -> S:
        """Return the model's equations over a session."""

    @abstractmethod
    def _make_fit(
        self, labels: Labels, session: Session, steps: S, parameters: Any, history: History
    ) -> BaseFit:
        """Return the fit with the final parameters, which `Steps.finalize` has been called with."""


def check_warm_start(model: str, previous: BaseFit, labels: LabelSummary) -> Fit:
    """Return the previous fit; raise if it is of another model or of other labels."""
    if not (isinstance(previous, Fit) and isinstance(labels, Labels)):
        raise InputError("warm_start is for labels on this machine: leave it out")
    if previous.model != model:
        raise InputError(f"warm_start is a fit of {previous.model}, not of {model}")
    data = previous.data
    same_ids = all(
        # Ids that were numbers are text once there are words among them.
        (old if old.type == new.type else to_text(old)).equals(new[: len(old)])
        for old, new in ((data.items, labels.items), (data.annotators, labels.annotators))
    )
    if not (same_ids and data.scale.categories.equals(labels.scale.categories)):
        raise InputError(
            "warm_start is a fit of other labels: its items, annotators and categories must come "
            "first in the data, in the same order"
        )
    return previous


def _names_with(capability: str) -> str:
    """Return the names of the models that have a capability, as a list in words."""
    from annotruth.models.registry import MODELS, get_model

    names = [name for name in MODELS if getattr(get_model(name).capabilities, capability)]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _plain(value: Any) -> Any:
    """Return strings and numbers as they are; an object, such as an engine, by its class."""
    return value if isinstance(value, str | int | float | None) else type(value).__name__
