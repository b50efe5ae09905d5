"""Leaps along EM's steps: where they lead, when they are taken back, and when the loop ends."""

from contextlib import closing
from typing import NamedTuple

import numpy as np
import pytest

from annotruth.engines import get_engine
from annotruth.models import squarem as acceleration
from annotruth.models.em import Monitor, run_em
from annotruth.models.squarem import (
    Squarem,
    newest,
    numbers,
    numbers_above,
    probabilities,
    shares,
)

RATES = np.array([0.5, 0.9, 0.99])


class Place(NamedTuple):
    x: np.ndarray


def slow(place):
    """Go to 0 at three speeds; the objective is that before the step."""
    height = -float(place.x @ place.x)
    return Place(RATES * place.x), Monitor(height, height)


def run(step=slow, start=None, rule=numbers, accelerated=True, **options):
    return run_em(
        step,
        Place(np.ones(3)) if start is None else start,
        log_likelihood=lambda place: 0.0,
        acceleration=Squarem(Place, rule) if accelerated else None,
        **{"tol": 1e-10, "max_iter": 5000, "watched": "the objective"} | options,
    )


def test_each_number_ends_by_its_own_steps():
    place, history = run()
    _, plain = run(accelerated=False)
    assert history.converged
    assert history.n_iter < plain.n_iter / 20
    np.testing.assert_allclose(place.x, 0.0, atol=1e-6)


def test_no_single_small_step_ends_it():
    """Two equal entries in a row are no end: the step after them goes on."""
    heights = iter([0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0])

    def step(place):
        height = next(heights)
        return place, Monitor(height, height)

    _, history = run(step, rule=newest)
    np.testing.assert_array_equal(history.objective, [0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0])


@pytest.mark.parametrize("bad", [-1e9, float("nan")], ids=["falls", "not a number"])
def test_a_leap_that_leads_downhill_is_taken_back(bad):
    """Whatever began elsewhere than at the last step's end is told to be worse."""
    told, ends = [], [1.0]

    def step(place):
        (x,) = place.x
        leapt = x != ends[-1]
        told.append(leapt)
        height = bad if leapt else -x
        if not leapt:
            ends.append(0.9 * x)
        return Place(np.array([0.9 * x])), Monitor(height, height)

    place, history = run(step, Place(np.ones(1)), max_iter=200, tol=1e-3)
    assert history.converged
    assert sum(told) > 3
    assert (np.diff(history.objective) >= 0).all()
    # As many plain steps as passes that were not taken back.
    assert place.x[0] == pytest.approx(0.9 ** told.count(False), rel=1e-12)
    assert (np.diff(history.objective) == 0).sum() == sum(told)


def test_the_first_steps_are_left_alone():
    began = []

    def step(place):
        began.append(place.x[0])
        return Place(0.9 * place.x), Monitor(-place.x[0], -place.x[0])

    with pytest.warns(match="cap"):
        run(step, Place(np.ones(1)), max_iter=6, tol=0.0)
    np.testing.assert_allclose(began[:5], 0.9 ** np.arange(5))
    assert began[5] < 0.9**6  # three steps alone, two to learn from, a leap


def test_item_side_arrays_leap_too_and_come_back(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=9, n_annotators=4, n_categories=3)
    with closing(get_engine("memory").open(labels)) as session:
        session.put("b", np.linspace(1.0, 2.0, 9), per="items")
        leaps = Squarem(Place, newest, session=session, items={"b": "numbers"})
        here, heights, ends = Place(np.ones(1)), iter([0.0, 1.0, 2.0, 3.0, 4.0, -9.0]), []
        for began_with_a_leap in (False, False, False, False, False, True):
            leaps.propose(here)
            at = session.gather("b").copy()
            ends.append(0.9 * at)
            session.gather("b")[:] = ends[-1]
            _, kept = leaps.accept(here, {"objective": next(heights)})
            assert kept != began_with_a_leap
        # Steps of 10% end at 0; the longest first leap is 3 of 10.
        x0 = ends[2]
        np.testing.assert_allclose(at, x0 * (1.0 - 0.6 + 0.09))
        np.testing.assert_array_equal(session.gather("b"), ends[4])


