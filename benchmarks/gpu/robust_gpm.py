"""Whole fits of the default model where items have one right label, on the card and in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import annotruth as at
from annotruth.engines import Engine
from annotruth.engines.gpu import GPUEngine
from annotruth.engines.gpu.device import CUDADevice
from annotruth.engines.memory import MemoryEngine
from annotruth.models.robust_gpm import class_model, model
from annotruth.observations import Labels
from benchmarks.gpu.crowds import make_labels
from benchmarks.gpu.timing import Stages, compared, same_bytes, timed_stages

STAGES: Stages = {
    "folds": [(model, "assign_folds")],
    "verdict": [(model, "judge_agreement")],
    "choice": [(class_model, "choose")],
    "EM": [(class_model, "run_em")],
    "leave-one-out": [(class_model, "final_state")],
    "results": [(class_model.RightLabelModel, "make_fit")],
}


def time_fit(
    labels: Labels, engine: Engine, stages: Stages, wait: Callable[[], object] = lambda: None
) -> tuple[at.Fit, float]:
    """Return a fit of the default model and its seconds, and print those of each stage."""
    labels = replace(labels)  # without what was counted before
    begin = time.perf_counter()
    with timed_stages(stages, wait) as seconds:
        fit = at.RobustGPM(engine=engine).fit(labels).result_
    total = time.perf_counter() - begin
    parts = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    rest = total - sum(seconds.values())
    print(
        f"{engine.name}: {total:.2f} s, {fit.n_iter} iterations ({parts}, rest {rest:.2f})",
        flush=True,
    )
    return fit, total


def compare_engines(
    make: Callable[[int, int], Labels], n_labels: int, n_annotators: int, stages: Stages
) -> None:
    """Time fits of the default model on the card and in memory, and compare their results."""
    device = CUDADevice()
    gpu, memory = GPUEngine(device), MemoryEngine()
    wait = device.xp.cuda.Device().synchronize
    small = make(1_000_000, 5_000)
    for engine in (gpu, memory):
        at.fit(small, engine=engine)  # compiles the kernels
    labels = make(n_labels, n_annotators)
    print(f"robust-gpm, {labels.n_labels:,} labels, {labels.n_annotators:,} annotators", flush=True)
    runs = [time_fit(labels, gpu, stages, wait) for _ in range(3)]
    equal, fit = same_bytes([fit for fit, _ in runs]), runs[0][0]
    fastest = min(seconds for _, seconds in runs)
    del runs
    in_memory, seconds = time_fit(labels, memory, stages)
    print(
        f"on {memory.threads} cores {seconds / fastest:.1f} times as long; three runs byte-identical: "
        f"{equal}; {compared(fit, in_memory)}",
        flush=True,
    )


def time_robust_gpm(n_labels: int = 100_000_000) -> None:
    """Time fits of items with one right label."""
    compare_engines(make_labels, n_labels, n_labels // 200, STAGES)
