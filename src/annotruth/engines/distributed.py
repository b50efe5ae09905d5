"""Engines whose data are on other machines.

Such an engine reads `DistributedLabels`, which are a summary to the model. Instead of collecting
item-sized results, its session writes tables where the partitions are
(`DistributedSession.write_tables`), which come back as frames of the engine's own library.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from numpy.typing import NDArray

from annotruth.engines.protocol import Engine, Session
from annotruth.observations import LabelSummary

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.observations import Labels

BuildTables: TypeAlias = "Callable[[Labels, Mapping[str, NDArray[Any]]], Mapping[str, pa.Table]]"
"""Builds the tables of a partition, by name, from its labels and its item-side arrays."""


class DistributedFrame(Protocol):
    """A frame whose rows are in partitions on other machines: for annotations only."""

    def repartition(self, *args: Any, **kwargs: Any) -> Any:
        """Return the frame with other partitions."""


class DistributedLabels(LabelSummary):
    """Labels on other machines: a model sees their summary only."""

    @abstractmethod
    def close(self) -> None:
        """Remove the files that hold the labels."""


class DistributedFrames(Protocol):
    """Tables that an engine's workers wrote: frames of the engine's library, by name."""

    def __getitem__(self, name: str) -> Any:
        """Return a table as a frame."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the tables."""

    def columns(self, name: str) -> list[str]:
        """Return the names of a table's columns."""

    def write_annotators(self, columns: Mapping[str, Any]) -> None:
        """Write the table ``annotators``, while the labels are open.

        Its rows are the annotators' ids, their numbers of labels, and the given columns: arrays,
        Arrow arrays or lists of text with one entry per annotator.
        """

    def release(self) -> None:
        """Remove the files behind the frames, unless a frame was taken, which may still be used."""

    def close(self) -> None:
        """Remove the files behind the frames, which can no longer be used."""


@runtime_checkable
class DistributedSession(Session, Protocol):
    """A session on distributed labels."""

    def write_tables(self, build: BuildTables, arrays: tuple[str, ...]) -> DistributedFrames:
        """Build the tables of every partition on the workers, and return frames of them.

        ``build``: A function that can be pickled. It runs once per partition, and what it returns
          has the same tables and columns for all of them.
        ``arrays``: The names of the item-side arrays that it is called with.
        """


class DistributedEngine(Engine, Protocol):
    """An engine on other machines, which gives a `DistributedFit` of a file, table or frame."""

    def open(self, data: Any) -> DistributedSession:
        """Open data and return a session on them."""
