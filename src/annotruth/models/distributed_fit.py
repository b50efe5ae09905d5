"""A fit of labels on other machines: its tables are frames of the engine's library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Self

import pyarrow as pa
from numpy.typing import NDArray

from annotruth.engines import DistributedFrames, DistributedSession
from annotruth.errors import InputError
from annotruth.models.base_fit import BaseFit
from annotruth.models.em import direct_history
from annotruth.models.fits.item_results import BuildItemResults
from annotruth.models.fits.tables import MOST_COLUMNS
from annotruth.models.result import Fit
from annotruth.observations import Labels, LabelSummary


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DistributedFit(BaseFit):
    """A fitted model whose tables are frames of a distributed engine, such as Spark's.

    Nothing with one entry per item or label is in this process. The frames read files in the
    engine's storage whenever they are used. The files remain until `close` or the end of the
    program, also when this object is gone: write the frames elsewhere to keep them. The end of a
    ``with`` block removes the files only if no frame was taken. The results per annotator and the
    history are as in `annotruth.Fit`.

    Attributes
    ----------
    data
        The summary of the labels.
    frames
        The tables by name: items, annotators, labels; and distributions, where there are too many
        categories for one column each.

    Examples
    --------
    >>> import annotruth as at
    >>> fit = at.fit("crowd.votes", "gpm", engine="spark")  # doctest: +SKIP
    >>> fit.items().write.saveAsTable("crowd.truths")  # doctest: +SKIP
    >>> fit.close()  # doctest: +SKIP
    """

    data: LabelSummary
    frames: DistributedFrames

    @property
    def knows_serious(self) -> bool:
        """Whether the model gives the probability that each label was serious."""
        return "p_serious" in self.frames.columns("labels")

    def items(self) -> Any:
        """Return one row per item: its label, confidence and distribution."""
        return self.frames["items"]

    def annotators(self) -> Any:
        """Return one row per annotator: reliability with its interval, and behavior."""
        return self.frames["annotators"]

    def labels(self) -> Any:
        """Return one row per label, in any order, with the probability that it was serious."""
        return self.frames["labels"]

    def summary(self) -> str:
        """Return the fit in a few lines of text."""
        return "\n".join([*self.heading_lines(), *self.summary_lines(), self.readout_line()])

    def close(self) -> None:
        """Remove the files behind the frames, which can no longer be used."""
        self.frames.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.frames.release()


def refuse_distributed(*_: object, **__: object) -> NoReturn:
    """Refuse to update or evaluate a fit whose results are not on this machine."""
    raise InputError(
        "this fit is distributed: it can be neither updated nor evaluated here; its tables are "
        "frames, and fit takes all labels again"
    )


def make_distributed_fit(
    labels: LabelSummary,
    session: DistributedSession,
    arrays: tuple[str, ...],
    build: BuildItemResults,
    fields: Mapping[str, Any],
) -> DistributedFit:
    """Return the fit with the given fields, whose tables are written where the partitions are."""
    frames = session.write_tables(partial(build_tables, build), arrays)
    try:
        fit = DistributedFit(data=labels, frames=frames, **fields)
        frames.write_annotators(fit.annotator_values())
    except BaseException:
        frames.close()
        raise
    return fit


def build_tables(
    build: BuildItemResults, labels: Labels, arrays: Mapping[str, NDArray[Any]]
) -> dict[str, pa.Table]:
    """Return the tables of a partition's items and labels, made as those of a fit in memory."""
    results = build(labels, arrays)
    fit = Fit(model="", settings={}, data=labels, history=direct_history(), **results._asdict())
    tables = {"items": fit.item_table(), "labels": fit.label_table()}
    if labels.n_categories > MOST_COLUMNS:
        tables["distributions"] = fit.distribution_table()
    return tables
