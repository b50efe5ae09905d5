"""From a session's item-side arrays to a fit: read whole, or where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, overload

from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.models.base_fit import BaseFit, Column
from annotruth.models.distribution import Distribution
from annotruth.models.result import Fit


class OfItems(NamedTuple):
    """What a fit tells of items and labels, as the fields of `Fit` of the same names."""

    distribution: Distribution
    p_serious: Floats | None = None
    item_columns: Mapping[str, Column] = {}


Reader: TypeAlias = Callable[[Labels, Mapping[str, NDArray[Any]]], OfItems]
"""Reads items off their labels and the session's arrays: of all, or of a part of the items."""


@overload
def fitted(
    labels: Labels, session: Session, arrays: tuple[str, ...], read: Reader, **found: Any
) -> Fit: ...


@overload
def fitted(
    labels: LabelSummary, session: Session, arrays: tuple[str, ...], read: Reader, **found: Any
) -> BaseFit: ...


def fitted(
    labels: LabelSummary, session: Session, arrays: tuple[str, ...], read: Reader, **found: Any
) -> BaseFit:
    """Make a fit of what a model has found.

    Parameters
    ----------
    arrays, read
        The session's arrays that the items are read off, and how. Where labels are not in memory,
        this is done on the workers, a part of the items at a time; so it must not look at others.
    **found
        The fields of `annotruth.models.base_fit.BaseFit`.
    """
    if isinstance(labels, Labels):
        of_items = read(labels, {name: session.gather(name) for name in arrays})
        return Fit(data=labels, **of_items._asdict(), **found)
    from annotruth.models.spark_fit import spark_fit

    return spark_fit(labels, session, arrays, read, **found)
