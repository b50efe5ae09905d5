r"""Dawid and Skene's model: every annotator has a confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, Session, get_engine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.labels.append import Part
from annotruth.labels.frames import need_pandas
from annotruth.models.base import Estimator
from annotruth.models.base_fit import BaseFit
from annotruth.models.dawid_skene.incremental import DawidSkeneKnown, known_of, settled
from annotruth.models.dawid_skene.steps import Parameters, Steps, acceleration, right
from annotruth.models.distribution import Distribution, mixed_rates
from annotruth.models.em import History, ProgressCallback, no_iterations, run_em
from annotruth.models.item_results import OfItems, fitted
from annotruth.models.result import Fit

if TYPE_CHECKING:
    import pandas as pd


# Of one copy of the parameters and posteriors; a step holds about three, a leap some six.
_MOST_BYTES = 2e9


@dataclass(kw_only=True)
class DawidSkene(Estimator):
    r"""Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm.

    An item is of class k with probability :math:`p_k`, and annotator s then says l with
    probability :math:`\pi_{s,k,l}`, whatever the others say:

    .. math:: L = \prod_e \sum_k p_k \prod_{s \in l_e} \pi_{s,k,r_{e,s}}.

    Maximum likelihood by EM over E items (Dawid and Skene, Applied Statistics 28, 1979, 20-28):

    .. math::
        \text{E:}\quad T_{e,k} &\propto p_k \prod_{s \in l_e} \pi_{s,k,r_{e,s}} \\
        \text{M:}\quad p_k &= \frac{1}{E} \sum_e T_{e,k}, \quad
        \pi_{s,k,l} = \frac{\sum_{e \in l_{s,l}} T_{e,k}}{\sum_{e \in l_s} T_{e,k}}.

    It starts, as in the paper, with the observed shares for T. An item's distribution is
    :math:`T_e` at the end: how likely each class is to be the one right answer. A known truth
    fixes T at the item, and its likelihood counts with that of the labels.

    An annotator's reliability is the probability of a right label on an item drawn from the
    prior, :math:`\sum_k p_k \pi_{s,k,k}`. It counts 1/N for classes of which they saw nothing,
    and is high for those who always name a frequent class: ``confusion_`` tells them apart.

    Left open by the paper:

    - Nothing is smoothed. A zero in :math:`p` or :math:`\pi` stays: the class is then impossible
      for the items concerned. EM never makes all classes of an item impossible.
    - Where an annotator saw no item of a class, the sum under :math:`\pi_{s,k}` is 0 and any
      value is as likely: the row keeps what it had, at the start 1/N.
    - The stopping rule: the log-likelihood per label changes by less than ``tol``, so that it
      means the same on small and large tables. On sparse tables that is short of the maximum:
      the likelihood may creep on for thousands of steps, and the labels of a few items change
      with it, not for the better on the tables tried. ``tol=0`` goes to the very top. With
      acceleration the same ``tol`` stops nearer to it; published accuracies, such as 0.8296 on
      search grades (there 0.828), are those without.

    An item's label is the class of highest probability; an exact tie goes to the category that
    comes first on the scale. `predict_proba` predicts the label l with
    :math:`\sum_k T_{e,k} \pi_{s,k,l}`.

    Parameters
    ----------
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to leap ahead along EM's steps (`annotruth.models.squarem`) for fewer passes
        over the labels.
    engine
        Where the passes over the labels run.
    """

    name: ClassVar[str] = "dawid-skene"
    fits_on_disk: ClassVar[bool] = True
    fits_on_spark: ClassVar[bool] = True
    updates_from: ClassVar[int] = 1_000_000

    tol: float = 1e-7
    max_iter: int = 1000
    acceleration: bool = True
    engine: str | Engine = "memory"

    def _fit(self, labels: LabelSummary, progress: ProgressCallback | None) -> BaseFit:
        _check_size(labels)
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = Steps(labels, session)
            at, history = self._run_em(steps, steps.start(), progress)
            share = right(steps.counted(at)) / labels.labels_per_annotator
            # Sums may round above 1.
            return self._read(labels, session, at, history, np.minimum(share, 1.0))

    def _run_em(
        self, steps: Steps, start: Parameters, progress: ProgressCallback | None = None
    ) -> tuple[Parameters, History]:
        return run_em(
            steps.step,
            start,
            log_likelihood=steps.read_out,
            tol=self.tol,
            max_iter=self.max_iter,
            watched="the log-likelihood per label",
            progress=progress,
            acceleration=acceleration() if self.acceleration else None,
        )

    def _read(
        self,
        labels: LabelSummary,
        session: Session,
        at: Parameters,
        history: History,
        reliability: Floats,
    ) -> BaseFit:
        return fitted(
            labels,
            session,
            ("posterior",),
            _items_of,
            model=self.name,
            settings=self.settings(),
            history=history,
            reliability=reliability,
            parameters=at._asdict(),
        )

    def _known(self, fit: Fit) -> DawidSkeneKnown:
        return known_of(fit.data, _parameters_of(fit), get_engine(self.engine))

    def _settled(
        self,
        was: DawidSkeneKnown,
        begin: DawidSkeneKnown,
        before: Part,
        after: Part,
        theta: Distribution,
    ) -> tuple[DawidSkeneKnown, Distribution, History]:
        return settled(was, begin, before, after, get_engine(self.engine), self._run_em)

    def _whole(self, known: DawidSkeneKnown, labels: Labels, theta: Distribution) -> BaseFit:
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = Steps(labels, session)
            steps.ready()
            history = no_iterations(steps.read_out(known.at))
            return self._read(labels, session, known.at, history, known.reliability)

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit = self.result_
        assert fit.distribution is not None
        posterior = fit.distribution.rows(item, fit.data.n_categories)
        return mixed_rates(posterior, self.confusion_.transpose(1, 0, 2), annotator)

    @property
    def confusion_(self) -> Floats:
        """The confusion matrices, annotators x true categories x labels."""
        confusion: Floats = _parameters_of(self.result_).rates.transpose(1, 2, 0)
        return confusion

    @property
    def prevalence_(self) -> Floats:
        """The class prior, one number a category."""
        return _parameters_of(self.result_).prior

    @property
    def priors_(self) -> pd.Series[Any]:
        """The class prior (crowd-kit's name and form)."""
        need_pandas()
        import pandas as pd

        categories = self._fitted().data.scale.categories.to_pylist()
        index = pd.Index(categories, name="label")
        return pd.Series(self.prevalence_, index=index, name="prior")

    @property
    def errors_(self) -> pd.DataFrame:
        """The confusion matrices (crowd-kit's name and form).

        One row an annotator and label, one column a true category.
        """
        need_pandas()
        import pandas as pd

        data = self._fitted().data
        categories = data.scale.categories.to_pylist()
        return pd.DataFrame(
            self.confusion_.transpose(0, 2, 1).reshape(-1, len(categories)),
            index=pd.MultiIndex.from_product(
                [data.annotators.to_pylist(), categories], names=["worker", "label"]
            ),
            columns=pd.Index(categories, name="label"),
        )


def _parameters_of(fit: BaseFit) -> Parameters:
    people, n = fit.data.n_annotators, fit.data.n_categories
    return Parameters(fit.parameter("prior", n), fit.parameter("rates", n, people, n))


def _items_of(labels: Labels, arrays: Mapping[str, NDArray[Any]]) -> OfItems:
    return OfItems(Distribution.of_dense(arrays["posterior"]))


def _check_size(labels: LabelSummary) -> None:
    people, classes = labels.n_annotators, labels.n_categories
    items = labels.n_items if isinstance(labels, Labels) else 0  # here, and not elsewhere
    n_bytes = 8 * classes * (people * classes + items)
    if n_bytes > _MOST_BYTES:
        raise InputError(
            f"dawid-skene needs {n_bytes / 1e9:,.1f} GB for {people:,} confusion matrices of "
            f"{classes:,} x {classes:,} and {items:,} x {classes:,} probabilities (at most "
            f"{_MOST_BYTES / 1e9:g} GB): merge rare categories, or use gpm, which needs neither"
        )
