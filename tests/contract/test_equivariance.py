"""No answer depends on names or on the order of rows."""

import numpy as np
import pytest
from tests.fuzz.crowds import TOLERANCE, change_of_crowd

import annotruth as at
from annotruth.models.registry import MODELS, get_model

SEED = 15


def has_engine(name):
    return "engine" in get_model(name)().settings()


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("name", MODELS)
def test_names_and_the_order_of_rows_change_nothing(name, number):
    change = change_of_crowd(name, (SEED, number))
    assert max(change.values(), default=0.0) <= TOLERANCE, change


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("name", [name for name in MODELS if has_engine(name)])
def test_names_and_the_order_of_rows_change_nothing_on_the_reference_engine(name, number):
    change = change_of_crowd(name, (SEED, 100 + number), engine="reference")
    assert max(change.values(), default=0.0) <= TOLERANCE, change


@pytest.mark.parametrize(
    ("name", "seed"),
    [("gpm", 628899699), ("dawid-skene", 2121968558), ("dawid-skene", 598166652)],
)
def test_rounding_does_not_decide_between_mirror_images(name, seed):
    """In exact arithmetic both images have the same results; here they differed by up to 1."""
    change = change_of_crowd(name, (seed, 0))
    assert max(change.values(), default=0.0) <= TOLERANCE, change


@pytest.mark.parametrize("name", MODELS)
def test_known_truths_are_as_independent_of_names(name):
    if get_model(name).capabilities.ordinal_only:
        pytest.skip("categories with an order cannot be renamed")
    rows = [(e, s, "xyz"[(e + (s > 3) * (e % 2)) % 3]) for e in range(9) for s in range(6)]
    gold = {0: "y", 4: "x"}
    one = at.fit(rows, name, gold=gold)
    swap = {"x": "z", "z": "x", "y": "y"}
    other = at.fit(
        [(e, s, swap[label]) for e, s, label in reversed(rows)],
        name,
        gold={e: swap[label] for e, label in gold.items()},
    )
    p, q = (fit.distribution.dense(3) for fit in (one, other))
    np.testing.assert_allclose(q[::-1, ::-1], p, atol=TOLERANCE)


@pytest.mark.parametrize("name", MODELS)
def test_an_exact_tie_stays_undecided(name):
    """Exchanging a and b, x and y is the same table, so both labels are equally likely."""
    rows = [(0, "a", "x"), (0, "b", "y"), (1, "a", "y"), (1, "b", "x")]
    rows += [(e, who, "x") for e in (2, 3) for who in "cd"]
    rows += [(e, who, "y") for e in (4, 5) for who in "cd"]
    if get_model(name).capabilities.ordinal_only:
        rows = [(e, who, "xy".index(label)) for e, who, label in rows]
    fit = at.fit(rows, name)
    if fit.distribution is None:
        assert fit.expectation[0] == pytest.approx(0.5, abs=1e-9)
    else:
        np.testing.assert_allclose(fit.distribution.dense(2)[:2], 0.5, atol=1e-9)


@pytest.mark.parametrize("n_known", [2, 4])
@pytest.mark.parametrize("name", MODELS)
def test_known_truths_of_symmetric_labels_stay_known(name, n_known):
    """Exchanging the labels, and even items with odd ones, is the same table with other truths."""
    rows = [(e, who, "xy"[(e + n) % 2]) for e in range(4) for n, who in enumerate("ab")]
    if get_model(name).capabilities.ordinal_only:
        rows = [(e, who, "xy".index(label)) for e, who, label in rows]
    gold = {e: label for e, who, label in rows if who == "a" and e < n_known}
    fit = at.fit(rows, name, gold=gold)
    if fit.distribution is None:
        assert fit.expectation[:n_known].tolist() == list(gold.values())
    else:
        assert at.evaluate(fit, gold)["accuracy"] == 1.0
    assert fit.reliability is None or fit.reliability[0] >= fit.reliability[1]