def told(heights, *, n_steps, **options):
    """Go through steps that halve what they begin with; return where each began and was kept."""
    leaps = Squarem(Place, numbers, **options)
    here, began, kept, heights = Place(np.ones(1)), [], [], iter(heights)
    for _ in range(n_steps):
        at = leaps.propose(here)
        began.append(at.x[0])
        here, keep = leaps.accept(Place(0.5 * at.x), {"objective": next(heights)})
        kept.append(keep)
    return leaps, here, began, kept


RISING = [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("made_good", [True, False])
def test_a_leap_that_falls_a_little_has_one_step_to_make_it_good(made_good):
    leaps, here, began, kept = told([*RISING, -5.0, 5.0 if made_good else 3.0], n_steps=7)
    assert began[6] == 0.5 * began[5]  # the step after the leap goes on from it
    assert kept == [True] * 5 + [False, made_good]
    assert here.x[0] == (0.25 * began[5] if made_good else 0.5**5)
    if made_good:  # and the two are the way of the next leap
        assert leaps.propose(here).x[0] == pytest.approx(0.0, abs=1e-12)


def test_what_is_in_doubt_is_given_up_when_the_loop_ends():
    leaps, here, began, _ = told([*RISING, -5.0], n_steps=6)
    assert here.x[0] == 0.5 * began[5]
    assert leaps.settle(here).x[0] == 0.5**5


def test_a_bold_end_that_falls_gives_way_to_the_proven_one():
    def safeguarded(place):
        return Place(np.round(place.x, 1) + 7.0)

    leaps, here, began, kept = told([0.0, -1.0, -2.0], n_steps=3, safeguarded=safeguarded)
    # The second step fell and the third began at what is proven instead; nothing is more so.
    assert began == [1.0, 0.5, 7.5]
    assert kept == [True, False, True]
    assert leaps.settle(here) == safeguarded(here)


def test_items_of_a_bold_end_that_falls_come_back(make_labels):
    labels = make_labels(np.random.default_rng(0), n_items=9, n_annotators=4, n_categories=3)
    with closing(get_engine("memory").open(labels)) as session:
        session.put("b", np.linspace(1.0, 2.0, 9), per="items")
        leaps = Squarem(
            Place,
            newest,
            session=session,
            items={"b": "numbers"},
            safeguarded=lambda place: place,
        )
        for height in (0.0, -1.0):
            before = session.gather("b").copy()
            leaps.propose(Place(np.ones(1)))
            session.gather("b")[:] *= 3.0
            leaps.accept(Place(np.ones(1)), {"objective": height})
        np.testing.assert_array_equal(session.gather("b"), before)


def path(*points):
    return [np.array(point) for point in points]


def test_probabilities_stay_between_their_bounds():
    leapt = probabilities(*path([0.5, 0.9], [0.3, 0.97], [0.15, 0.99]), 100.0)
    # They would end at -0.3 and 0.998; what is left to the bounds is at least 30% of what was.
    np.testing.assert_allclose(leapt, [0.3 * 0.15, 1.0 - 0.3 * 0.01], atol=1e-12)


def test_shares_sum_to_one_and_what_could_be_still_can():
    leapt = shares(axis=0)(*path([0.6, 0.3, 0.1], [0.75, 0.2, 0.05], [0.85, 0.13, 0.02]), 50.0)
    assert leapt.sum() == pytest.approx(1.0, rel=1e-15)
    assert (leapt > 0).all()
    assert leapt[0] > 0.85


def test_numbers_stay_above_their_bound():
    leapt = numbers_above(1.0)(*path([4.0, 4.0], [3.0, 3.0], [2.1, 2.5]), 100.0)
    np.testing.assert_allclose(leapt, [1.0 + 0.03 * 1.1, 2.0])


def test_reaches_are_bounded():
    """Where steps do not shrink at all, a leap is no longer than it may be."""
    assert numbers(*path([0.0], [1.0], [2.0]), 3.0)[0] == pytest.approx(6.0)
    assert acceleration._MOST <= 100.0
