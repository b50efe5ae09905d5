"""`PairSession`: pair comparisons on the card, with the kernels of ``kernels/cuda/pair*.cu``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.comparisons.votes import UnsortedVotes
from annotruth.engines.gpu.device import Device, check_room
from annotruth.engines.gpu.errors import errors_in_one_line
from annotruth.engines.gpu.pair_passes import LAUNCHES
from annotruth.engines.memory import MemoryEngine
from annotruth.engines.protocol import Extent, Pass
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.kernels.pairs.levels import PairModel

MAX_ITEMS = 1 << 30
"""An item and an outcome are in one word."""

MAX_VOTES = (1 << 32) - 1
_OUTCOME_SHIFT = 30
_BYTES_PER_VOTE = 12  # two words, and the code of the pair
# These run once, or over few comparisons: compiled, on this machine's processor.
_ON_PROCESSOR = (
    "pairs.gpm.find_favoured",
    "pairs.gpm_information.information",
    "pairs.gpm_results.predict",
)
# What a vote adds to a sum is less than this, times 1 or a product of its covariates: the log of a
# probability, or a slope times a squared sharpness.
_MOST_PER_VOTE = 64
_THREADS, _MANY_THREADS = 64, 256
_BLOCKS_PER_PROCESSOR = 16
_SMALL = 1 << 24  # bytes
_UNUSED = "N_CATEGORIES=1"  # what is shared with kernels of labels needs it


class _SortedVotes(NamedTuple):
    """Comparisons on the card, sorted by annotator."""

    begin: Any
    left: Any  # with the outcome in the upper bits
    right: Any
    order: Any  # the annotators, those with most comparisons first


class PairSession:
    """Comparisons on a card with the arrays beside them, in double precision.

    Parameters
    ----------
    data
        The comparisons. They are copied when a pass first reads them.
    device
        The card.

    Examples
    --------
    >>> from annotruth.engines.gpu import GPUEngine
    >>> import annotruth as at
    >>> made = at.simulate.comparers(n_items=10, n_annotators=30)
    >>> GPUEngine().open(made.comparisons).single_precision(tol=1e-4)  # doctest: +SKIP
    False
    """

    def __init__(self, data: Comparisons | UnsortedVotes, device: Device) -> None:
        _check_limits(data)
        check_room(device, _BYTES_PER_VOTE * data.n_labels, "the comparisons")
        self.data = data
        self.device = device
        self._arrays: dict[str, Any] = {}
        self._per: dict[str, Extent] = {}
        self._scratch: Any = None
        self.unit = _power_of_two(data.n_labels)

    @errors_in_one_line()
    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an array of zeros: one entry, or one of ``shape``, per annotator or comparison."""
        self._per[name] = per
        self._arrays[name] = self._zeros((self.data.length(per), *shape), np.float64, name)

    @errors_in_one_line()
    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the comparisons: one entry per annotator or comparison."""
        if len(values) != self.data.length(per):
            raise ValueError(f"{name} has {len(values)} entries for {self.data.length(per)} {per}")
        check_room(self.device, values.nbytes, name)
        self._per[name] = per
        self._arrays[name] = self.on_card(values)
        if name == "covariates":
            self.unit = _power_of_two(len(values) + float((values**2).sum()))

    @errors_in_one_line()
    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a pass and return the sums by name."""
        if one.kernel in _ON_PROCESSOR:
            return self._run_on_processor(one, inputs)
        if one.kernel not in LAUNCHES:
            raise InputError(
                "the engine gpu runs pair-gpm, bradley-terry and thurstone only: choose "
                "engine='memory' (`--engine memory`)"
            )
        arrays = [self._arrays[name] for name in one.state]
        sums = LAUNCHES[one.kernel](self, one, *arrays, *one.ordered(inputs))
        return one.named(sums)

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

    def single_precision(self, tol: float) -> bool:
        """Return False: tables are held in double precision."""
        return False

    def collect(self, name: str) -> NDArray[Any]:
        """Return an array of all annotators or comparisons."""
        return self.device.to_host(self._arrays[name])

    def close(self) -> None:
        """Release the arrays on the card."""
        self._arrays.clear()
        self._scratch = None
        self.__dict__.pop("_sorted_votes", None)

    def run(self, kernel: str, *arguments: Any, threads: int = _THREADS, blocks: int = 0) -> None:
        """Run a function of a CUDA file, given as ``family.function``."""
        family, function = kernel.split(".")
        self.device.run(
            family,
            function,
            (_UNUSED,),
            arguments,
            blocks=blocks or _BLOCKS_PER_PROCESSOR * self.device.n_processors,
            threads=threads,
        )

    def run_by_annotator(self, function: str, model: PairModel, *arguments: Any) -> None:
        """Run a function of ``pairs.cu``, which first gets the comparisons and the model.

        One block processes an annotator. Where the arguments have None, they get room for the
        states of one annotator per block.
        """
        votes, n_annotators = self._sorted_votes, self.data.n_annotators
        levels = model.levels
        sizes = {
            "N_GROUPS": len(model.theta),
            "N_BETAS": len(levels.beta),
            "N_NUS": len(levels.nu),
            "N_BEHAVIORS": len(levels.eps),
            "N_OFFSETS": len(model.offsets),
        }
        most = _BLOCKS_PER_PROCESSOR * self.device.n_processors
        blocks = max(1, min(n_annotators, most))
        packed = np.concatenate([model.offsets, *(np.ravel(each) for each in levels)])
        scratch = self._room_for_states(blocks, sizes)
        self.device.run(
            "pairs",
            function,
            (_UNUSED, *(f"{name}={size}" for name, size in sizes.items())),
            [
                votes.begin,
                votes.left,
                votes.right,
                self._arrays["covariates"],
                votes.order,
                np.int64(n_annotators),
                self.on_card(model.theta),
                np.int64(model.theta.shape[1]),
                self.on_card(packed),
                *(scratch if argument is None else argument for argument in arguments),
            ],
            blocks=blocks,
            threads=_THREADS if n_annotators >= most else _MANY_THREADS,
        )

    def on_card(self, values: NDArray[Any]) -> Any:
        """Return a copy of an array on the card."""
        return self.device.xp.asarray(np.ascontiguousarray(values))

    def sums(self, one: Pass) -> list[Any]:
        """Return integers to add to on the card, for each of the sums of a pass."""
        return [self._zeros(total.shape, np.uint64, total.name) for total in one.sums]

    def floats(self, sums: list[Any]) -> tuple[Floats, ...]:
        """Return sums as numbers."""
        return tuple(self.device.to_host(each.view(np.int64) / float(self.unit)) for each in sums)

    @cached_property
    def _sorted_votes(self) -> _SortedVotes:
        data = self.data
        assert isinstance(data, Comparisons)
        left = self.on_card(data.left).astype(np.uint32)
        left |= self.on_card(data.outcome).astype(np.uint32) << np.uint32(_OUTCOME_SHIFT)
        order = np.argsort(-data.comparisons_per_annotator, kind="stable").astype(np.uint32)
        return _SortedVotes(
            self.on_card(data.annotator_ptr),
            left,
            self.on_card(data.right).view(np.uint32),
            self.on_card(order),
        )

    def _room_for_states(self, blocks: int, sizes: dict[str, int]) -> Any:
        """Return room for the states of one annotator per block, and two numbers per cell of them."""
        n_cells = sizes["N_GROUPS"] * sizes["N_BETAS"] * sizes["N_NUS"]
        size = blocks * n_cells * (sizes["N_BEHAVIORS"] + 2)
        if self._scratch is None or self._scratch.size < size:
            self._scratch = self._zeros((size,), np.float64, "the states of annotators")
        return self._scratch

    def _zeros(self, shape: tuple[int, ...], dtype: Any, what: str) -> Any:
        n_bytes = 8 * int(np.prod(shape))
        if n_bytes > _SMALL:  # to ask for the free memory takes longer than a small pass
            check_room(self.device, n_bytes, what)
        return self.device.xp.zeros(shape, dtype)

    def _run_on_processor(self, one: Pass, inputs: dict[str, Any]) -> dict[str, Floats]:
        """Run a pass on this machine's processor; arrays beside the data go there and back."""
        with closing(MemoryEngine().open(self.data)) as session:
            for name in one.state:
                session.put(name, self.collect(name), self._per[name])
            sums = session.run_pass(one, **inputs)
            for name in one.state:
                self.put(name, session.collect(name), self._per[name])
        return sums


def _power_of_two(n_votes: float) -> np.float64:
    """Return what integers in sums are multiples of the inverse of: 64 bits hold any sum."""
    return np.float64(2.0 ** (62 - int(np.ceil(np.log2(_MOST_PER_VOTE * n_votes + 1)))))


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
