"""The passes for people as CUDA kernels, against their NumPy twins."""

from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import pytest
from tests.engines.gpu.host_device import device_of

from annotruth.engines import get_engine
from annotruth.engines.gpu import GPUEngine
from annotruth.models.people.passes import ItemStates, PeoplePasses
from annotruth.models.people.posterior import people_posterior
from annotruth.observations import Labels, Scale

N_ANNOTATORS, N_CATEGORIES = 12, 4


def make_states(n_states, class_of):
    """States of items with annotators who are mostly right."""
    rng = np.random.default_rng(3)
    right = np.eye(N_CATEGORIES)[np.arange(n_states) % N_CATEGORIES]
    serious = 0.7 * right.T + 0.3 / N_CATEGORIES
    counts = rng.gamma(2.0, size=(N_ANNOTATORS, N_CATEGORIES, n_states)) * serious * 10
    counts = np.concatenate([counts, counts.sum(axis=1, keepdims=True)], axis=1)
    pseudo = np.tile(serious, (N_ANNOTATORS, 1, 1))
    return ItemStates(
        prior=np.full(n_states, 1.0 / n_states),
        known_truth=right.T + 0.0,
        counts=counts,
        pseudo_counts=np.concatenate([pseudo, pseudo.sum(axis=1, keepdims=True)], axis=1),
        correlation=0.1,
        serious=serious,
        right_labels=right,
        class_of=class_of,
    )


@pytest.fixture(params=["host", "host with warps", "card"])
def device(request):
    return device_of(request.param, threads=4 if request.param == "host with warps" else 1)


@pytest.mark.parametrize("scale", ["classes", "scale"])
def test_passes_equal_those_of_the_reference(scale, device, monkeypatch):
    monkeypatch.setattr("annotruth.engines.gpu.passes.LABELS_AT_ONCE", 50)
    rng = np.random.default_rng(4)
    item, annotator = np.nonzero(
        rng.random((60, N_ANNOTATORS)) < np.linspace(0.1, 0.4, N_ANNOTATORS)
    )
    is_wrong = rng.random(len(item)) < 0.3
    labels = Labels.from_codes(
        item,
        annotator,
        np.where(is_wrong, rng.integers(N_CATEGORIES, size=len(item)), item % N_CATEGORIES),
        items=np.arange(60),
        annotators=np.arange(N_ANNOTATORS),
        scale=Scale.ordinal(range(N_CATEGORIES)),
    )
    assert set(np.bincount(item)) > {1, 2}
    labels = labels.with_gold({e: e % N_CATEGORIES for e in range(4)})
    class_of = None
    if scale == "classes":
        labels = replace(labels, scale=Scale.nominal(list("abcd")))
        class_of = np.arange(8) % N_CATEGORIES
    found = []
    with ExitStack() as stack:
        for engine in (GPUEngine(device), get_engine("reference")):
            session = stack.enter_context(closing(engine.open(labels)))
            passes = PeoplePasses(session, labels, make_states(8, class_of))
            members = np.arange(N_ANNOTATORS) % 3 > 0
            cavities = passes.cavities()
            posterior = people_posterior(passes, cavities, np.full(N_ANNOTATORS, 0.8))
            agreements = (cavities.agreement, passes.agreement(), passes.agreement(members))
            found.append(
                [
                    *(passes.compared, cavities.states, cavities.accuracy, cavities.variance),
                    *(cavities.accuracy_by_others, posterior.levels, posterior.groups),
                    *(posterior.evidence, posterior.item_evidence, posterior.behaviors),
                    *(column for agreement in agreements for column in agreement),
                ]
            )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
