"""Times of passes, kernels and stages of a fit, and whether fits are the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from annotruth.engines.gpu.device import CUDADevice
from annotruth.models.result import Fit

Stages = Mapping[str, Sequence[tuple[object, str]]]
"""Stages of a fit: the functions or methods of each, as their owners and names."""


def timed(run: Callable[[], object], n: int = 10) -> float:
    """Return the milliseconds per run on the clock; a run ends when its results are in memory."""
    run()
    begin = time.perf_counter()
    for _ in range(n):
        run()
    return (time.perf_counter() - begin) * 1e3 / n


def kernel_time(device: CUDADevice, run: Callable[[], object], n: int = 10) -> float:
    """Return the milliseconds per run that its kernels take."""
    original, times = device.run, list[float]()

    def measured(*arguments: Any, **options: Any) -> None:
        times.append(elapsed(device, partial(original, *arguments, **options)))

    with patch.object(device, "run", measured):
        run()
        times.clear()
        for _ in range(n):
            run()
    return sum(times) / n


def elapsed(device: CUDADevice, run: Callable[[], object]) -> float:
    """Return the milliseconds of a run on the card."""
    cuda = device.xp.cuda
    begin, end = cuda.Event(), cuda.Event()
    begin.record()
    run()
    end.record()
    end.synchronize()
    return float(cuda.get_elapsed_time(begin, end))


def copy_rate(device: CUDADevice) -> float:
    """Return how many TB/s a copy on the card reads and writes."""
    source = device.xp.zeros(1 << 30, np.float32)
    target = device.xp.empty_like(source)
    times = [elapsed(device, lambda: device.xp.copyto(target, source)) for _ in range(10)]
    return float(2 * source.nbytes / np.median(times) / 1e9)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print how long something took."""
    begin = time.perf_counter()
    yield
    print(f"  {name}: {time.perf_counter() - begin:.2f} s", flush=True)


@contextmanager
def timed_stages(stages: Stages, wait: Callable[[], object]) -> Iterator[dict[str, float]]:
    """Yield the seconds of each stage of the fits within; ``wait`` waits for the card."""
    seconds = dict.fromkeys(stages, 0.0)

    def measured(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            wait()
            begin = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                wait()
                seconds[name] += time.perf_counter() - begin

        return run

    with ExitStack() as stack:
        for name, functions in stages.items():
            for owner, attribute in functions:
                function = measured(name, vars(owner)[attribute])
                stack.enter_context(patch.object(owner, attribute, function))
        yield seconds


def same_bytes(fits: Sequence[Fit]) -> bool:
    """Whether fits are identical to the last bit."""
    first, *others = map(_results, fits)
    return all(np.array_equal(a, b) for other in others for a, b in zip(first, other, strict=True))


def _results(fit: Fit) -> list[Any]:
    assert fit.distribution is not None
    return [fit.reliability, fit.distribution.probability, fit.p_serious, fit.log_likelihood]


def compared(fit: Fit, memory: Fit) -> str:
    """Return how a fit on the card differs from one in memory."""
    assert fit.reliability is not None
    assert memory.reliability is not None
    assert fit.distribution is not None
    assert memory.distribution is not None
    gap = np.abs(fit.reliability - memory.reliability).max()
    same = np.mean(np.asarray(fit.label) == np.asarray(memory.label))
    text = f"largest difference of a reliability from the memory engine {gap:.1e}"
    if len(fit.distribution.probability) == len(memory.distribution.probability):
        share = np.abs(fit.distribution.probability - memory.distribution.probability).max()
        text += f", of a probability of an item {share:.1e}"
    return f"{text}; same label for {same:.4%} of the items"
