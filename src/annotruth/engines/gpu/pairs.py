"""`PairSession`: pair comparisons on the card, whose outcomes ``kernels/cuda/pair_counts.cu`` counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.gpu.device import Device, check_room, errors_in_one_line
from annotruth.engines.protocol import Extent, Pass
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.observations.pairs.table import Comparisons
from annotruth.observations.pairs.votes import UnsortedVotes

MAX_ITEMS = 1 << 30
MAX_VOTES = (1 << 32) - 1
_BYTES_PER_VOTE = 12
_COUNT = "pairs.layout.add_votes"
_THREADS = 256
_BLOCKS_PER_PROCESSOR = 16
_SMALL = 1 << 24  # bytes
_UNUSED = "N_CATEGORIES=1"  # what is shared with kernels of labels needs it


class PairSession:
    """Comparisons on a card with the arrays beside them, in double precision.

    ``data``: The comparisons. They are copied when a pass first reads them.
    ``device``: The card.
    """

    def __init__(self, data: Comparisons | UnsortedVotes, device: Device) -> None:
        _check_limits(data)
        check_room(device, _BYTES_PER_VOTE * data.n_labels, "the comparisons")
        self.data = data
        self.device = device
        self._arrays: dict[str, Any] = {}

    @errors_in_one_line()
    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an array of zeros: one entry, or one of ``shape``, per annotator or comparison."""
        self._arrays[name] = self._zeros((self.data.length(per), *shape), np.float64, name)

    @errors_in_one_line()
    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the comparisons: one entry per annotator or comparison."""
        if len(values) != self.data.length(per):
            raise ValueError(f"{name} has {len(values)} entries for {self.data.length(per)} {per}")
        check_room(self.device, values.nbytes, name)
        self._arrays[name] = self.on_card(values)

    @errors_in_one_line()
    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Count the outcomes of pairs, the only pass that runs on the card."""
        if one.kernel != _COUNT:
            raise InputError(
                "the engine gpu runs bradley-terry and thurstone only: choose engine='memory' "
                "(`--engine memory`)"
            )
        data, (table,) = self.data, one.sums
        counts = self._zeros(table.shape, np.uint32, "the counts of pairs")
        self.device.run(
            "pair_counts",
            "add_votes",
            (_UNUSED,),
            [
                *(self.on_card(each) for each in (data.left, data.right, data.outcome)),
                np.int64(data.n_labels),
                np.int64(data.n_items),
                counts,
            ],
            blocks=_BLOCKS_PER_PROCESSOR * self.device.n_processors,
            threads=_THREADS,
        )
        dtype = np.float32 if table.single_precision else np.float64
        return one.named((self.device.to_host(counts.astype(dtype)),))

    def apply(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace an array by a function of it, which is computed on the card."""
        self._arrays[name] = function(self._arrays[name])

    def without_items(self, name: str, value: float) -> PairSession:
        """Return this session: passes skip the items where they are."""
        return self

    def to_engine(self, values: NDArray[Any], annotator_axis: int = 0) -> Any:
        """Return an array on the card; annotators stay in their order."""
        return self.on_card(values)

    def to_host(self, values: Any, annotator_axis: int = 0) -> NDArray[Any]:
        """Return an array of the card in memory."""
        return self.device.to_host(values)

    def run_over_annotators(self, kernel: str, n_annotators: int, *arrays: Any) -> None:
        """Raise: no model of comparisons does this."""
        raise NotImplementedError

    def map_groups(self, compute: Callable[..., Any], groups: Mapping[int, Any]) -> list[Any]:
        """Raise: no model of comparisons does this."""
        raise NotImplementedError

    def collect(self, name: str) -> NDArray[Any]:
        """Return an array of all annotators or comparisons."""
        return self.device.to_host(self._arrays[name])

    def close(self) -> None:
        """Release the arrays on the card."""
        self._arrays.clear()

    def on_card(self, values: NDArray[Any]) -> Any:
        """Return a copy of an array on the card."""
        return self.device.xp.asarray(np.ascontiguousarray(values))

    def _zeros(self, shape: tuple[int, ...], dtype: Any, what: str) -> Any:
        n_bytes = 8 * int(np.prod(shape))
        if n_bytes > _SMALL:  # to ask for the free memory takes longer than a small pass
            check_room(self.device, n_bytes, what)
        return self.device.xp.zeros(shape, dtype)


def _check_limits(data: Comparisons | UnsortedVotes) -> None:
    for n, most, what in (
        (data.n_items, MAX_ITEMS, "items"),
        (data.n_labels, MAX_VOTES, "comparisons"),
    ):
        if n > most:
            raise InputError(
                f"the engine gpu takes at most {most:,} {what}, not {n:,}: choose engine='memory' "
                "(`--engine memory`)"
            )
