"""The loop that every iterative model runs in."""

import numpy as np
import pytest

from annotruth.errors import AnnotruthError, ConvergenceWarning
from annotruth.models.em import Monitor, run_em


def halving(x):
    """A step toward 0 whose objective is -x before and -x/2 after it."""
    return x / 2, Monitor(log_likelihood=-x, objective=-x / 2)


def run(**options):
    return run_em(
        **{"step": halving, "start": 1.0, "log_likelihood": lambda x: -x, "tol": 0.1}
        | {"max_iter": 100, "watched": "the objective"}
        | options
    )


def test_it_stops_once_the_objective_changes_by_less_than_tol():
    x, history = run()
    # Objectives -1/2, -1/4, -1/8, -1/16: the first change below 0.1 is the third, 1/16.
    assert (x, history.n_iter, history.converged) == (1 / 16, 4, True)
    assert history.stop_reason == "change of the objective below 0.1"
    np.testing.assert_array_equal(history.objective, [-1 / 2, -1 / 4, -1 / 8, -1 / 16])
    np.testing.assert_array_equal(history.log_likelihood, [-1, -1 / 2, -1 / 4, -1 / 8, -1 / 16])


def test_the_cap_is_not_convergence():
    with pytest.warns(ConvergenceWarning, match="cap of 2 iterations reached .* raise max_iter"):
        _, history = run(max_iter=2)
    assert (history.n_iter, history.converged) == (2, False)
    assert history.stop_reason == "cap of 2 iterations reached"


def test_a_tolerance_below_rounding_still_ends():
    _, history = run(step=lambda x: (x, Monitor(-1e6, -1e6)), tol=0.0)
    assert history.converged
    assert history.n_iter == 2


def test_a_breakdown_is_said_at_once():
    with pytest.raises(AnnotruthError, match="broke down at iteration 1: the objective is not"):
        run(step=lambda x: (x, Monitor(0.0, float("nan"))))


def test_progress_hears_every_step():
    told = []
    run(progress=told.append)
    assert [p.n_iter for p in told] == [1, 2, 3, 4]
    assert told[0].change == float("inf")
    assert told[-1].change == 1 / 16
