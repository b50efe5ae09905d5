"""Results as pandas objects, with the names and forms of crowd-kit and scikit-learn."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from annotruth.errors import AnnotruthError
from annotruth.models.result import Fit
from annotruth.observations.frames import check_pandas_installed

if TYPE_CHECKING:
    import pandas as pd


class PandasResults:
    """Part of `Estimator`: ``fit_predict``, ``labels_``, ``probas_`` and ``skills_``."""

    name: ClassVar[str]

    @abstractmethod
    def fit(self, data: Any, *, gold: Any = None) -> Self:
        """Fit the model."""

    @abstractmethod
    def _local_result(self) -> Fit:
        """Return the fit; raise if its results are not on this machine."""

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
        check_pandas_installed()
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
        check_pandas_installed()
        import pandas as pd

        if name not in table.column_names:
            raise AnnotruthError(f"{self.name} has no column {name!r}: see the tables of result_")
        ids = pd.Index(table.column(0).to_pandas(), name=index)
        return pd.Series(table[name].to_pandas().to_numpy(), index=ids, name=name_as)
