"""Extrapolation of EM's steps: where it leads, when it is rolled back, and when the loop ends."""

from contextlib import closing
from typing import NamedTuple

import numpy as np
import pytest

from annotruth.engines import get_engine
from annotruth.models.em import EMLoop, Monitor, run_em
from annotruth.models.squarem import (
    Squarem,
    newest,
    numbers,
    numbers_above,
    probabilities,
    shares,
)

RATES = np.array([0.5, 0.9, 0.99])


class Point(NamedTuple):
    x: np.ndarray


def slow(point):
    """Converge to 0 at three rates; the objective is that before the step."""
    objective = -float(point.x @ point.x)
    return Point(RATES * point.x), Monitor(objective, objective)


class PlainSteps:
    """A step function as the steps of a model."""

    objective_name = "the objective"

    def __init__(self, step, rule):
        self.step = step
        self.rule = rule

    def finalize(self, point):
        return 0.0

    def acceleration(self):
        return Squarem(Point, self.rule)


def run(step=slow, start=None, rule=numbers, accelerate=True, **options):
    return run_em(
        PlainSteps(step, rule),
        Point(np.ones(3)) if start is None else start,
        EMLoop(**{"tol": 1e-10, "max_iter": 5000, "acceleration": accelerate} | options),
    )


def test_each_number_has_its_own_step_length():
    point, history = run()
    _, plain = run(accelerate=False)
    assert history.converged
    assert history.n_iter < plain.n_iter / 20
    np.testing.assert_allclose(point.x, 0.0, atol=1e-6)


def test_a_single_small_step_does_not_stop_the_loop():
    """Two equal objectives in a row do not stop the loop."""
    objectives = iter([0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0])

    def step(point):
        objective = next(objectives)
        return point, Monitor(objective, objective)

    _, history = run(step, rule=newest)
    np.testing.assert_array_equal(history.objective, [0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0])


@pytest.mark.parametrize("bad", [-1e9, float("nan")], ids=["falls", "not a number"])
def test_an_extrapolation_that_lowers_the_objective_is_rolled_back(bad):
    """Every step that begins elsewhere than at the last step's end is reported as worse."""
    extrapolated, ends = [], [1.0]

    def step(point):
        (x,) = point.x
        moved = x != ends[-1]
        extrapolated.append(moved)
        objective = bad if moved else -x
        if not moved:
            ends.append(0.9 * x)
        return Point(np.array([0.9 * x])), Monitor(objective, objective)

    point, history = run(step, Point(np.ones(1)), max_iter=200, tol=1e-3)
    assert history.converged
    assert sum(extrapolated) > 3
    assert (np.diff(history.objective) >= 0).all()
    # As many plain steps as passes that were not rolled back.
    assert point.x[0] == pytest.approx(0.9 ** extrapolated.count(False), rel=1e-12)
    assert (np.diff(history.objective) == 0).sum() == sum(extrapolated)


def test_the_burn_in_has_no_extrapolation():
    began = []

    def step(point):
        began.append(point.x[0])
        return Point(0.9 * point.x), Monitor(-point.x[0], -point.x[0])

    with pytest.warns(match="max_iter"):
        run(step, Point(np.ones(1)), max_iter=6, tol=0.0)
    np.testing.assert_allclose(began[:5], 0.9 ** np.arange(5))
    assert began[5] < 0.9**6  # three steps of burn-in, two to learn from, an extrapolation


def test_item_side_arrays_are_extrapolated_and_rolled_back(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=9, n_annotators=4, n_categories=3)
    with closing(get_engine("memory").open(labels)) as session:
        session.put("b", np.linspace(1.0, 2.0, 9), per="items")
        extrapolation = Squarem(Point, newest, session=session, items={"b": "numbers"})
        current, objectives, ends = Point(np.ones(1)), iter([0.0, 1.0, 2.0, 3.0, 4.0, -9.0]), []
        for extrapolated in (False, False, False, False, False, True):
            extrapolation.propose(current)
            at = session.collect("b").copy()
            ends.append(0.9 * at)
            session.collect("b")[:] = ends[-1]
            _, kept = extrapolation.accept(current, {"objective": next(objectives)})
            assert kept != extrapolated
        # Steps of 10% end at 0; the first extrapolation is at most 3 of 10.
        x0 = ends[2]
        np.testing.assert_allclose(at, x0 * (1.0 - 0.6 + 0.09))
        np.testing.assert_array_equal(session.collect("b"), ends[4])


