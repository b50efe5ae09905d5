"""EM steps and whole fits on a GPU, beside those on this machine's cores, in one run.

    python -m benchmarks.gpu                     # passes on the card; needs 60 GB of memory
    python -m benchmarks.gpu --labels 10000000   # fewer labels
    python -m benchmarks.gpu --part streaming    # labels larger than the card; needs 80 GB of memory
    python -m benchmarks.gpu --part start        # from how many labels on the card is faster
    python -m benchmarks.gpu --part parquet      # from a file to the card
    python -m benchmarks.gpu --part robust-gpm   # whole fits of the default model

Labels are simulated, 10 per item and 5 categories. A power law gives annotator s a share of 1/s.
"""

import argparse
import importlib
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import annotruth as at
from annotruth.engines.gpu import GPUEngine
from annotruth.engines.gpu.device import CUDADevice
from annotruth.engines.memory import MemoryEngine
from annotruth.labels import Labels, Scale
from annotruth.models.dawid_skene.steps import DawidSkeneSteps
from annotruth.models.gpm.steps import GPMSteps

PER_ITEM, N_CATEGORIES = 10, 5
CHUNK = 1_000_000  # items


def make_labels(n_labels: int, n_annotators: int, *, power_law: bool = False) -> Labels:
    """Return labels that are right with probability 0.7."""
    n_items = n_labels // PER_ITEM
    category = np.empty((n_items, PER_ITEM), dtype=np.uint8)
    annotator = np.empty((n_items, PER_ITEM), dtype=np.int32)

    def fill(first: int) -> None:
        rng = np.random.default_rng(first)
        at_ = slice(first, min(first + CHUNK, n_items))
        shape = category[at_].shape
        truth = rng.integers(N_CATEGORIES, size=(shape[0], 1), dtype=np.uint8)
        drawn = rng.integers(N_CATEGORIES, size=shape, dtype=np.uint8)
        category[at_] = np.where(rng.random(shape, dtype=np.float32) < 0.7, truth, drawn)
        category[at_].sort(axis=1)
        if power_law:
            annotator[at_] = np.exp(rng.random(shape) * np.log(n_annotators)).astype(np.int32)
        else:
            annotator[at_] = rng.integers(n_annotators, size=shape, dtype=np.int32)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n_items, CHUNK)))
    return as_labels(category, annotator, n_annotators, Scale.nominal(list("abcde")))


def as_labels(
    category: np.ndarray, annotator: np.ndarray, n_annotators: int, scale: Scale
) -> Labels:
    """Return labels given as items x labels per item, with the categories of an item rising."""
    n_items, n_labels = len(category), category.size
    is_first = np.ones((n_items, PER_ITEM), dtype=np.bool_)
    is_first[:, 1:] = category[:, 1:] != category[:, :-1]
    cell = np.flatnonzero(is_first)
    n_cells = is_first.sum(axis=1, dtype=np.uint8)
    annotator = annotator.reshape(-1)
    annotator[:n_annotators] = np.arange(n_annotators)  # everybody has a label
    return Labels(
        items=pa.array(np.arange(n_items)),
        annotators=pa.array(np.arange(n_annotators)),
        scale=scale,
        item_ptr=np.append(0, np.cumsum(n_cells, dtype=np.int64)),
        cell_category=category.reshape(-1)[cell].astype(np.int32),
        cell_ptr=np.append(cell, n_labels),
        annotator=annotator,
        row=np.empty(0, dtype=np.int64),
        known=np.full(n_items, -1, dtype=np.int32),
    )


def timed(run, n: int = 10) -> float:
    """Return the milliseconds per run on the clock; a run ends when its results are in memory."""
    run()
    begin = time.perf_counter()
    for _ in range(n):
        run()
    return (time.perf_counter() - begin) * 1e3 / n


