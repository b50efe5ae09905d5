"""`PairSession`: pair comparisons on the card, whose outcomes ``kernels/cuda/pair_counts.cu`` counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from annotruth.engines.gpu.device import CUDADevice, check_room, errors_in_one_line
from annotruth.engines.memory import MemorySession
from annotruth.engines.protocol import Pass
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


class PairSession(MemorySession):
    """Comparisons whose outcomes are counted on a card; the arrays beside them stay in memory.

    ``data``: The comparisons. They are copied when a pass reads them.
    ``device``: The card.
    """

    def __init__(self, data: Comparisons | UnsortedVotes, device: CUDADevice) -> None:
        _check_limits(data)
        check_room(device, _BYTES_PER_VOTE * data.n_labels, "the comparisons")
        super().__init__(data, threads=1)
        self._votes, self._device = data, device

    @errors_in_one_line()
    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Count the outcomes of pairs, the only pass that runs on the card."""
        if one.kernel != _COUNT:
            raise InputError(
                "the engine gpu runs bradley-terry and thurstone only: choose engine='memory' "
                "(`--engine memory`)"
            )
        data, device, (table,) = self._votes, self._device, one.sums
        n_bytes = 8 * math.prod(table.shape)
        if n_bytes > _SMALL:  # to ask for the free memory takes longer than a small pass
            check_room(device, n_bytes, "the counts of pairs")
        counts = device.xp.zeros(table.shape, np.uint32)
        columns = (np.ascontiguousarray(each) for each in (data.left, data.right, data.outcome))
        device.run(
            "pair_counts",
            "add_votes",
            (_UNUSED,),
            [
                *map(device.xp.asarray, columns),
                np.int64(data.n_labels),
                np.int64(data.n_items),
                counts,
            ],
            blocks=_BLOCKS_PER_PROCESSOR * device.n_processors,
            threads=_THREADS,
        )
        return one.named((device.to_host(counts.astype(np.float64)),))


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