def run_steps(objectives, *, n_steps, **options):
    """Run steps that halve their start; return where each began and whether it was accepted."""
    extrapolation = Squarem(Point, numbers, **options)
    current, began, kept, objectives = Point(np.ones(1)), [], [], iter(objectives)
    for _ in range(n_steps):
        start = extrapolation.propose(current)
        began.append(start.x[0])
        current, accepted = extrapolation.accept(
            Point(0.5 * start.x), {"objective": next(objectives)}
        )
        kept.append(accepted)
    return extrapolation, current, began, kept


RISING = [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("confirmed", [True, False])
def test_an_extrapolation_that_falls_a_little_has_one_step_to_be_confirmed(confirmed):
    extrapolation, current, began, kept = run_steps(
        [*RISING, -5.0, 5.0 if confirmed else 3.0], n_steps=7
    )
    assert began[6] == 0.5 * began[5]  # the step after the extrapolation continues from it
    assert kept == [True] * 5 + [False, confirmed]
    assert current.x[0] == (0.25 * began[5] if confirmed else 0.5**5)
    if confirmed:  # and the two are the path of the next extrapolation
        assert extrapolation.propose(current).x[0] == pytest.approx(0.0, abs=1e-12)


def test_an_unconfirmed_extrapolation_is_rolled_back_when_the_loop_ends():
    extrapolation, current, began, _ = run_steps([*RISING, -5.0], n_steps=6)
    assert current.x[0] == 0.5 * began[5]
    assert extrapolation.finish(current).x[0] == 0.5**5


def test_an_unproven_update_that_falls_is_replaced_by_the_safeguarded_one():
    def safeguarded(point):
        return Point(np.round(point.x, 1) + 7.0)

    extrapolation, current, began, kept = run_steps(
        [0.0, -1.0, -2.0], n_steps=3, safeguarded=safeguarded
    )
    # The second step fell, so the third began at the safeguarded update.
    assert began == [1.0, 0.5, 7.5]
    assert kept == [True, False, True]
    assert extrapolation.finish(current) == safeguarded(current)


def test_item_side_arrays_are_rolled_back_when_an_unproven_update_falls(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=9, n_annotators=4, n_categories=3)
    with closing(get_engine("memory").open(labels)) as session:
        session.put("b", np.linspace(1.0, 2.0, 9), per="items")
        extrapolation = Squarem(
            Point,
            newest,
            session=session,
            items={"b": "numbers"},
            safeguarded=lambda point: point,
        )
        for objective in (0.0, -1.0):
            before = session.collect("b").copy()
            extrapolation.propose(Point(np.ones(1)))
            session.collect("b")[:] *= 3.0
            extrapolation.accept(Point(np.ones(1)), {"objective": objective})
        np.testing.assert_array_equal(session.collect("b"), before)


def path(*points):
    return [np.array(point) for point in points]


def test_probabilities_stay_between_their_bounds():
    result = probabilities(*path([0.5, 0.9], [0.3, 0.97], [0.15, 0.99]), 100.0)
    # They would end at -0.3 and 0.998; 30% of the distance to the bounds is kept.
    np.testing.assert_allclose(result, [0.3 * 0.15, 1.0 - 0.3 * 0.01], atol=1e-12)


def test_shares_sum_to_one_and_stay_positive():
    result = shares(axis=0)(*path([0.6, 0.3, 0.1], [0.75, 0.2, 0.05], [0.85, 0.13, 0.02]), 50.0)
    assert result.sum() == pytest.approx(1.0, rel=1e-15)
    assert (result > 0).all()
    assert result[0] > 0.85


def test_numbers_stay_above_their_bound():
    result = numbers_above(1.0)(*path([4.0, 4.0], [3.0, 3.0], [2.1, 2.5]), 100.0)
    np.testing.assert_allclose(result, [1.0 + 0.03 * 1.1, 2.0])


def test_step_lengths_are_bounded():
    """Where steps do not shrink at all, the step length is at its limit."""
    assert numbers(*path([0.0], [1.0], [2.0]), 3.0)[0] == pytest.approx(6.0)


def test_the_limit_of_step_lengths_doubles_up_to_a_hundred():
    acceleration, point, lengths = Squarem(Point, numbers), Point(np.zeros(1)), []
    while len(lengths) < 8:
        proposed = acceleration.propose(point)
        # Steps of 1: from x0 to x0 + 2 a, where two steps lead to x0 + 2.
        if proposed.x[0] != point.x[0]:
            lengths.append((proposed.x[0] - point.x[0] + 2.0) / 2.0)
        objective = float(proposed.x[0])
        point, accepted = acceleration.accept(Point(proposed.x + 1.0), {"objective": objective})
        assert accepted
    assert lengths == pytest.approx([3, 6, 12, 24, 48, 96, 100, 100])