def kernel_time(device: CUDADevice, run, n: int = 10) -> float:
    """Return the milliseconds per run that its kernels take."""
    original, times = device.run, []

    def measured(*arguments, **options):
        times.append(elapsed(device, partial(original, *arguments, **options)))

    device.run = measured
    try:
        run()
        times.clear()
        for _ in range(n):
            run()
    finally:
        del device.run
    return sum(times) / n


def elapsed(device: CUDADevice, run) -> float:
    """Return the milliseconds of a run on the card."""
    cuda = device.xp.cuda
    begin, end = cuda.Event(), cuda.Event()
    begin.record()
    run()
    end.record()
    end.synchronize()
    return cuda.get_elapsed_time(begin, end)


def copy_rate(device: CUDADevice) -> float:
    """Return how many TB/s a copy on the card reads and writes."""
    source = device.xp.zeros(1 << 30, np.float32)
    target = device.xp.empty_like(source)
    times = [elapsed(device, lambda: device.xp.copyto(target, source)) for _ in range(10)]
    return 2 * source.nbytes / np.median(times) / 1e9


def time_gpm(device: CUDADevice, n_labels: int, n_annotators: int, *, power_law: bool) -> None:
    labels = make_labels(n_labels, n_annotators, power_law=power_law)
    with closing(GPUEngine(device).open(labels)) as session:
        steps = GPMSteps(labels, session, learned=False)
        parameters, _ = steps.step(steps.start())
        step = partial(steps.step, parameters)
        kernel, whole = kernel_time(device, step), timed(step)
    spread = "power law" if power_law else "even"
    print(
        f"gpm, {n_labels:,} labels, {n_annotators:,} annotators ({spread}): kernel {kernel:.2f} ms, "
        f"whole step {whole:.2f} ms",
        flush=True,
    )
    device.xp.get_default_memory_pool().free_all_blocks()


def time_dawid_skene(device: CUDADevice, n_labels: int, n_annotators: int) -> None:
    labels = make_labels(n_labels, n_annotators)
    with closing(GPUEngine(device).open(labels)) as session:
        steps = DawidSkeneSteps(labels, session)
        step = partial(steps.step, steps.start())
        kernels, whole = kernel_time(device, step), timed(step)
    engine = MemoryEngine()
    with closing(engine.open(labels)) as session:
        steps = DawidSkeneSteps(labels, session)
        memory = timed(partial(steps.step, steps.start()), n=3)
    print(
        f"dawid-skene, {n_labels:,} labels, {n_annotators:,} annotators: kernels {kernels:.2f} ms, "
        f"whole step {whole:.2f} ms; whole step on {engine.threads} cores {memory:.0f} ms, "
        f"{memory / whole:.0f} times as long",
        flush=True,
    )
    device.xp.get_default_memory_pool().free_all_blocks()


STAGES = (
    ("model", "assign_folds"),
    ("model", "judge_agreement"),
    ("choice", "choose"),
    ("model", "run_em"),
    ("class_results", "final_state"),
    ("class_results", "make_class_fit"),
)


@contextmanager
def timed_stages(seconds: dict[str, float]):
    """Write how long each stage of a fit of RobustGPM takes."""

    def measured(name, function, *arguments, **options):
        begin = time.perf_counter()
        result = function(*arguments, **options)
        seconds[name] = time.perf_counter() - begin
        return result

    with ExitStack() as stack:
        for module, name in STAGES:
            module = importlib.import_module(f"annotruth.models.robust_gpm.{module}")
            function = partial(measured, name, getattr(module, name))
            stack.enter_context(patch.object(module, name, function))
        yield


def time_fit(labels: Labels, engine) -> tuple[at.Fit, float]:
    """Return a fit of the default model and its seconds, and print those of each stage."""
    seconds: dict[str, float] = {}
    labels = replace(labels)  # without what was counted before
    begin = time.perf_counter()
    with timed_stages(seconds):
        fit = at.fit(labels, engine=engine)
    total = time.perf_counter() - begin
    seconds["other"] = total - sum(seconds.values())
    stages = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    print(f"robust-gpm, {engine.name}: {total:.2f} s ({stages})", flush=True)
    return fit, total


