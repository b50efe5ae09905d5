"""The seam between models and hardware: passes over the data that return annotator-sized sums.

A model describes a `Pass`: which kernel runs, which item-side arrays it works on, which named inputs
it takes and which named sums it returns. An engine runs the kernel over its partitions of the data
and adds the sums up. Item-side arrays stay where the data are, so an engine moves only what
annotators need, and the update of the shared parameters is written once, in the model.

An engine has four duties: read a source (`Engine.read`), open data as a session (`Engine.open`), run
passes (`Session.run_pass`), and collect item-sized results (`Session.collect`). It states what it can
do in `Engine.capabilities`, and it alone chooses kernel variants and precision.

Engines whose data are on other machines read `DistributedLabels`, which are a summary to the model.
Instead of collecting item-sized results, their sessions write tables where the partitions are
(`DistributedSession.write_tables`), which come back as frames of the engine's own library.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    runtime_checkable,
)

from numpy.typing import NDArray

from annotruth.errors import InputError, option
from annotruth.kernels.arrays import Floats
from annotruth.observations import LabelSummary

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.observations import Labels
    from annotruth.observations.options import ReadOptions

Extent = Literal["items", "cells", "labels"]
"""What an array beside the data has one entry for."""


@dataclass(frozen=True)
class Input:
    """A named argument of a pass."""

    name: str  # the keyword it is passed by to `Session.run_pass`
    # the axis that runs over the annotators, if any. An engine whose partitions hold only some of
    # the annotators cuts the array along it.
    annotator_axis: int | None = None


@dataclass(frozen=True)
class Sum:
    """A named sum that a pass returns."""

    name: str  # its key in the result of `Session.run_pass`
    shape: tuple[int, ...]  # its shape over all annotators
    annotator_axis: int | None = None  # the axis that runs over the annotators, if any


@dataclass(frozen=True)
class Pass:
    """One kind of pass over the data.

    Kernels are called as ``kernel(block, lo, hi, **state, **inputs, **sums)`` with the items
    ``lo:hi`` of a partition: state, inputs and sums have the names of the kernel's arguments.
    """

    kernel: str  # ``family.function``: a function of ``kernels/<family>.py``
    # the names of the item-side arrays that the kernel reads and writes
    state: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()  # the arguments that all partitions share
    sums: tuple[Sum, ...] = ()  # the sums that the kernel adds to
    # how many numbers per thread the kernel allocates for itself, where they are many
    scratch: int = 0
    arguments: tuple[str, ...] = ()  # what the kernel calls the state, where that differs

    def ordered(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Return the inputs in the kernel's order; all must be there and no others."""
        names = [one.name for one in self.inputs]
        if inputs.keys() != set(names):
            raise TypeError(f"the pass {self.kernel} takes {names}, not {sorted(inputs)}")
        return [inputs[name] for name in names]

    def named_state(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state by the names of the kernel's arguments, given item-side arrays by name."""
        names = self.arguments or self.state
        return {name: arrays[one] for name, one in zip(names, self.state, strict=True)}

    def named(self, sums: tuple[Floats, ...]) -> dict[str, Floats]:
        """Return the sums, which are in the kernel's order, by name."""
        return {one.name: values for one, values in zip(self.sums, sums, strict=True)}


@runtime_checkable
class PassData(Protocol):
    """Data on this machine that a session can open: labels, or anything laid out like them.

    Items are the units that partitions are made of; a kernel finds its own arrays in ``block()``.
    """

    @property
    def n_annotators(self) -> int:
        """How many annotators there are."""

    @property
    def n_labels(self) -> int:
        """How many labels (or other observations) a pass reads."""

    def length(self, per: Extent) -> int:
        """Return how many items, cells or labels there are."""

    def block(self) -> Any:
        """Return the arrays that kernels read."""

    def partition(self, n_partitions: int) -> NDArray[Any]:
        """Return the ``n_partitions + 1`` item bounds that divide the labels evenly."""

    def zeros(self, shape: int | tuple[int, ...]) -> NDArray[Any]:
        """Return an array of zeros that is kept where the data are: in memory or on disk."""

    def check_room(self, n_bytes: float, what: str) -> None:
        """Raise if that many bytes exceed the memory that may be used."""


class Session(Protocol):
    """Data opened on some hardware, with the item-side arrays beside them."""

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros: one entry, or one of ``shape``, per item, cell, label."""

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the data: one entry per item, cell or label."""

    def apply(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace an item-side array of all items by a function of it.

        The function is called where the engine computes, as with the arrays of `to_engine`.
        """

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a kernel over all data and return the sums by name.

        Sums with an annotator axis are where the engine computes, as `to_engine` returns arrays;
        inputs with an annotator axis may be there or in memory. Other inputs and sums are in memory.
        """

    def to_engine(self, values: NDArray[Any], annotator_axis: int = 0) -> Any:
        """Return an array with an annotator axis where the engine computes, such as on a card.

        NumPy's functions take such arrays, but not together with others; small ones are brought there
        by ``np.asarray(values, like=array)``. The engine may order annotators in its own way.
        """

    def to_host(self, values: Any, annotator_axis: int = 0) -> NDArray[Any]:
        """Return an array that is where the engine computes in memory, in the labels' order."""

    def run_over_annotators(self, kernel: str, n_annotators: int, **arrays: Any) -> None:
        """Run a kernel over ranges ``lo, hi`` of annotators, writing into the arrays."""

    def collect(self, name: str) -> NDArray[Any]:
        """Return an item-side array of all items."""

    def close(self) -> None:
        """Release what the session holds."""


def _can(otherwise: str, asked_by: str = "") -> Any:
    """Return a field that is False by default.

    ``otherwise`` is what is said of an engine without it, ``asked_by`` the option that needs it.
    """
    return field(default=False, metadata={"otherwise": otherwise, "asked_by": asked_by})


@dataclass(frozen=True)
class EngineCapabilities:
    """What an engine can do."""

    # whether labels and item-sized results may be on other machines: a model then sees a
    # `LabelSummary` only, and the result's tables are distributed frames
    distributed: bool = False
    # whether it opens labels on disk, without an array of them in memory
    out_of_core: bool = _can("takes no labels on disk", "memory")
    # whether its passes take what a classifier says about items
    classifier: bool = _can("takes no classifier", "classifier")
    over_time: bool = _can("does not run the passes over time")

    def check(self, engine: str, *needs: str, model: str = "") -> None:
        """Refuse an engine that cannot do all of this; ``model`` needs it, or else the data do."""
        for name in needs:
            if not getattr(self, name):
                words = self.__dataclass_fields__[name].metadata
                who, asked_by = f"the engine {engine}", words["asked_by"]
                if model:
                    who, asked_by = f"{model} is not fitted on {who}, which", ""
                remedy = f"leave out {option(asked_by)}, or " if asked_by else ""
                raise InputError(
                    f"{who} {words['otherwise']}: {remedy}choose {option('engine', 'memory')}"
                )


class Engine(Protocol):
    """A place where passes over the data run."""

    name: ClassVar[str]
    """The name it is chosen by."""

    capabilities: ClassVar[EngineCapabilities]
    """What it can do."""

    def read(
        self, source: Any, options: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
    ) -> LabelSummary:
        """Read labels from a path, a frame or whatever else the engine takes."""

    def open(self, data: Any) -> Session:
        """Open data and return a session on them."""


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
    """An engine on other machines: the tables of its fits of a file, table or frame are frames there."""

    def open(self, data: Any) -> DistributedSession:
        """Open data and return a session on them."""
