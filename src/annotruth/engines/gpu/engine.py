"""`GPUEngine`: passes on one NVIDIA card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from annotruth.engines.gpu.device import (
    DENSE_CATEGORIES,
    CUDADevice,
    all_cards,
    errors_in_one_line,
    limit_exceeded,
    resident_bytes,
)
from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.memory import MemoryEngine
from annotruth.engines.protocol import EngineCapabilities, Session
from annotruth.errors import InputError
from annotruth.observations import Labels
from annotruth.observations.disk import parse_size

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions

STREAMED_MODELS = ("gpm", "dawid-skene")
"""The models that can be fitted to more labels than fit on a card."""

RESIDENT_MODELS = ("robust-gpm",)
"""Those that need all labels on the card."""


class GPUEngine:
    """Runs passes on an NVIDIA card.

    It fits gpm, dawid-skene and robust-gpm, with item-side arrays in single precision; few labels
    of gpm and dawid-skene are fitted in double precision.

    Sums are integers, so results are identical to the last bit on every run and for every grid.

    Parameters
    ----------
    device
        Where kernels run: a card, or several. By default, the current card; and others that there
        are, for labels that do not fit on it.
    memory
        How much memory of a card to use, such as "20GB"; by default, what is free. Labels and items
        that do not fit stay in memory, or on disk if they are there, and are copied to the card in
        partitions by every pass.
    """

    name: ClassVar[str] = "gpu"
    capabilities: ClassVar[EngineCapabilities] = EngineCapabilities(out_of_core=True)

    def __init__(
        self,
        device: CUDADevice | Sequence[CUDADevice] | None = None,
        *,
        memory: str | int | None = None,
    ) -> None:
        self._devices = device if device is None or isinstance(device, Sequence) else [device]
        self.memory = None if memory is None else parse_size(memory)

    def read(
        self, source: Any, options: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
    ) -> Labels:
        """Read labels from a path, a frame, tuples or Labels."""
        return MemoryEngine().read(source, options, gold=gold, annotator_prior=annotator_prior)

    def open(self, data: Any) -> Session:
        """Copy labels to the card; whatever else a model opens is small and stays in memory."""
        if getattr(data, "kind", None) not in ("labels", "sets"):
            return MemoryEngine().open(data)
        with errors_in_one_line():
            return GPUSession(data, self._devices or all_cards(), self.memory)

    def can_fit(self, model: str, labels: Labels) -> bool:
        """Return whether there is a card, and a model can be fitted to labels on it."""
        is_plain = labels.classifier is None and labels.annotator_weight is None
        if model not in STREAMED_MODELS + RESIDENT_MODELS or not is_plain or limit_exceeded(labels):
            return False
        try:
            card = (self._devices or all_cards())[0]
        except InputError:
            return False
        if model in STREAMED_MODELS:
            return True
        if labels.on_disk or labels.n_categories > DENSE_CATEGORIES:
            return False
        return resident_bytes(labels) <= (self.memory or card.free_bytes())
