"""The rules by which somebody is flagged, on figures made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from annotruth.models.people import verdicts
from annotruth.models.people.passes import Agreement, Cavities
from annotruth.models.people.posterior import PeoplePosterior
from annotruth.models.people.verdicts import Accuracy, Camp, judge

N = 20
"""How many people; the first is suspected."""


def column(first, others):
    return np.array([first, *[others] * (N - 1)])


def agreement(z=0.0, n_labels=50):
    zero = np.zeros(N)
    return Agreement(column(n_labels, 50.0), column(z, 8.0), zero, zero + 1, zero, column(0.0, 0.5))


def is_flagged(
    *, p=0.99, evidence=3.0, item_evidence=1.0, n_labels=50, z=0.0, scale="classes", outside=None
):
    """Return whether the first is flagged; ``outside``: agreement with those outside of a camp."""
    with_others = agreement(z, n_labels)
    passes = SimpleNamespace(
        states=SimpleNamespace(one_truth=scale != "opinions"),
        labels=SimpleNamespace(
            scale=SimpleNamespace(is_ordinal=scale != "classes"), n_categories=2
        ),
        compared=np.outer(with_others.n_labels, [0.5, 0.5]),
        agreement=lambda: with_others,
    )
    careless = column(p, 0.001)
    groups = np.stack([careless, np.zeros(N), 1 - careless, np.zeros(N)], axis=1)
    posterior = PeoplePosterior(
        np.zeros((N, 8)), groups, column(evidence, -3.0), column(item_evidence, -3.0), groups, None
    )
    cavities = Cavities(np.zeros((N, 2)), with_others, *(np.full(N, 0.8),) * 3)
    accuracy = Accuracy(*(np.full(N, 0.8),) * 4)
    with pytest.MonkeyPatch.context() as patch:
        if outside is not None:
            camp = Camp(column(False, False), agreement(), agreement(outside), 0.3)
            patch.setattr(verdicts, "find_camp", lambda *given: camp)
        flagged = judge(passes, cavities, posterior, accuracy).flagged
    assert not flagged[1:].any()
    return bool(flagged[0])


OPINIONS = {"scale": "opinions"}


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        ({"p": 0.96}, {"p": 0.94}),  # the expected share of the flagged who are fine
        ({"evidence": 1.0}, {"evidence": 0.9}),
        ({"n_labels": 10}, {"n_labels": 9}),
        ({"z": 2.0}, {"z": 2.1}),
        ({"item_evidence": -1.0, "evidence": 2.0}, {"item_evidence": -1.0, "evidence": 1.9}),
        ({"item_evidence": 0.4, "n_labels": 30}, {"item_evidence": 0.4, "n_labels": 29}),
        ({"item_evidence": 0.5, "n_labels": 29}, {"item_evidence": 0.4, "n_labels": 29}),
        ({"scale": "ordered"}, {"scale": "ordered", "item_evidence": 0.4}),
        (OPINIONS, {**OPINIONS, "z": 1.7}),
        ({**OPINIONS, "p": 0.96, "evidence": 2.0}, {**OPINIONS, "p": 0.98, "evidence": 1.9}),
        ({**OPINIONS, "p": 0.995, "evidence": 1.0}, {**OPINIONS, "p": 0.995, "evidence": 0.9}),
        ({"outside": 2.0}, {"outside": 2.1}),
    ],
)
def test_flags_need_each_of_the_rules(within, beyond):
    assert is_flagged(**within)
    assert not is_flagged(**beyond)
