"""Time and memory of one GPM pass by number of labels, compared with reading the same bytes."""

from __future__ import annotations

import argparse
import math
import resource
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annotruth.engines import Pass, Sum
from annotruth.engines.memory import MemoryEngine, MemorySession
from annotruth.kernels import Kernel
from annotruth.kernels.arrays import Block, Floats
from annotruth.models.gpm import GPM
from annotruth.observations import Labels
from benchmarks import machine
from benchmarks.crowds import LABELS_PER_ANNOTATOR, sorted_labels
from benchmarks.timing import Sample, measure_in_turn, time_steps

ANNOTATORS = 5_000  # at every size, unless they grow with the labels


class SizeResult(NamedTuple):
    """The measurements for one number of labels: seconds per pass, and bytes."""

    n_labels: int
    one_thread: float
    default: float
    read_one_thread: float
    read_default: float
    peak: int


def read_block(block: Block, lo: int, hi: int, theta: Floats, totals: Floats) -> None:
    """Read all numbers that GPM's step reads: a lower bound on the time of a pass."""
    first, last = block.item_ptr[lo], block.item_ptr[hi]
    begin, end = block.cell_ptr[first], block.cell_ptr[last]
    for codes in (
        block.item_ptr[lo:hi],
        block.known[lo:hi],
        block.cell_ptr[first:last],
        block.annotator[begin:end],
    ):
        totals[0] += np.bitwise_or.reduce(codes)  # of the type of the codes, unlike a sum
    totals[0] += theta[first:last].sum()


class ReadingSession(MemorySession):
    """A session whose passes only read."""

    def _find_kernel(self, name: str) -> Kernel:
        return read_block


def bare_read(labels: Labels, threads: int, stack: ExitStack) -> Sample:
    """Time the bare read with the engine's partitions and threads."""
    session = stack.enter_context(closing(ReadingSession(labels, threads)))
    session.allocate("theta", per="cells")
    session.collect("theta")[:] = 0.5  # untouched zeros are not in memory yet
    read_pass = Pass("scaling.read", state=("theta",), sums=(Sum("totals", (1,)),))
    return time_steps(lambda _: (None, session.run_pass(read_pass)), None, 1)


def gpm_pass(labels: Labels, engine: MemoryEngine, stack: ExitStack) -> Sample:
    """Time the model's step."""
    session = stack.enter_context(closing(engine.open(labels)))
    steps = GPM()._steps(labels, session)
    return time_steps(steps.step, steps.start(), 1)


def measure(n_labels: int, n_annotators: int, rounds: int) -> SizeResult:
    """Measure one size by the fastest round, because other load only adds time."""
    labels = sorted_labels(n_labels, n_annotators)
    default = MemoryEngine()
    with ExitStack() as stack:
        times = measure_in_turn(
            {
                "one": gpm_pass(labels, MemoryEngine(threads=1), stack),
                "default": gpm_pass(labels, default, stack),
                "read one": bare_read(labels, 1, stack),
                "read default": bare_read(labels, default.threads, stack),
            },
            max(rounds, rounds * 10_000_000 // n_labels),
        )
    fastest = [times[name].fastest for name in ("one", "default", "read one", "read default")]
    return SizeResult(
        labels.n_labels, fastest[0], fastest[1], fastest[2], fastest[3], _peak_bytes()
    )


def _peak_bytes() -> int:
    """Return the peak memory of this process; on Linux without that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_sizes(
    max_labels: int, rounds: int, *, growing_annotators: bool = False
) -> list[SizeResult]:
    """Measure a million labels and ten times as many up to ``max_labels``, each in a new process.

    The peak of memory is then that of one size. With ``growing_annotators`` the labels per
    annotator are constant, so that annotators' parameters and sums outgrow the caches.
    """
    sizes = [10**power for power in range(6, int(math.log10(max_labels) + 1e-9) + 1)]
    results = []
    for size in sizes:
        n_annotators = size // LABELS_PER_ANNOTATOR if growing_annotators else ANNOTATORS
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            results.append(process.submit(measure, size, n_annotators, rounds).result())
    return results


def table(results: list[SizeResult]) -> str:
    """Return a Markdown table with one row per size."""
    lines = [
        "| labels | ns per label, 1 thread | default | gain | bare reads | default | peak GB |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for size in results:
        one, default = (
            1e9 * seconds / size.n_labels for seconds in (size.one_thread, size.default)
        )
        lines.append(
            f"| {size.n_labels:,} | {one:.2f} | {default:.2f} | {one / default:.2f} "
            f"| {size.one_thread / size.read_one_thread:.1f} "
            f"| {size.default / size.read_default:.1f} | {size.peak / 1e9:.2f} |"
        )
    return "\n".join(lines)


def describe_growth(results: list[SizeResult]) -> str:
    """Return the power of the number of labels with which time grows."""
    first, last = results[0], results[-1]
    if first is last:
        return "Growth needs two sizes."
    times = (last.default / first.default, last.one_thread / first.one_thread)
    default, one = (math.log(time) / math.log(last.n_labels / first.n_labels) for time in times)
    return (
        f"Time grows with the power {default:.2f} of the number of labels, on one thread {one:.2f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=7, help="measurements per contender (default: 7)"
    )
    parser.add_argument(
        "--max-labels", type=int, default=10_000_000, help="largest size (default: 10,000,000)"
    )
    parser.add_argument(
        "--growing-annotators",
        action="store_true",
        help=f"{LABELS_PER_ANNOTATOR} labels per annotator (default: {ANNOTATORS:,} annotators)",
    )
    options = parser.parse_args()
    results = measure_sizes(
        options.max_labels, options.rounds, growing_annotators=options.growing_annotators
    )
    print(f"{machine.describe()}\n\n{table(results)}\n")
    print(describe_growth(results))


if __name__ == "__main__":
    main()
