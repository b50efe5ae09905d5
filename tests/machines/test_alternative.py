"""The alternative annotator test, against computations by hand and by SciPy."""

import numpy as np
import pytest
from scipy import stats

from annotruth.analyses.machines.dependence import alternative_test, people_labels
from annotruth.analyses.machines.fits import check_machines
from annotruth.engines import get_engine
from annotruth.errors import InputError
from annotruth.models.robust_gpm import RobustGPM


def people(matrix, values=None):
    """Return the labels of a matrix of items x people."""
    matrix = np.asarray(matrix)
    item, person = np.indices(matrix.shape)
    return people_labels(item.ravel(), person.ravel(), matrix.ravel(), values)


def by_hand(matrix, machine, margin, score):
    """Return winning rate, advantage and p-value, computed item by item."""
    n_items, n_people = matrix.shape
    p_values, advantage = [], []
    for j in range(n_people):
        wins = []
        for i in range(n_items):
            others = np.delete(matrix[i], j)
            f, h = score(machine[i], others), score(matrix[i, j], others)
            wins.append((f >= h, h >= f))
        f, h = np.array(wins, dtype=float).T
        advantage.append(f.mean())
        p_values.append(stats.ttest_1samp(h - f, margin, alternative="less").pvalue)
    adjusted = stats.false_discovery_control(p_values, method="by")
    rate = (adjusted <= 0.05).mean()
    return rate, np.mean(advantage), np.sort(adjusted)[int(np.ceil(n_people / 2)) - 1]


@pytest.mark.parametrize("ordinal", [False, True])
def test_equals_the_test_by_hand(ordinal):
    rng = np.random.default_rng(3)
    truth = rng.integers(4, size=60)
    matrix = np.where(rng.random((60, 5)) < 0.6, truth[:, None], rng.integers(4, size=(60, 5)))
    machine = np.where(rng.random(60) < 0.7, truth, rng.integers(4, size=60))
    values = np.array([1.0, 2.0, 4.0, 8.0]) if ordinal else None

    def score(label, others):
        if ordinal:
            return -np.sqrt(np.mean((values[label] - values[others]) ** 2))
        return np.mean(label == others)

    found = alternative_test(people(matrix, values), machine, 0.15)
    expected = by_hand(matrix, machine, 0.15, score)
    np.testing.assert_allclose((found.winning_rate, found.advantage, found.p_value), expected)
    assert found.n_people == 5


@pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0.0), (1.0, 1e8)])
def test_the_units_of_labels_do_not_matter(factor, shift):
    rng = np.random.default_rng(3)
    matrix, machine = rng.integers(5, size=(60, 4)), rng.integers(5, size=60)
    values = np.arange(5.0)
    found, other = (
        alternative_test(people(matrix, each), machine, 0.1)
        for each in (values, factor * values + shift)
    )
    np.testing.assert_allclose(found[:4], other[:4])


def test_a_better_machine_may_replace_people_and_a_random_one_may_not():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=100)
    matrix = np.where(rng.random((100, 4)) < 0.6, truth[:, None], rng.integers(3, size=(100, 4)))
    better, worse = (alternative_test(people(matrix), m, 0.1) for m in (truth, 2 - truth))
    assert (better.may_replace, better.winning_rate) == ("yes", 1.0)
    assert (worse.may_replace, worse.winning_rate) == ("no", 0.0)
    assert better.p_value <= 0.05 < worse.p_value


def test_a_higher_margin_makes_it_easier():
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=80)
    matrix = np.where(rng.random((80, 4)) < 0.7, truth[:, None], rng.integers(3, size=(80, 4)))
    machine = np.where(rng.random(80) < 0.7, truth, rng.integers(3, size=80))
    strict, lenient = (alternative_test(people(matrix), machine, m).p_value for m in (0.0, 0.3))
    assert lenient < strict


@pytest.mark.parametrize(("n_items", "n_people"), [(29, 5), (60, 2)])
def test_too_few_items_or_people(n_items, n_people):
    matrix = np.zeros((n_items, n_people), dtype=int)
    found = alternative_test(people(matrix), np.zeros(n_items, dtype=int), 0.1)
    assert found.may_replace == "too few labels to tell"
    assert np.isnan(found.p_value)


def test_items_without_the_machine_or_without_others_do_not_count():
    matrix = np.zeros((40, 3), dtype=int)
    machine = np.zeros(40, dtype=int)
    machine[:11] = -1
    assert alternative_test(people(matrix), machine, 0.1).n_people == 0
    machine[:11] = 0
    assert alternative_test(people(matrix), machine, 0.1).n_people == 3


@pytest.mark.parametrize("margin", [-0.1, 1.0, float("nan")])
def test_a_margin_that_is_no_share_is_refused(margin):
    options = {"machines": ["m"], "machine_margin": margin}
    with pytest.raises(InputError, match=r"^machine_margin must be from 0 to below 1"):
        check_machines(options, RobustGPM(), RobustGPM, get_engine("memory"), others=())
