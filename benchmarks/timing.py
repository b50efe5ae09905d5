"""Seconds per pass, measured in turn so that other load on the machine affects all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeVar

Parameters = TypeVar("Parameters")

# Makes one measurement and returns the seconds per pass.
Sample = Callable[[], float]


@dataclass(frozen=True)
class Timings:
    """The measurements of one contender, in seconds per pass."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def fastest(self) -> float:
        return min(self.samples)


def time_steps(
    step: Callable[[Parameters], tuple[Parameters, object]], start: Parameters, n_steps: int
) -> Sample:
    """Time EM steps directly; every measurement continues where the previous one stopped."""
    parameters = start

    def sample() -> float:
        nonlocal parameters
        start_time = perf_counter()
        for _ in range(n_steps):
            parameters, _ = step(parameters)
        return (perf_counter() - start_time) / n_steps

    return sample


def time_difference(fit: Callable[[int], object], few: int, many: int) -> Sample:
    """Time a pass of a model that offers only ``fit(n_iter)``.

    The difference of a long and a short fit is the time of the extra iterations: reading the
    frame, initialization and output are in both.
    """

    def seconds(n_iter: int) -> float:
        start_time = perf_counter()
        fit(n_iter)
        return perf_counter() - start_time

    return lambda: (seconds(many) - seconds(few)) / (many - few)


def measure_in_turn(contenders: Mapping[str, Sample], rounds: int) -> dict[str, Timings]:
    """Measure all contenders in turn, ``rounds`` times, after one round to warm up.

    A slow phase of the machine then affects all of them, and the median leaves it out.
    """
    measured: dict[str, list[float]] = {name: [] for name in contenders}
    for sample in contenders.values():
        sample()
    for _ in range(rounds):
        for name, sample in contenders.items():
            measured[name].append(sample())
    return {name: Timings(tuple(samples)) for name, samples in measured.items()}
