"""Votes that the tests of subject bias share."""

import warnings

import numpy as np

import annotruth as at
from annotruth.models.scales.subject_bias import SubjectBias
from annotruth.observations import Labels, Scale


def fitted(data, gold=None, **options):
    """Fit the model without a warning at the maximum number of iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        return SubjectBias(**options).fit(data, gold=gold).result_


def votes(rng, *, n_items=120, n_annotators=24, top=100, ambiguity=0.0, votes_each=None):
    """Simulate the model on a scale of 0 to ``top``, far from its ends."""
    unit = top / 100
    score = rng.uniform(35, 65, n_items) * unit
    bias = rng.normal(0, 4, n_annotators) * unit
    bias -= bias.mean()
    inconsistency = rng.uniform(3, 9, n_annotators) * unit
    ambiguity = np.broadcast_to(ambiguity, n_items) * unit
    votes_each = votes_each or n_annotators
    item = np.repeat(np.arange(n_items), votes_each)
    who = np.concatenate([rng.permutation(n_annotators)[:votes_each] for _ in range(n_items)])
    noise = rng.normal(size=len(item)) * np.hypot(inconsistency[who], ambiguity[item])
    vote = np.clip(np.round(score[item] + bias[who] + noise), 0, top).astype(int)
    labels = Labels.from_codes(
        item,
        who,
        vote,
        items=np.arange(n_items),
        annotators=np.arange(n_annotators),
        scale=Scale.ordinal(list(range(top + 1))),
    )
    return labels, score, bias, inconsistency


def rows(labels):
    """Return the item, the annotator and the value of each vote."""
    cell = labels.cell_of_label()
    value = labels.scale.values[labels.cell_category[cell]]
    return labels.item_of_cell()[cell], labels.annotator, value
