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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from annotruth.engines import Engine
from annotruth.engines.gpu import GPUEngine
from annotruth.engines.gpu.device import CUDADevice
from annotruth.engines.memory import MemoryEngine
from annotruth.models.pairs.registry import make_pair_estimator
from annotruth.models.result import RankFit
from annotruth.observations import Comparisons
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
    return f"{gpu.n_iter} and {memory.n_iter} iterations, largest difference of a score {gap:.1e}"


def time_fits(codes: Codes, model: str, engines: Engines) -> None:
    (gpu, on_card), (memory, in_memory) = (fit(codes, model, engine) for engine in engines)
    print(
        f"{model}, {len(codes.left):,} votes: {on_card:.2f} s on the card, {in_memory:.2f} s in memory, "
        f"{in_memory / on_card:.1f} times as long; {describe_difference(gpu, memory)}",
        flush=True,
    )


def profile(codes: Codes, engine: Engine) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(fit, codes, "bradley-terry", engine)
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
        print(
            f"first fit: {fit(draw_codes(WARM_UP), 'bradley-terry', engine)[1]:.1f} s", flush=True
        )
    for n_votes in arguments.votes:
        codes = draw_codes(n_votes)
        if arguments.profile:
            profile(codes, engines.gpu)
        for model in ("bradley-terry", "thurstone"):
            time_fits(codes, model, engines)


if __name__ == "__main__":
    main()
