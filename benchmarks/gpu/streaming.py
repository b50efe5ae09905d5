"""EM steps over labels that are copied to the card in partitions by every pass.

The copy that they are compared with is that of the same bytes from the same page-locked memory. Reading
labels and copying them to page-locked memory once, before the first pass, are timed separately.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

import numpy as np

import annotruth as at
from annotruth.engines.gpu import GPUEngine
from annotruth.engines.gpu.device import CUDADevice
from annotruth.engines.gpu.session import GPUSession
from annotruth.models.confusion.dawid_skene import DawidSkeneSteps
from annotruth.models.gpm import GPMSteps
from annotruth.observations import Labels
from benchmarks.gpu.crowds import make_labels
from benchmarks.gpu.timing import same_bytes, stage, timed

N_ANNOTATORS = 20_000


def copied(session: GPUSession) -> list[Any]:
    """Return the arrays that every pass copies to the card."""
    arrays = session.cards[0].arrays
    return [one.values for one in arrays.values() if not one.on_card]


def copy_time(device: CUDADevice, arrays: list[Any], n_bytes: int = 1 << 26) -> float:
    """Return the milliseconds of a copy of arrays to the card, in one queue."""
    buffer, queue = device.xp.empty(n_bytes, np.uint8), device.queue()

    def copy() -> None:
        for array in arrays:
            flat = array.reshape(-1).view(np.uint8)
            for first in range(0, len(flat), n_bytes):
                values = flat[first : first + n_bytes]
                queue.upload(values, buffer[: len(values)])
        queue.wait()

    return timed(copy, n=5)


def time_model(model: str, labels: Labels, device: CUDADevice, memory: int) -> None:
    """Time the steps of a model on labels that do not fit into the given memory of the card."""
    print(f"{model}, {labels.n_labels:,} labels, {memory / 1e9:.1f} GB of the card:", flush=True)
    with stage("copied to page-locked memory in"):
        session = GPUEngine(device, memory=memory).open(labels)
    assert isinstance(session, GPUSession)
    with closing(session):
        steps: Any = (
            GPMSteps(labels, session, learned=False)
            if model == "gpm"
            else DawidSkeneSteps(labels, session)
        )
        with stage("start"):
            parameters = steps.start()
        whole = timed(partial(steps.step, parameters), n=5)
        arrays = copied(session)
        copy = copy_time(device, arrays)
        n_bytes = sum(array.nbytes for array in arrays)
        print(
            f"  {len(session.cards[0].partitions)} partitions, {n_bytes / 1e9:.1f} GB copied per pass; "
            f"whole step {whole:.0f} ms, the copy alone {copy:.0f} ms ({n_bytes / copy / 1e6:.1f} GB/s), "
            f"ratio {whole / copy:.2f}",
            flush=True,
        )
    device.xp.get_default_memory_pool().free_all_blocks()
    device.xp.get_default_pinned_memory_pool().free_all_blocks()


def same_results(device: CUDADevice) -> None:
    """Compare fits of labels on the card with fits in partitions."""
    for n_categories in (5, 40):
        labels = at.simulate.crowd(
            n_items=20_000,
            n_annotators=300,
            n_categories=n_categories,
            labels_per_item=10,
            seed=3,
        ).labels
        for model in ("gpm", "dawid-skene"):
            for memory in ("1MB", "300kB"):  # items stay on the card, or not
                whole, streamed = (
                    at.fit(labels, model, engine=GPUEngine(device, memory=size), tol=1e-2)
                    for size in (None, memory)
                )
                print(
                    f"{model}, {n_categories} categories, {memory}: "
                    f"identical {same_bytes([whole, streamed])}",
                    flush=True,
                )


def time_streaming(n_labels: int = 3_000_000_000) -> None:
    device = CUDADevice()
    with stage("labels made in"):
        labels = make_labels(n_labels, N_ANNOTATORS)
    time_model("gpm", labels, device, memory=7 * n_labels)
    del labels
    labels = make_labels(n_labels // 10, N_ANNOTATORS)
    time_model("dawid-skene", labels, device, memory=7 * n_labels // 10)
    same_results(device)
