"""EM steps of GPM and Dawid-Skene on the card, and whether fits on it are those in memory."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial

import annotruth as at
from annotruth.engines.gpu import GPUEngine
from annotruth.engines.gpu.device import CUDADevice
from annotruth.engines.memory import MemoryEngine
from annotruth.models.confusion.dawid_skene import DawidSkeneSteps
from annotruth.models.gpm import GPMSteps
from annotruth.observations import Scale
from benchmarks.gpu.crowds import make_labels
from benchmarks.gpu.timing import compared, copy_rate, kernel_time, same_bytes, timed


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


def same_results(device: CUDADevice) -> None:
    """Compare fits on the card with one another and with those in memory."""
    ordinal = at.simulate.crowd(n_items=2000, n_annotators=100, labels_per_item=10, seed=3).labels
    nominal = replace(ordinal, scale=Scale.nominal(list("abcde")))
    for model, labels in (("gpm", ordinal), ("dawid-skene", ordinal), ("robust-gpm", nominal)):
        runs = [at.fit(labels, model, engine=GPUEngine(device)) for _ in range(3)]
        print(
            f"{model}: three runs byte-identical: {same_bytes(runs)}; "
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
