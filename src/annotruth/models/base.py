"""What every estimator offers: scikit-learn's fit, crowd-kit's fit_predict, one result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from annotruth.engines import name_of
from annotruth.errors import AnnotruthError, InputError, NotFittedError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import DuplicatePolicy, Labels, LabelSummary
from annotruth.labels.append import AppendedLabels
from annotruth.labels.frames import is_spark_frame, need_pandas
from annotruth.labels.validate import check_option
from annotruth.models.base_fit import BaseFit
from annotruth.models.em import ProgressCallback
from annotruth.models.incremental import Updatable, Updates, update_told
from annotruth.models.registry import UPDATABLE
from annotruth.models.result import Fit

if TYPE_CHECKING:
    import pandas as pd


@dataclass(kw_only=True)
class Estimator(ABC):
    """Base of all models.

    Options are keyword-only fields; ``fit`` leaves them alone and puts what it learned into
    ``result_``.
    """

    name: ClassVar[str]
    """The model's name on the command line."""

    takes_annotator_prior: ClassVar[bool] = False
    """Whether it makes use of an annotator prior."""

    fits_on_disk: ClassVar[bool] = False
    """Whether it takes labels that are on disk, holding no array of them in memory."""

    fits_on_spark: ClassVar[bool] = False
    """Whether it asks of labels what a tally has, and leaves items where they are."""

    updates_from: ClassVar[int] = 0
    """From how many labels on an update saves time; fewer are all fitted anew."""

    needs_order: ClassVar[bool] = False
    """Whether its answers mean something only where the categories have an order."""

    def fit(
        self,
        data: Any,
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
        gold
            Known truths of some items: a frame of ``item, label``, a mapping or a Series.
        annotator_prior
            What is known of some annotators: their table from an earlier fit, or a mapping of
            annotator to reliability.
        progress
            Called after every iteration with a `Progress`.
        """
        self._check_kinds()
        if self._engine_name == "spark":
            self.check_fits_on_spark()
        if is_spark_frame(data) or (
            isinstance(data, LabelSummary) and not isinstance(data, Labels)
        ):
            return self._fit_on_spark(data, gold, annotator_prior, progress)
        labels = Labels.of(data)
        if gold is not None:
            labels = labels.with_gold(gold)
        if annotator_prior is not None:
            labels = labels.with_annotator_prior(annotator_prior)
        if labels.annotator_prior is not None and not self.takes_annotator_prior:
            raise InputError(f"{self.name} takes no annotator prior: use robust-gpm")
        if labels.on_disk:
            self.check_fits_on_disk()
        self.resume(self._fit(labels, progress))
        return self

    def _check_kinds(self) -> None:
        """Refuse options of a wrong type."""
        kinds = {option.name: str(option.type) for option in fields(self)}
        for name, value in self.get_params().items():
            check_option(name, kinds[name], value)

    @property
    def _engine_name(self) -> str:
        return name_of(getattr(self, "engine", "memory"))

    def _fit_on_spark(
        self, data: Any, gold: Any, annotator_prior: Any, progress: ProgressCallback | None
    ) -> Self:
        """Fit labels that are on Spark, and remove what they were laid out in."""
        from annotruth.engines.spark import SparkLabels, spark_engine

        engine = spark_engine(getattr(self, "engine", "memory"))
        if annotator_prior is not None:
            raise InputError("annotator_prior is not for labels on Spark: leave it out")
        labels = data if isinstance(data, SparkLabels) else engine.labels_of(data, gold=gold)
        with closing(labels):
            # A model that fits on Spark asks for no more than a tally has.
            self.resume(self._fit(cast("Labels", labels), progress))
        return self

    def check_fits_on_spark(self) -> None:
        """Refuse Spark if the model cannot run there."""
        if not self.fits_on_spark:
            raise InputError(
                f"{self.name} cannot run on Spark, but on the engines memory and reference; on "
                "Spark choose gpm, robust-gpm or dawid-skene"
            )

    def check_fits_on_disk(self) -> None:
        """Refuse labels on disk if the model would take them into memory."""
        if not self.fits_on_disk:
            raise InputError(
                f"{self.name} holds all labels in memory: leave the memory out, or choose gpm, "
                "robust-gpm or dawid-skene"
            )

    def resume(self, fit: BaseFit) -> Self:
        """Take up a fit made before, such as one from disk, to ask it or to update it."""
        self._result = fit
        self._updates: Updates[Any] | None = None
        return self

    @property
    def result_(self) -> Fit:
        """The fit; after `partial_fit` all labels are passed over once to make it whole.

        Of labels on Spark it is an `annotruth.SparkFit`.
        """
        if not hasattr(self, "_result"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        if self._updates is not None and self._updates.pending:
            self._make_whole()
        return cast("Fit", self._result)

    def partial_fit(
        self,
        data: Any,
        *,
        gold: Any = None,
        duplicates: DuplicatePolicy = "refuse",
        touch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Take in more labels without a new fit of all.

        The items concerned and their annotators are fitted anew, the others stay as they are.
        ``update_`` tells at once what came of them; ``result_`` is made whole when it is asked for.
        Where there are so few labels that a fit of all takes no longer, there is one.

        Parameters
        ----------
        data
            As for `fit`; items and annotators may be new, categories may not.
        gold
            Known truths, of new or old items.
        duplicates
            What to do when a person labels an item again: "refuse", "keep" (two votes) or "last"
            (the new one counts).
        touch
            Whether to iterate over all labels at the end, to where a full fit would end. A model
            that cannot be updated is fitted to all labels anew.
        progress
            Called after every iteration over all labels.
        """
        if not hasattr(self, "_result"):
            return self.fit(Labels.of(data, duplicates=duplicates), gold=gold, progress=progress)
        self._check_kinds()
        new = data if isinstance(data, Labels) else Labels.of(data, duplicates=duplicates)
        if self._updates is None:
            before = self._fitted()
            if not touch:
                self.check_updatable()
            if self.name not in UPDATABLE or before.data.n_labels < self.updates_from:
                grown, touched = AppendedLabels.of(before.data).and_(
                    new, gold=gold, duplicates=duplicates
                )
                self._anew(grown.merged(), progress)
                if self.name in UPDATABLE:
                    self.update_ = update_told(before, self.result_, grown, touched)
                return self
            self._updates = Updates(cast("Updatable[Any]", self), before)
        self.update_ = self._updates.add(new, gold=gold, duplicates=duplicates)
        if touch or self._updates.many:
            self._make_whole(touch=touch, progress=progress)
        return self

    def _anew(self, labels: Labels, progress: ProgressCallback | None) -> None:
        """Fit old and new labels together."""
        chosen = self._result.chosen
        self.fit(labels, progress=progress)
        self.resume(replace(self._result, chosen=chosen))

    def _make_whole(self, *, touch: bool = False, progress: ProgressCallback | None = None) -> None:
        assert self._updates is not None
        whole = self._updates.whole(touch=touch, progress=progress)
        self.resume(replace(whole, chosen=self._result.chosen))

    def _touched(
        self, known: Any, labels: Labels, theta: Any, progress: ProgressCallback | None
    ) -> BaseFit:
        """End an update where a full fit does: by one, unless a model has a shorter way."""
        return self._fit(labels, progress)

    def check_updatable(self) -> None:
        """Refuse a model that cannot take in labels."""
        if self.name not in UPDATABLE:
            raise InputError(
                f"{self.name} cannot be updated, only {', '.join(UPDATABLE[:-1])} and "
                f"{UPDATABLE[-1]} can: ask for a refit of all labels"
            )

    @abstractmethod
    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> BaseFit:
        """Fit checked labels."""

    def predict_proba(self, item: ArrayLike, annotator: ArrayLike) -> Floats:
        """Predict labels: how likely each category is, were the annotator to label the item.

        Parameters
        ----------
        item, annotator
            Codes of the fitted labels, places in ``result_.data.items`` and
            ``result_.data.annotators``: one of each for every label asked for.

        Returns
        -------
        ndarray
            One row a label asked for, one column a category; rows sum to 1. A label that the
            person has already given there is no surprise to the model: to measure how well it
            predicts, fit without that label, as `annotruth.held_out` does.
        """
        data = self._fitted().data
        items, people = np.asarray(item, dtype=np.int64), np.asarray(annotator, dtype=np.int64)
        if items.ndim != 1 or items.shape != people.shape:
            raise InputError(
                "predict_proba expects as many item codes as annotator codes, in two lists"
            )
        if not len(items):
            return np.empty((0, data.n_categories))
        for codes, n, role in (
            (items, data.n_items, "item"),
            (people, data.n_annotators, "annotator"),
        ):
            if not (codes.min() >= 0 and codes.max() < n):
                raise InputError(f"predict_proba expects {role} codes from 0 to {n - 1:,}")
        return self._predict_proba(items, people)

    @abstractmethod
    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        """Predict labels after a fit, from checked codes."""

    def settings(self) -> dict[str, Any]:
        """Return the options this estimator was made with, in words and numbers."""
        return {name: _plain(value) for name, value in self.get_params().items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options this estimator was made with (scikit-learn's name and form)."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def set_params(self, **options: Any) -> Self:
        """Set options (scikit-learn's name and form)."""
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
        """Fit and return the label of each item, as crowd-kit does: a Series by item."""
        return self.fit(data, gold=true_labels).labels_

    def fit_predict_proba(self, data: Any, true_labels: Any = None) -> pd.DataFrame:
        """Fit and return each item's distribution, as crowd-kit does: a frame by item."""
        return self.fit(data, gold=true_labels).probas_

    @property
    def labels_(self) -> pd.Series[Any]:
        """The label of each item (crowd-kit's name and form)."""
        return self._column(self._fitted().item_table(), "label", by="task", called="agg_label")

    @property
    def probas_(self) -> pd.DataFrame:
        """The distribution of each item, one column a category (crowd-kit's name and form)."""
        need_pandas()
        import pandas as pd

        fit = self._fitted()
        if fit.distribution is None:
            raise AnnotruthError(
                f"{self.name} gives scores, not distributions: see result_.items()"
            )
        return pd.DataFrame(
            fit.distribution.dense(fit.data.n_categories),
            index=pd.Index(fit.data.items.to_pandas(), name="task"),
            columns=fit.data.scale.categories.to_pylist(),
        )

    @property
    def skills_(self) -> pd.Series[Any]:
        """The reliability of each annotator (crowd-kit's name and form)."""
        table = self._fitted().annotator_table()
        return self._column(table, "reliability", by="worker", called="skill")

    def _column(self, table: pa.Table, name: str, *, by: str, called: str) -> pd.Series[Any]:
        """Take a column of a table as a Series by its first column, the id."""
        need_pandas()
        import pandas as pd

        if name not in table.column_names:
            raise AnnotruthError(f"{self.name} gives no {name}: see the tables of result_")
        ids = pd.Index(table.column(0).to_pandas(), name=by)
        return pd.Series(table[name].to_pandas().to_numpy(), index=ids, name=called)

    def _fitted(self) -> Fit:
        fit: BaseFit = self.result_
        if not isinstance(fit, Fit):
            raise AnnotruthError(
                "this fit is on Spark: its items, annotators and labels are frames of result_"
            )
        return fit


def _plain(value: Any) -> Any:
    """Keep words and numbers; an object, such as an engine, goes by its class."""
    return value if isinstance(value, str | int | float | None) else type(value).__name__
