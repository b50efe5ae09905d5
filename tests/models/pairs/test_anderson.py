"""Anderson acceleration: few steps where EM takes many, and falls of the objective are rolled back."""

from typing import NamedTuple

import numpy as np
import pytest

from annotruth.models.em import Monitor, run_em
from annotruth.models.pairs.anderson import Anderson, Coordinates


class Point(NamedTuple):
    x: np.ndarray
    shares: np.ndarray


class SlowSteps:
    """Steps towards ``best`` whose residuals shrink by 2 to 50% each."""

    objective_name = "the distance"
    best = Point(np.array([3.0, -1.0]), np.array([0.5, 0.3, 0.2]))
    rates = Point(np.array([0.02, 0.3]), np.array([0.02, 0.5, 0.1]))

    def step(self, point: Point) -> tuple[Point, Monitor]:
        pairs = zip(point, self.best, self.rates, strict=True)
        x, shares = (a + rate * (b - a) for a, b, rate in pairs)
        distance = sum(((a - b) ** 2).sum() for a, b in zip(point, self.best, strict=True))
        return Point(x, shares / shares.sum()), Monitor(-distance, -distance)

    def finalize(self, point: Point) -> float:
        return self.step(point)[1].objective

    def acceleration(self) -> Anderson[Point]:
        scales = (Coordinates(is_shares=shares, scale=1.0) for shares in (False, True))
        return Anderson(Point, *scales)


START = Point(np.zeros(2), np.full(3, 1 / 3))


def test_slow_directions_take_few_steps():
    _, plain_history = run_em(SlowSteps(), START, tol=1e-10, max_iter=2000)
    fast, history = run_em(SlowSteps(), START, tol=1e-10, max_iter=2000, accelerate=True)
    assert history.n_iter < 25
    assert plain_history.n_iter > 200
    for found, best in zip(fast, SlowSteps.best, strict=True):
        np.testing.assert_allclose(found, best, atol=1e-4)
    assert fast.shares.sum() == pytest.approx(1.0)


def test_accepted_objectives_do_not_fall():
    _, history = run_em(SlowSteps(), START, tol=1e-10, max_iter=2000, accelerate=True)
    assert (np.diff(history.objective) >= 0).all()


def test_a_fall_is_rolled_back_to_the_end_of_the_last_step():
    anderson = SlowSteps().acceleration()
    at, steps = START, SlowSteps()
    for _ in range(4):
        end, monitor = steps.step(anderson.propose(at))
        at, accepted = anderson.accept(end, monitor._asdict())
        assert accepted
    assert not np.allclose(at.x, end.x)  # an extrapolation
    worse, _ = steps.step(anderson.propose(at))
    back, accepted = anderson.accept(worse, {"objective": monitor.objective - 1.0})
    assert not accepted
    assert back is end
    assert anderson.finish(back) is end