def time_robust_gpm(n_labels: int = 100_000_000) -> None:
    """Time whole fits of the default model, on the card and in memory."""
    device, n_annotators = CUDADevice(), n_labels // 200
    small = make_labels(1_000_000, 5_000)
    for engine in (GPUEngine(device), MemoryEngine()):
        at.fit(small, engine=engine)  # compiles the kernels
    labels = make_labels(n_labels, n_annotators)
    runs = [time_fit(labels, GPUEngine(device)) for _ in range(3)]
    fit = runs[0][0]
    equal = all(
        np.array_equal(fit.reliability, one.reliability)
        and np.array_equal(fit.distribution.probability, one.distribution.probability)
        for one, _ in runs[1:]
    )
    fastest = min(seconds for _, seconds in runs)
    del runs
    memory, seconds = time_fit(labels, MemoryEngine())
    print(
        f"robust-gpm, {n_labels:,} labels, {n_annotators:,} annotators, {fit.n_iter} iterations: "
        f"{fastest:.2f} s; on {MemoryEngine().threads} cores {seconds:.1f} s, "
        f"{seconds / fastest:.1f} times as long; three runs byte-identical: {equal}; "
        f"{compared(fit, memory)}",
        flush=True,
    )


def compared(fit: at.Fit, memory: at.Fit) -> str:
    """Return how a fit on the card differs from one in memory."""
    gap = np.abs(fit.reliability - memory.reliability).max()
    same = (fit.label == memory.label).mean()
    return (
        f"largest difference of a reliability from the memory engine {gap:.1e}, same label for "
        f"{same:.4%} of the items"
    )


def same_results(device: CUDADevice) -> None:
    ordinal = at.simulate.crowd(n_items=2000, n_annotators=100, labels_per_item=10, seed=3).labels
    nominal = replace(ordinal, scale=Scale.nominal(list("abcde")))
    for model, labels in (("gpm", ordinal), ("dawid-skene", ordinal), ("robust-gpm", nominal)):
        runs = [at.fit(labels, model, engine=GPUEngine(device)) for _ in range(3)]
        equal = all(np.array_equal(runs[0].reliability, one.reliability) for one in runs)
        equal &= all(
            np.array_equal(runs[0].distribution.probability, one.distribution.probability)
            for one in runs
        )
        print(
            f"{model}: three runs byte-identical: {equal}; "
            f"{compared(runs[0], at.fit(labels, model))}"
        )


def time_passes(n_labels: int = 1_000_000_000) -> None:
    """Time the passes over labels on the card."""
    device = CUDADevice()
    print(f"copy on the card: {copy_rate(device):.2f} TB/s")
    same_results(device)
    for n_annotators, power_law in (
        (5_000, False),
        (20_000, False),
        (1_000_000, True),
        (1_000_000, False),
    ):
        n_annotators = min(n_annotators, n_labels // 100)
        time_gpm(device, n_labels, n_annotators, power_law=power_law)
    for n_annotators in (5_000, 500_000):
        time_dawid_skene(device, max(n_labels // 10, 1_000_000), n_annotators)


# name: the module and the function, which takes the number of labels
PARTS = {
    "passes": ("benchmarks.gpu", "time_passes"),
    "robust-gpm": ("benchmarks.gpu", "time_robust_gpm"),
    "streaming": ("benchmarks.gpu_streaming", "time_streaming"),
    "start": ("benchmarks.gpu_start", "time_start"),
    "parquet": ("benchmarks.gpu_parquet", "time_parquet"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, default="passes")
    parser.add_argument("--labels", type=int)
    arguments = parser.parse_args()
    module, function = PARTS[arguments.part]
    run = getattr(importlib.import_module(module), function)
    run(*([] if arguments.labels is None else [arguments.labels]))


if __name__ == "__main__":
    main()
