"""The default model where opinions differ: whole fits on a GPU and on this machine's cores, in one run.

    python -m benchmarks.gpu_opinions                                          # needs 60 GB of memory
    python -m benchmarks.gpu_opinions --labels 20000000 --annotators 100000   # fewer labels

Labels are simulated, 10 per item, on a scale from 1 to 5.
"""

import argparse
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps

import numpy as np

import annotruth as at
from annotruth.engines.gpu import GPUEngine
from annotruth.engines.gpu.device import CUDADevice
from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.memory import MemoryEngine, MemorySession
from annotruth.labels import Labels, Scale
from annotruth.models.robust_gpm import model, opinion_results
from annotruth.models.robust_gpm.opinion_steps import OpinionSteps, SinglePrecisionOpinionSteps
from benchmarks.gpu import CHUNK, N_CATEGORIES, PER_ITEM, as_labels

STAGES = {
    "labels to the engine": [(GPUSession, "__init__"), (MemorySession, "__init__")],
    "folds": [(model, "assign_folds")],
    "verdict": [(model, "judge_agreement")],
    "truth or opinions": [(model.RobustGPM, "_has_one_truth")],
    "EM": [(model.EMEstimator, "_run_em")],
    "leave-one-out": [
        (SinglePrecisionOpinionSteps, "leave_one_out"),
        (OpinionSteps, "leave_one_out"),
    ],
    "annotators": [(opinion_results, "final_model"), (opinion_results, "annotator_results")],
    "summaries of items": [(opinion_results, "_summarize_items")],
    "parameters to memory": [(opinion_results.OpinionState, "to_host")],
    "collecting items": [(GPUSession, "collect")],
    "tables of items": [(opinion_results, "item_results")],
}
SHARES = (0.1, 0.7, 0.95)  # reliabilities of annotators
SPREAD = 0.2  # standard deviation of opinions, as a share of the scale


def make_opinions(n_labels: int, n_annotators: int) -> Labels:
    """Return labels around each item's mean opinion, some of them random."""
    n_items = n_labels // PER_ITEM
    category = np.empty((n_items, PER_ITEM), dtype=np.uint8)
    annotator = np.empty((n_items, PER_ITEM), dtype=np.int32)
    reliability = np.random.default_rng(1).choice(SHARES, n_annotators).astype(np.float32)

    def fill(first: int) -> None:
        rng = np.random.default_rng(first)
        at_ = slice(first, min(first + CHUNK, n_items))
        shape = category[at_].shape
        chosen = rng.integers(n_annotators, size=shape, dtype=np.int32)
        chosen.reshape(-1)[: max(0, n_annotators - first * PER_ITEM)] = np.arange(
            first * PER_ITEM, min(n_annotators, (first + shape[0]) * PER_ITEM)
        )  # everybody has a label
        opinion = rng.random((shape[0], 1), dtype=np.float32)
        opinion = opinion + SPREAD * rng.standard_normal(shape, dtype=np.float32)
        serious = np.clip(N_CATEGORIES * opinion, 0, N_CATEGORIES - 1).astype(np.uint8)
        drawn = rng.integers(N_CATEGORIES, size=shape, dtype=np.uint8)
        is_serious = rng.random(shape, dtype=np.float32) < reliability[chosen]
        labels = np.where(is_serious, serious, drawn)
        order = np.argsort(labels, axis=1)
        category[at_] = np.take_along_axis(labels, order, axis=1)
        annotator[at_] = np.take_along_axis(chosen, order, axis=1)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n_items, CHUNK)))
    return as_labels(category, annotator, n_annotators, Scale.ordinal([1, 2, 3, 4, 5]))


@contextmanager
def stages(synchronize):
    """Yield the seconds of each stage of the fits within."""
    seconds, restored = defaultdict(float), []

    def measured(stage, function):
        @wraps(function)
        def run(*arguments, **options):
            synchronize()
            begin = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                synchronize()
                seconds[stage] += time.perf_counter() - begin

        return run

    for stage, functions in STAGES.items():
        for owner, name in functions:
            original = vars(owner)[name]
            restored.append((owner, name, original))
            setattr(owner, name, measured(stage, original))
    try:
        yield seconds
    finally:
        for owner, name, original in restored:
            setattr(owner, name, original)


def time_fit(labels: Labels, engine, synchronize=lambda: None, **options):
    """Return the fit and its seconds, and print those of its stages."""
    with stages(synchronize) as seconds:
        begin = time.perf_counter()
        fit = at.RobustGPM(engine=engine, **options).fit(labels).result_
        whole = time.perf_counter() - begin
    parts = ", ".join(f"{stage} {spent:.2f}" for stage, spent in seconds.items())
    rest = whole - sum(seconds.values())
    print(
        f"{engine.name}: {whole:.2f} s, {fit.n_iter} iterations ({parts}, rest {rest:.2f})",
        flush=True,
    )
    return fit, whole


def compare(fit, memory) -> None:
    """Print by how much two fits differ."""
    gap = np.abs(fit.reliability - memory.reliability).max()
    share = np.abs(fit.distribution.probability - memory.distribution.probability).max()
    same = (fit.label == memory.label).mean()
    named = np.mean([a == b for a, b in zip(fit.behavior, memory.behavior, strict=True)])
    print(
        f"largest difference of a reliability {gap:.1e}, of a share of opinion {share:.1e}; same label "
        f"for {same:.4%} of the items, same behavior for {named:.4%} of the annotators",
        flush=True,
    )


def same_bytes(fits) -> bool:
    """Return whether fits are identical to the last bit."""
    first, *others = fits
    return all(
        np.array_equal(first.reliability, one.reliability)
        and np.array_equal(first.distribution.probability, one.distribution.probability)
        and np.array_equal(first.p_serious, one.p_serious)
        and first.log_likelihood == one.log_likelihood
        for one in others
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=100_000_000)
    parser.add_argument("--annotators", type=int, default=500_000)
    parser.add_argument("--truth", default="auto")
    arguments = parser.parse_args()
    device = CUDADevice()
    synchronize = device.xp.cuda.Device().synchronize
    labels = make_opinions(1_000_000, 5_000)
    fits = [
        time_fit(labels, GPUEngine(device), synchronize, truth=arguments.truth)[0] for _ in range(3)
    ]
    print(f"three runs byte-identical: {same_bytes(fits)}")
    compare(fits[0], time_fit(labels, MemoryEngine(), truth=arguments.truth)[0])
    labels = make_opinions(arguments.labels, arguments.annotators)
    print(f"{labels.n_labels:,} labels, {labels.n_annotators:,} annotators")
    fit, seconds = time_fit(labels, GPUEngine(device), synchronize, truth=arguments.truth)
    fit, seconds = time_fit(labels, GPUEngine(device), synchronize, truth=arguments.truth)
    memory, longer = time_fit(labels, MemoryEngine(), truth=arguments.truth)
    print(f"the memory engine takes {longer / seconds:.1f} times as long")
    compare(fit, memory)


if __name__ == "__main__":
    main()
