"""Fits of pair comparisons on a GPU, beside those on this machine's cores, in one run.

    python -m benchmarks.pairs.gpu                    # 10,000,000 and 100,000,000 votes
    python -m benchmarks.pairs.gpu --votes 1000000    # fewer

Votes are those of Bradley and Terry's model on 1,000 items, a tenth of them ties, by 20,000 annotators of
whom a fifth vote at random. Fits begin with integer codes in random order.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from annotruth.comparisons import Comparisons
from annotruth.engines import Engine
from annotruth.engines.gpu import GPUEngine
from annotruth.engines.gpu.device import CUDADevice
from annotruth.engines.memory import MemoryEngine
from annotruth.models.pairs.pair_gpm.parameters import PairGPMParameters, states_for
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps
from annotruth.models.pairs.registry import make_pair_estimator
from annotruth.models.pairs.result import RankFit
from benchmarks.gpu.timing import kernel_time, timed
from benchmarks.pairs.speed import N_ANNOTATORS, N_ITEMS, TIE_SHARE

VOTES = (10_000_000, 100_000_000)
CHUNK = 1_000_000
RANDOM_SHARE = 0.2
WARM_UP = 500_000  # votes of a fit that compiles the kernels


class Codes(NamedTuple):
    """Votes as integer codes, in random order."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    annotator: NDArray[np.int32]
    outcome: NDArray[np.int8]


class Engines(NamedTuple):
    """What is compared."""

    gpu: GPUEngine
    memory: MemoryEngine


def draw_codes(n_votes: int) -> Codes:
    """Draw votes."""
    scores = np.random.default_rng(0).normal(size=N_ITEMS)
    left, right, annotator = (np.empty(n_votes, np.int32) for _ in range(3))
    codes = Codes(left, right, annotator, np.empty(n_votes, np.int8))

    def fill(first: int) -> None:
        rng = np.random.default_rng(first + 1)
        n = min(CHUNK, n_votes - first)
        left = rng.integers(N_ITEMS, size=n, dtype=np.int32)
        right = (left + rng.integers(1, N_ITEMS, size=n, dtype=np.int32)) % N_ITEMS
        annotator = rng.integers(N_ANNOTATORS, size=n, dtype=np.int32)
        is_random = annotator < RANDOM_SHARE * N_ANNOTATORS
        p_left = np.where(is_random, 0.5, expit(scores[left] - scores[right]))
        right_won = rng.random(n) > p_left
        outcome = np.where(rng.random(n) < TIE_SHARE, 2, right_won)
        votes = slice(first, first + n)
        codes.left[votes], codes.right[votes] = left, right
        codes.annotator[votes], codes.outcome[votes] = annotator, outcome

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n_votes, CHUNK)))
    return codes


def make_comparisons(codes: Codes) -> Comparisons:
    """Return comparisons, which are not sorted yet."""
    return Comparisons.from_codes(*codes, items=range(N_ITEMS), annotators=range(N_ANNOTATORS))


def fit(codes: Codes, model: str, engine: Engine) -> tuple[RankFit, float]:
    """Return a fit and its seconds."""
    begin = time.perf_counter()
    result = make_pair_estimator(model, {"engine": engine}).fit(make_comparisons(codes)).result_
    return result, time.perf_counter() - begin


def describe_difference(gpu: RankFit, memory: RankFit) -> str:
    """Return by how much fits of two engines differ."""
    gap = np.abs(gpu.scores.mean - memory.scores.mean).max()
    text = f"{gpu.n_iter} and {memory.n_iter} iterations, largest difference of a score {gap:.1e}"
    if gpu.p_serious is not None and memory.p_serious is not None:
        assert gpu.reliability is not None
        assert memory.reliability is not None
        gap = np.abs(gpu.reliability - memory.reliability).max()
        text += f", of a reliability {gap:.1e}"
        gap = np.abs(gpu.p_serious - memory.p_serious).max()
        text += f", of a vote's probability {gap:.1e}"
    return text


def time_fits(codes: Codes, model: str, engines: Engines) -> None:
    (gpu, on_card), (memory, in_memory) = (fit(codes, model, engine) for engine in engines)
    print(
        f"{model}, {len(codes.left):,} votes: {on_card:.2f} s on the card, {in_memory:.2f} s in memory, "
        f"{in_memory / on_card:.1f} times as long; {describe_difference(gpu, memory)}",
        flush=True,
    )


def time_pass(n_votes: int, device: CUDADevice, engines: Engines) -> None:
    """Time a pass when unlikely states have been left out, as most passes of a fit are."""
    data = make_comparisons(draw_codes(n_votes))
    kernel, times = 0.0, {}
    for engine in engines:
        with closing(engine.open(data)) as session:
            steps = PairGPMSteps(data, session, states_for(data))
            parameters = steps.start()
            parameters.theta[:] = np.random.default_rng(0).normal(size=N_ITEMS)
            steps.prune(parameters)
            steps.sums(parameters, prune=1e-4)

            def whole(
                steps: PairGPMSteps = steps, parameters: PairGPMParameters = parameters
            ) -> None:
                steps._last = None  # the sums of the last parameters
                steps.sums(parameters)

            times[engine.name] = timed(whole, n=1 if engine is engines.memory else 5)
            if engine is engines.gpu:
                kernel = kernel_time(device, whole, n=5)
    print(
        f"a pass over {n_votes:,} votes: kernel {kernel:.1f} ms, whole {times['gpu']:.1f} ms, "
        f"{engines.memory.threads} cores {times['memory']:.0f} ms",
        flush=True,
    )


def same_results(n_votes: int, engines: Engines) -> None:
    codes = draw_codes(n_votes)
    runs = [fit(codes, "pair-gpm", engines.gpu)[0] for _ in range(3)]
    equal = all(
        np.array_equal(getattr(runs[0], name), getattr(one, name))
        for one in runs
        for name in ("reliability", "p_serious", "low", "high")
    )
    equal &= all(np.array_equal(runs[0].scores.mean, one.scores.mean) for one in runs)
    memory, _ = fit(codes, "pair-gpm", engines.memory)
    difference = describe_difference(runs[0], memory)
    print(f"{n_votes:,} votes: three runs byte-identical: {equal}; {difference}", flush=True)


def profile(codes: Codes, engine: Engine) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(fit, codes, "pair-gpm", engine)
    pstats.Stats(profiler).sort_stats("cumtime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--votes", type=int, nargs="+", default=VOTES)
    parser.add_argument(
        "--profile", action="store_true", help="where a fit on the card spends time"
    )
    arguments = parser.parse_args()
    device = CUDADevice()
    engines = Engines(GPUEngine(device), MemoryEngine())
    for engine in engines:  # compiles the kernels
        print(f"first fit: {fit(draw_codes(WARM_UP), 'pair-gpm', engine)[1]:.1f} s", flush=True)
    for n_votes in arguments.votes:
        codes = draw_codes(n_votes)
        if arguments.profile:
            profile(codes, engines.gpu)
        for model in ("bradley-terry", "pair-gpm"):
            time_fits(codes, model, engines)
    time_pass(min(arguments.votes), device, engines)
    same_results(WARM_UP, engines)


if __name__ == "__main__":
    main()
