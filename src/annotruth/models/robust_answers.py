"""Which labels RobustGPM predicts."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from annotruth.arrays import Codes, Floats
from annotruth.engines import Engine, Sweep
from annotruth.labels import Labels
from annotruth.labels.shards import of_items
from annotruth.models.distribution import mixed_rates


class Judged(NamedTuple):
    """What labels are predicted with: the items' kinds, and what each annotator says of each."""

    prior: Floats  # one number a kind of item
    gate: Floats  # what known truths say of the kinds, categories x kinds
    rates: Floats  # annotators x categories x kinds


def predicted(judged: Judged, data: Labels, engine: Engine, item: Codes, by: Codes) -> Floats:
    """Predict labels: the annotator's rates, averaged over the kinds the item may be of."""
    prior, gate, rates = judged
    labels, place, people = of_items(data, item)
    with closing(engine.open(labels)) as session:
        session.allocate("kinds", per="items", shape=prior.shape)
        session.sweep(Sweep("robust_gpm.judge", ("kinds",)), prior, gate, rates[people])
        kinds = session.gather("kinds")
    return mixed_rates(kinds[place], rates.transpose(2, 0, 1), by)
