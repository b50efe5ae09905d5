"""The passes of PairGPM's estimation beside their NumPy twins."""

import copy
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tests.kernels.twins import assert_same

from annotruth.models.pairs.pair_gpm.estimation import estimate, start_estimate
from annotruth.models.pairs.pair_gpm.votes import make_votes
from annotruth.observations import LEFT, RIGHT, TIE, Comparisons


@pytest.mark.parametrize("n_annotators", [4, 40])  # with more votes each than items, and with fewer
@pytest.mark.parametrize("has_contexts", [False, True])
@pytest.mark.parametrize("covariates", [{}, {"length": np.linspace(-1.0, 2.0, 400) ** 2}])
def test_passes_equal_their_twins(n_annotators, has_contexts, covariates):
    rng = np.random.default_rng(5)
    left, annotator = rng.integers(6, size=400), rng.integers(n_annotators, size=400)
    right = (left + rng.integers(1, 6, size=400)) % 6
    favoured = np.where(left == 0, LEFT, np.where(right == 0, RIGHT, TIE))
    comparisons = Comparisons.from_codes(
        left,
        right,
        annotator,
        np.where(annotator == 0, favoured, rng.integers(3, size=400)),
        items=list("abcdef"),
        annotators=list(range(n_annotators)),
        covariates=covariates,
    )
    if has_contexts:
        codes = np.arange(400, dtype=np.int32) % 25
        comparisons = replace(
            comparisons, context=codes, contexts=pa.array(list(map(str, range(25))))
        )
    votes = make_votes(comparisons)
    compiled, twins = votes.passes(), votes.passes(reference=True)
    seen = Counter()

    def run(name, over, *arguments, sums=()):
        seen[name] += 1
        if seen[name] > 3:
            return compiled.run(name, over, *arguments, sums=sums)
        of_twin = copy.deepcopy(arguments)
        found = compiled.run(name, over, *arguments, sums=sums)
        expected = twins.run(name, over, *of_twin, sums=sums)
        written = (list(arrays_in(each)) for each in ((arguments, found), (of_twin, expected)))
        assert_same(written, rtol=1e-9, atol=1e-10)
        return found

    now = start_estimate(votes, SimpleNamespace(run=run))
    estimate(now, tol=0.0, max_rounds=2)
    assert votes.has_contexts == has_contexts
    assert len(seen) == 6 + has_contexts


def arrays_in(values):
    """Return the arrays in tuples and lists within one another."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from arrays_in(value)
        elif isinstance(value, np.ndarray):
            yield value
