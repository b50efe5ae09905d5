"""A fit whose labels are on Spark: its tables are Spark frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.engines.spark.chunks import Loaded
from annotruth.engines.spark.frames import Frames, write_rows
from annotruth.engines.spark.labels import Shard, SparkLabels
from annotruth.engines.spark.session import SparkPasses
from annotruth.engines.spark.storage import Storage
from annotruth.engines.spark.tasks import run_tasks
from annotruth.labels import LabelSummary
from annotruth.models.base_fit import BaseFit, table_of
from annotruth.models.em import direct_history
from annotruth.models.item_results import BuildItemResults
from annotruth.models.result import MOST_COLUMNS, Fit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SparkFit(BaseFit):
    """A fitted model whose tables are Spark frames: nothing with a row an item is on the driver.

    The frames lie in files in the engine's storage. `close`, the end of a ``with`` or of the
    program removes these: write the frames elsewhere to keep them. What is known of annotators,
    and how the fit went, is as in `annotruth.Fit`.

    Attributes
    ----------
    data
        How many labels there were of what.
    frames
        The tables by name: items, annotators, labels; and distributions, where there are too many
        categories for a column each.
    """

    data: SparkLabels
    frames: Frames

    @property
    def knows_serious(self) -> bool:
        """Whether the model tells how likely each label was serious."""
        return "p_serious" in self.labels().columns

    def items(self) -> DataFrame:
        """Return one row an item: its label, how sure, and its whole distribution."""
        return self.frames["items"]

    def annotators(self) -> DataFrame:
        """Return one row an annotator: reliability with its interval, and behavior."""
        return self.frames["annotators"]

    def labels(self) -> DataFrame:
        """Return one row a label, with how likely it was serious."""
        return self.frames["labels"]

    def summary(self) -> str:
        """Tell the fit in a few lines."""
        return "\n".join([f"{self.model} on {self.data.describe()}", *self.summary_lines()])

    def close(self) -> None:
        """Remove the files behind the frames."""
        self.frames.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def spark_fit(
    labels: LabelSummary,
    session: Session,
    arrays: tuple[str, ...],
    read: BuildItemResults,
    **found: Any,
) -> SparkFit:
    """Have every chunk's tables written where the chunk is, and return frames of them."""
    assert isinstance(labels, SparkLabels)
    assert isinstance(session, SparkPasses)
    storage = labels.storage.beside()
    frames = Frames(labels.spark, storage)
    try:
        written = session.each(partial(_write_chunk, storage, read), arrays)
        for name in written[0]:
            frames.add(name, [files[name] for files in written])
        fit = SparkFit(data=labels, frames=frames, **found)
        frames.add("annotators", _write_annotators(labels, storage, fit))
    except BaseException:
        frames.close()
        raise
    return fit


def _write_chunk(
    storage: Storage, read: BuildItemResults, chunk: Loaded, arrays: dict[str, NDArray[Any]]
) -> dict[str, str]:
    """Write the tables of a chunk's items, made as those of a fit in memory are."""
    labels = chunk.labels
    part = Fit(
        model="",
        settings={},
        data=labels,
        history=direct_history(),
        **read(labels, arrays)._asdict(),
    )
    tables = {"items": part.item_table(), "labels": part.label_table()}
    if labels.n_categories > MOST_COLUMNS:
        tables["distributions"] = part.distribution_table()
    return {name: write_rows(storage, name, table) for name, table in tables.items()}


def _write_annotators(labels: SparkLabels, storage: Storage, fit: SparkFit) -> list[str]:
    """Write the annotators' table, a file a shard; the ids never leave the workers."""
    values = fit.annotator_values()
    ends = np.cumsum([0, *(shard.n_annotators for shard in labels.shards)])
    parts = (
        {name: column[start:stop] for name, column in values.items()}
        for start, stop in pairwise(ends)
    )
    told = labels.storage.write_parts("values", parts)
    work = partial(_write_shard, labels.storage, storage, labels.shards, told)
    return run_tasks(labels.spark, work, len(labels.shards))


def _write_shard(
    source: Storage, storage: Storage, shards: list[Shard], told: str, place: int
) -> str:
    known = source.read(shards[place].file)
    ids = {"annotator": known["annotators"], "n_labels": known["n_labels"]}
    return write_rows(storage, "annotators", table_of({**ids, **source.read(told, place)}))
