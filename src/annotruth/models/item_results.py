"""From a session's item-side arrays to a fit: in memory, or where the partitions are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from annotruth.engines import DistributedSession, Session
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.models.base_fit import BaseFit, Column
from annotruth.models.distribution import Distribution
from annotruth.models.result import Fit


class ItemResults(NamedTuple):
    """Results per item and per label: the fields of `Fit` of the same names.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.distribution import Distribution
    >>> results = ItemResults(Distribution.of_dense(np.array([[0.2, 0.8]])))
    >>> results.distribution.mode().tolist(), results.p_serious
    ([1], None)
    """

    distribution: Distribution
    p_serious: Floats | None = None
    item_columns: Mapping[str, Column] = {}


BuildItemResults: TypeAlias = Callable[[Labels, Mapping[str, NDArray[Any]]], ItemResults]
"""Builds item results from labels and the session's arrays: of all items, or of a partition."""


def make_fit(
    labels: LabelSummary,
    session: Session,
    arrays: tuple[str, ...],
    build: BuildItemResults,
    **fields: Any,
) -> BaseFit:
    """Return the fit with the given fields and the item results built from session arrays.

    Labels in memory give a `Fit`, distributed labels a `DistributedFit`.

    Parameters
    ----------
    labels, session
        The labels and the session they are open in.
    arrays, build
        The names of the session's arrays, and what builds item results from them. On a distributed
        engine ``build`` runs on the workers, one partition at a time, so it must not use the
        items of others.
    **fields
        The fields of `annotruth.models.base_fit.BaseFit`.
    """
    if isinstance(labels, Labels):
        results = build(labels, {name: session.collect(name) for name in arrays})
        return Fit(data=labels, **results._asdict(), **fields)
    if not isinstance(session, DistributedSession):
        raise TypeError(f"{type(session).__name__} has distributed labels but writes no tables")
    from annotruth.models.distributed_fit import make_distributed_fit

    return make_distributed_fit(labels, session, arrays, build, fields)
