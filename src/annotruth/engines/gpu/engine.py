"""`GPUEngine`: passes on one NVIDIA card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from annotruth.engines.gpu.device import (
    CUDADevice,
    bytes_on_card,
    errors_in_one_line,
    limit_exceeded,
)
from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.memory import MemoryEngine
from annotruth.engines.protocol import EngineCapabilities, Session
from annotruth.errors import InputError
from annotruth.observations import Labels

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions

MODELS = ("gpm", "dawid-skene", "robust-gpm")


class GPUEngine:
    """Runs passes on an NVIDIA card: those of gpm, dawid-skene and robust-gpm.

    Sums are integers, so results are identical to the last bit on every run and for every grid.

    Parameters
    ----------
    device
        Where kernels run; by default, the current card.
    """

    name: ClassVar[str] = "gpu"
    capabilities: ClassVar[EngineCapabilities] = EngineCapabilities()

    def __init__(self, device: CUDADevice | None = None) -> None:
        self._device = device

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
            return GPUSession(data, self._device or CUDADevice())

    def can_fit(self, model: str, labels: Labels) -> bool:
        """Return whether there is a card, and a model can be fitted to labels on it."""
        is_plain = labels.classifier is None and labels.annotator_weight is None
        is_plain = is_plain and not labels.on_disk and not limit_exceeded(labels)
        if model not in MODELS or not is_plain:
            return False
        try:
            device = self._device or CUDADevice()
        except InputError:
            return False
        return bytes_on_card(labels) <= device.free_bytes()
