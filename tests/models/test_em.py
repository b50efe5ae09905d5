"""The EM loop."""

import numpy as np
import pytest

from annotruth.errors import AnnotruthError, ConvergenceWarning
from annotruth.models.em import EMLoop, Monitor, run_em


class Halving:
    """Steps toward 0 whose objective is -x before and -x/2 after a step."""

    objective_name = "the objective"

    def step(self, x):
        return x / 2, Monitor(log_likelihood=-x, objective=-x / 2)

    def finalize(self, x):
        return -x


class Tenth(Halving):
    """Faster steps, for a loop that accelerates, which leaves them as they are."""

    def step(self, x):
        return x / 10, Monitor(log_likelihood=-x, objective=-x / 10)

    def acceleration(self):
        return self

    def propose(self, x):
        return x

    def accept(self, x, monitor):
        return x, True

    def finish(self, x):
        return x


class Constant(Halving):
    """Steps that stay where they are, with a given objective."""

    def __init__(self, objective):
        self.objective = objective

    def step(self, x):
        return x, Monitor(self.objective, self.objective)


def run(steps=None, progress=None, **options):
    loop = EMLoop(**{"tol": 0.1, "max_iter": 100} | options)
    return run_em(steps or Halving(), 1.0, loop, progress=progress)


def test_stops_when_the_objective_changes_by_less_than_tol():
    x, history = run()
    # Objectives -1/2, -1/4, -1/8, -1/16: the first change below 0.1 is the third, 1/16.
    assert (x, history.n_iter, history.converged) == (1 / 16, 4, True)
    assert history.stop_reason == "change of the objective below 0.1"
    np.testing.assert_array_equal(history.objective, [-1 / 2, -1 / 4, -1 / 8, -1 / 16])
    np.testing.assert_array_equal(history.log_likelihood, [-1, -1 / 2, -1 / 4, -1 / 8, -1 / 16])


def test_reaching_max_iter_is_not_convergence():
    with pytest.warns(ConvergenceWarning, match=r"reached max_iter \(2\) .* raise max_iter"):
        _, history = run(max_iter=2)
    assert (history.n_iter, history.converged) == (2, False)
    assert history.stop_reason == "reached max_iter (2) before convergence"


def test_a_single_step_has_no_change_to_report():
    with pytest.warns(
        ConvergenceWarning, match=r"convergence: raise max_iter or tol, such as max_iter=10$"
    ):
        run(max_iter=1)


def test_a_tolerance_below_rounding_still_stops():
    _, history = run(Constant(-1e6), tol=0.0)
    assert history.converged
    assert history.n_iter == 2


def test_an_objective_that_is_not_finite_is_an_error():
    with pytest.raises(AnnotruthError, match="failed at iteration 1: the objective is not finite"):
        run(Constant(float("nan")))


def test_the_error_names_an_option_that_is_not_set_already():
    class Diverging(Tenth):
        def step(self, x):
            return x, Monitor(0.0, float("nan"))

    with pytest.raises(AnnotruthError, match="try acceleration=False"):
        run(Diverging(), acceleration=True)
    with pytest.raises(AnnotruthError, match="choose another model"):
        run(Diverging())


def test_progress_is_called_after_every_step():
    calls = []
    run(progress=calls.append)
    assert [p.n_iter for p in calls] == [1, 2, 3, 4]
    assert calls[0].change == float("inf")
    assert calls[-1].change == 1 / 16
