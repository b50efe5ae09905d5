"""`GPUEngine`: passes on one NVIDIA card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from annotruth.engines.gpu.device import CUDADevice, Device
from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.protocol import EngineCapabilities
from annotruth.errors import InputError
from annotruth.labels import Labels

if TYPE_CHECKING:
    from annotruth.io.options import ReadOptions


class GPUEngine:
    """Runs passes of gpm and dawid-skene on an NVIDIA card, with item-side arrays in single precision.

    Sums are integers, so results are identical to the last bit on every run and for every grid.

    Parameters
    ----------
    device
        Where kernels run; the current card by default.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = at.simulate.crowd(n_items=1000, n_annotators=50, seed=0).labels
    >>> at.fit(labels, "gpm", engine="gpu").n_spammers  # doctest: +SKIP
    0
    """

    name: ClassVar[str] = "gpu"
    capabilities: ClassVar[EngineCapabilities] = EngineCapabilities()

    def __init__(self, device: Device | None = None) -> None:
        self._device = device

    def read(
        self, source: Any, options: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
    ) -> Labels:
        """Read labels from a path, a frame, tuples or Labels."""
        from annotruth.io.readers import load_labels

        return load_labels(source, options, gold=gold, annotator_prior=annotator_prior)

    def open(self, data: Any) -> GPUSession:
        """Copy labels to the card."""
        if not isinstance(data, Labels):
            raise InputError(
                "the engine gpu takes labels in memory only: choose engine='memory' "
                "(`--engine memory`)"
            )
        return GPUSession(data, self._device or CUDADevice())
