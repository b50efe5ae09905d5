"""Seconds a pass, on a machine that does other things too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeVar

Parameters = TypeVar("Parameters")

# Takes one measurement and returns the seconds of one pass.
Sample = Callable[[], float]


@dataclass(frozen=True)
class Seconds:
    """The measurements of one contender."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def fastest(self) -> float:
        return min(self.samples)


def by_steps(
    step: Callable[[Parameters], tuple[Parameters, object]], start: Parameters, n_steps: int
) -> Sample:
    """Time passes directly; every measurement goes on where the last one stopped."""
    parameters = start

    def sample() -> float:
        nonlocal parameters
        began = perf_counter()
        for _ in range(n_steps):
            parameters, _ = step(parameters)
        return (perf_counter() - began) / n_steps

    return sample


def by_difference(fit: Callable[[int], object], few: int, many: int) -> Sample:
    """Time a pass of what offers only ``fit(n_iter)``.

    A long fit less a short one leaves the extra passes alone: reading the frame, the start and
    the read-out are in both.
    """

    def seconds(n_iter: int) -> float:
        began = perf_counter()
        fit(n_iter)
        return perf_counter() - began

    return lambda: (seconds(many) - seconds(few)) / (many - few)


def interleaved(contenders: Mapping[str, Sample], rounds: int) -> dict[str, Seconds]:
    """Measure all contenders in turn, ``rounds`` times, after one round to warm up.

    So a slow minute of the machine falls on all of them, and the median leaves it out.
    """
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for sample in contenders.values():
        sample()
    for _ in range(rounds):
        for name, sample in contenders.items():
            taken[name].append(sample())
    return {name: Seconds(tuple(samples)) for name, samples in taken.items()}
