"""Runs cases in forked children, which may crash, hang or take too much memory.

A child runs one case after the other and reports each through a pipe. If it dies or is silent for too
long, the case that it had begun is at fault, and another child goes on with the next.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.fuzz.checks import Failed

MAX_SECONDS = 20.0
"""The most processor time that a case may take, in seconds."""

_MAX_WAIT = 180.0  # by the clock, in which a machine that is busy otherwise gets that much time

MAX_BYTES = 2 << 30
"""The most memory that a child may have used; files and tables here are small."""

_LIMIT_BYTES = 6 << 30  # of address space beyond what the parent has: the machine survives
_CASES_PER_CHILD = 250

Part = Callable[[np.random.Generator, Path], str]
"""Runs one case in an empty folder, returns what it was, and raises if something does not hold."""


class Outcome(NamedTuple):
    """How a case ended; an empty problem if all is well."""

    number: int
    part: str
    what: str
    problem: str
    seconds: float = 0.0


class Plan(NamedTuple):
    """The parts that cases are drawn from, and the seed."""

    parts: dict[str, tuple[float, Part]]
    seed: int

    def case(self, number: int) -> tuple[str, Part, np.random.Generator]:
        """Return the part of a case and its random numbers."""
        rng = np.random.default_rng([self.seed, number])
        weights = np.array([weight for weight, _ in self.parts.values()])
        name = str(rng.choice(list(self.parts), p=weights / weights.sum()))
        return name, self.parts[name][1], rng


def run_case(plan: Plan, number: int) -> Outcome:
    """Run one case in this process."""
    name, part, rng = plan.case(number)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    home = Path.cwd()
    begin = time.monotonic()
    what = problem = ""
    try:
        os.chdir(folder)
        what = part(rng, folder)
    except Failed as failed:
        problem = str(failed)
    except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
        problem = "".join(traceback.format_exc().splitlines(keepends=True)[-12:])
    finally:
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)
    return Outcome(number, name, what, problem, time.monotonic() - begin)


def run_cases(plan: Plan, numbers: range, seconds: float) -> Iterator[Outcome]:
    """Run cases in children until all are done or the time is over."""
    end = time.monotonic() + seconds
    first = numbers.start
    while first < numbers.stop and time.monotonic() < end:
        some = range(first, min(first + _CASES_PER_CHILD, numbers.stop))
        for outcome in _run_child(plan, some, end):
            yield outcome
            first = outcome.number + 1
        if time.monotonic() >= end:
            return


def _run_child(plan: Plan, numbers: range, end: float) -> Iterator[Outcome]:
    """Run cases in one child, up to the first that ends it."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _be_child(plan, numbers, end, writing)
        finally:
            os._exit(1)
    os.close(writing)
    current, buffer = numbers.start, b""
    ended = "ended without a report"
    began, used = time.monotonic(), 0.0
    while True:
        ready, _, _ = select.select([reading], [], [], 1.0)
        if not ready:
            waited, taken = time.monotonic() - began, _processor_seconds(child) - used
            if taken > MAX_SECONDS or waited > _MAX_WAIT:
                ended = f"no answer within {taken:.0f} s of processor time, {waited:.0f} s in all"
                os.kill(child, signal.SIGKILL)
                break
            continue
        received = os.read(reading, 1 << 16)
        if not received:
            break
        *lines, buffer = (buffer + received).split(b"\n")
        for line in lines:
            outcome = Outcome(*json.loads(line))
            yield outcome
            current = outcome.number + 1
            began, used = time.monotonic(), _processor_seconds(child)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and "no answer" not in ended:
        ended = f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    if status != 0:
        yield Outcome(current, plan.case(current)[0], "", ended)


def _processor_seconds(process: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _be_child(plan: Plan, numbers: range, end: float, writing: int) -> None:
    """Run the cases and end the process: with 0 when done or out of time."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _LIMIT_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for number in numbers:
        if time.monotonic() > end:
            break
        outcome = run_case(plan, number)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if peak > MAX_BYTES:
            problem = outcome.problem or f"took {peak / 1e9:.1f} GB of memory"
            outcome = outcome._replace(problem=problem)
        os.write(writing, json.dumps(outcome).encode() + b"\n")
        if peak > MAX_BYTES:
            break
    os._exit(0)


class Results:
    """How many cases of each part ran, which failed, and the slowest."""

    def __init__(self) -> None:
        self.n_cases: Counter[str] = Counter()
        self.failures: list[Outcome] = []
        self.slowest = Outcome(-1, "", "", "")

    def add(self, outcome: Outcome) -> None:
        self.n_cases[outcome.part] += 1
        self.slowest = max(self.slowest, outcome, key=lambda each: each.seconds)
        if outcome.problem:
            self.failures.append(outcome)

    def summary(self) -> str:
        parts = ", ".join(f"{n:,} {part}" for part, n in sorted(self.n_cases.items()))
        return (
            f"{self.n_cases.total():,} cases ({parts}): {len(self.failures):,} failed; slowest "
            f"{self.slowest.seconds:.1f} s ({self.slowest.part} {self.slowest.number})"
        )
