"""Kernels compiled by a second process while this one compiles others.

Numba compiles one function at a time in a process, and the kernels of all models take long enough to
wait for. Where many models are fitted, a second process compiles kernels that this one needs later;
this one then finds them in the cache on disk.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np

from annotruth.engines.memory import MemorySession
from annotruth.errors import AnnotruthError
from annotruth.kernels.arrays import usable_cores
from annotruth.models.registry import DEFAULT_MODEL
from annotruth.observations import Labels, Scale
from annotruth.observations.frames import as_arrow
from annotruth.selection.heldout import held_out

_N_ITEMS, _N_ANNOTATORS, _MAX_CATEGORIES = 30, 6, 10

# The first shares kernels with the default model, which needs them late; the others follow it.
_DURING_DEFAULT = ("one-coin", "gpm", "dawid-skene", "bwa")


@contextmanager
def compiling_in_parallel(models: Sequence[str], labels: Labels) -> Iterator[None]:
    """Start a second process that compiles the models' kernels once this one begins to compile.

    It ends with the block at the latest. Nothing is started if all kernels are in the cache, if
    there is one model, or one core.
    """
    if len(models) < 2 or usable_cores() < 2 or not sys.executable:
        yield
        return
    from annotruth.kernels.compiled import on_first_compilation  # here because it loads Numba

    n_categories = min(len(labels.scale), _MAX_CATEGORIES)
    kind = "ordinal" if labels.scale.is_ordinal else "nominal"
    arguments = [kind, str(n_categories), str(labels.n_labels), *second_order(models)]
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        # Without it the models are compiled one after the other, so no error is worth a word.
        with suppress(OSError):
            started.append(_start(arguments))

    with on_first_compilation(start):
        try:
            yield
        finally:
            for process in started:
                process.terminate()
                process.wait()


def second_order(models: Sequence[str]) -> list[str]:
    """Return the models in the order in which the second process compiles them.

    The last comes first, so that the two processes meet once. But the default model takes the first
    process about as long as it takes the second to compile the models of `_DURING_DEFAULT`.
    """
    early = [name for name in _DURING_DEFAULT if models[0] == DEFAULT_MODEL and name in models]
    return [*early, *(name for name in reversed(models) if name not in early)]


def _start(arguments: list[str]) -> subprocess.Popen[bytes]:
    # -P: modules in the current folder are not imported.
    command = [sys.executable, "-P", "-m", __name__, *arguments]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)


def compile_models(
    is_ordinal: bool, n_categories: int, n_labels: int, models: Sequence[str]
) -> None:
    """Fit models to a few labels, one after the other, which compiles their kernels.

    They are the kernels that ``n_labels`` labels need.
    """
    if n_labels >= MemorySession.few_labels:
        MemorySession.few_labels = 0
    names = [str(k) for k in range(n_categories)]
    item = np.repeat(np.arange(_N_ITEMS), _N_ANNOTATORS)
    annotator = np.tile(np.arange(_N_ANNOTATORS), _N_ITEMS)
    labels = Labels.from_codes(
        item,
        annotator,
        (item + (item * annotator % 5 == 1)) % n_categories,
        items=as_arrow(np.arange(_N_ITEMS)),
        annotators=as_arrow(np.arange(_N_ANNOTATORS)),
        scale=Scale(
            "ordinal" if is_ordinal else "nominal",
            as_arrow(names),
            np.arange(1.0, n_categories + 1),
        ),
    )
    for model in models:
        with suppress(AnnotruthError):
            held_out(model, labels, folds=2)


if __name__ == "__main__":
    compile_models(sys.argv[1] == "ordinal", int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
