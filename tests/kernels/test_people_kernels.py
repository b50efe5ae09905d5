"""Compiled passes that compare annotators with the others, beside their NumPy twins."""

import numpy as np
import pytest
from tests.kernels.twins import Twins

from annotruth.kernels import people
from annotruth.kernels.shared import AGREEMENT_MOMENTS, CAVITY_MOMENTS

reference = Twins("people")

S, K, Z, G = 7, 3, 4, 5


@pytest.fixture
def block(make_labels):
    rng = np.random.default_rng(3)
    labels = make_labels(rng, n_items=40, n_annotators=S, n_categories=K)
    return labels.with_gold({labels.items[0].as_py(): labels.scale.categories[1].as_py()}).block()


def states():
    rng = np.random.default_rng(5)
    counts = rng.gamma(1.0, 4.0, (S, K, Z))
    counts[2] = 0.0  # from which nothing is taken out
    pseudo_counts = rng.gamma(1.0, 1.0, (S, K, Z))
    with_totals = [
        np.concatenate([table, table.sum(axis=1, keepdims=True)], axis=1)
        for table in (counts, pseudo_counts)
    ]
    mass = with_totals[0] + with_totals[1]
    log_share = np.log(mass[:, :-1] / mass[:, -1:])
    truth = rng.dirichlet(np.ones(Z), K)
    return (
        rng.dirichlet(np.ones(Z)),
        truth,
        *with_totals,
        log_share,
        0.2,
        rng.uniform(0.5, 1.0, S),
    )


def run(module, name, block, *arguments, shapes):
    """Return the sums of a kernel that runs over two ranges of items."""
    sums = [np.zeros(shape) for shape in shapes]
    n_items = len(block.known)
    for lo, hi in ((0, 15), (15, n_items)):
        getattr(module, name)(block, lo, hi, *arguments, *sums)
    return sums


@pytest.mark.parametrize(
    ("name", "inputs", "shapes"),
    [
        ("moments", "cavities", [(S, Z), (S, CAVITY_MOMENTS)]),
        ("log_likelihood", "strategies", [(S, G)]),
        ("count_compared", "", [(S, K)]),
        ("agreement", "members", [(S, K), (S, AGREEMENT_MOMENTS)]),
    ],
)
def test_compiled_passes_equal_their_twins(block, name, inputs, shapes):
    rng = np.random.default_rng(11)
    shares = rng.dirichlet(np.ones(K), S)
    arguments = {
        "": (),
        "cavities": (*states(), rng.random((Z, K)), rng.dirichlet(np.ones(K), Z), shares),
        "members": (np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0]), rng.random((K, K)), shares),
        "strategies": (
            *states(),
            rng.dirichlet(np.ones(K), (2, Z)).transpose(0, 2, 1).copy(),
            rng.gamma(2.0, 0.5, (S, 2, K)),
            rng.gamma(2.0, 0.5, (S, 2, Z)),
            np.argsort(rng.random((S, K)), axis=1),
            rng.dirichlet(np.ones(K), (S, 2)),
            np.array([0, 1, 2, 0, 1]),
            np.array([0, 1, 0, 1, 1]),
            np.array([0.1, 0.5, 0.9, 0.99, 0.3]),
        ),
    }[inputs]
    found = run(people, name, block, *arguments, shapes=shapes)
    expected = run(reference, name, block, *arguments, shapes=shapes)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(other).max() > 0
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
