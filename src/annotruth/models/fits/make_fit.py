"""The fit of a model on any engine, from the arrays of its session."""

from __future__ import annotations

from typing import Any

from annotruth.engines import DistributedSession, Session
from annotruth.models.base_fit import BaseFit
from annotruth.models.distributed_fit import make_distributed_fit
from annotruth.models.fits.item_results import BuildItemResults
from annotruth.models.result import Fit
from annotruth.observations import Labels, LabelSummary


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
    return make_distributed_fit(labels, session, arrays, build, fields)
