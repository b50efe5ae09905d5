"""How a pass grows with the labels: time, threads, a bare read of the same bytes, memory."""

from __future__ import annotations

import argparse
import math
import resource
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numba

from annotruth.engines import Pass
from annotruth.engines.memory import MemoryEngine, MemorySession
from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled
from annotruth.labels import Labels
from annotruth.models import gpm_steps
from benchmarks import machine
from benchmarks.crowds import LABELS_PER_ANNOTATOR, laid_out
from benchmarks.timing import Sample, by_steps, interleaved

PEOPLE = 5_000  # the same crowd labels ever more


class Size(NamedTuple):
    """What was measured of one number of labels: seconds a pass, and bytes."""

    n_labels: int
    one_thread: float
    default: float
    read_one_thread: float
    read_default: float
    peak: int


# Whole numbers may be added in any order, floats only with leave: so both sums become vectors.
_whole_sum = numba.njit(nogil=True)(lambda values: values.sum())
_float_sum = numba.njit(nogil=True, fastmath={"reassoc"})(lambda values: values.sum())


@compiled
def read(block: Block, lo: int, hi: int, theta: Floats, totals: Floats) -> None:
    """Read, and add up, all that GPM's step reads of the items: the least a pass can take."""
    first, last = block.item_ptr[lo], block.item_ptr[hi]
    begin, end = block.cell_ptr[first], block.cell_ptr[last]
    totals[0] += _whole_sum(block.item_ptr[lo:hi]) + _whole_sum(block.known[lo:hi])
    totals[0] += _whole_sum(block.cell_ptr[first:last]) + _whole_sum(block.annotator[begin:end])
    totals[0] += _float_sum(theta[first:last])


def bare_read(labels: Labels, threads: int, stack: ExitStack) -> Sample:
    """Time the bare read in the engine's own parts and threads."""
    session = stack.enter_context(closing(MemorySession(labels, threads, lambda _: read)))
    session.allocate("theta", per="cells")
    session.collect("theta")[:] = 0.5  # zeros that nobody wrote are not in memory yet
    sweep = Pass("growth.read", ("theta",), ((1,),))
    return by_steps(lambda _: (None, session.run_pass(sweep)), None, 1)


def gpm_pass(labels: Labels, engine: MemoryEngine, stack: ExitStack) -> Sample:
    """Time the model's own step."""
    session = stack.enter_context(closing(engine.open(labels)))
    steps = gpm_steps.Steps(labels, session, learned=False)
    return by_steps(steps.step, steps.start(), 1)


def measure(n_labels: int, n_annotators: int, rounds: int) -> Size:
    """Measure one size, by the fastest round: other work only ever adds."""
    labels = laid_out(n_labels, n_annotators)
    every = MemoryEngine()
    with ExitStack() as stack:
        times = interleaved(
            {
                "one": gpm_pass(labels, MemoryEngine(threads=1), stack),
                "default": gpm_pass(labels, every, stack),
                "read one": bare_read(labels, 1, stack),
                "read default": bare_read(labels, every.threads, stack),
            },
            max(rounds, rounds * 10_000_000 // n_labels),
        )
    return Size(labels.n_labels, *(taken.fastest for taken in times.values()), _peak())


def _peak() -> int:
    """The most bytes this process ever held; Linux's own count leaves out its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def sizes(most: int, rounds: int, *, people_grow: bool = False) -> list[Size]:
    """Measure a million labels and ten times as many up to ``most``, each in a new process.

    So the peak of memory is that of one size alone. ``people_grow``: every annotator gives as
    many labels at every size, so that their parameters and sums leave the caches.
    """
    numbers = [10**power for power in range(6, int(math.log10(most) + 1e-9) + 1)]
    measured = []
    for number in numbers:
        people = number // LABELS_PER_ANNOTATOR if people_grow else PEOPLE
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            measured.append(process.submit(measure, number, people, rounds).result())
    return measured


def table(measured: list[Size]) -> str:
    """A Markdown table, a row a size."""
    lines = [
        "| labels | ns a label, 1 thread | default | gain | bare reads | default | peak GB |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for size in measured:
        one, every = (1e9 * seconds / size.n_labels for seconds in (size.one_thread, size.default))
        lines.append(
            f"| {size.n_labels:,} | {one:.2f} | {every:.2f} | {one / every:.2f} "
            f"| {size.one_thread / size.read_one_thread:.1f} "
            f"| {size.default / size.read_default:.1f} | {size.peak / 1e9:.2f} |"
        )
    return "\n".join(lines)


def told(measured: list[Size]) -> str:
    """Say with which power of the number of labels time grows, from the least to the most."""
    first, last = measured[0], measured[-1]
    if first is last:
        return "One size tells no growth."
    times = (last.default / first.default, last.one_thread / first.one_thread)
    default, one = (math.log(time) / math.log(last.n_labels / first.n_labels) for time in times)
    return f"Time grows with the power {default:.2f} of the labels, on one thread {one:.2f}."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each (default: 7)")
    parser.add_argument(
        "--most", type=int, default=10_000_000, help="labels to grow to (default: 10,000,000)"
    )
    parser.add_argument(
        "--people-grow",
        action="store_true",
        help=f"annotators grow with the labels, {LABELS_PER_ANNOTATOR} each (default: {PEOPLE:,})",
    )
    options = parser.parse_args()
    grown = sizes(options.most, options.rounds, people_grow=options.people_grow)
    print(f"{machine.describe()}\n\n{table(grown)}\n")
    print(told(grown))


if __name__ == "__main__":
    main()
