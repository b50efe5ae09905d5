"""Which labels RobustGPM predicts."""

from __future__ import annotations

from contextlib import closing

from annotruth.engines import Engine, Input, Pass
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.labels.partition import of_items
from annotruth.models.distribution import mixed_confusion
from annotruth.models.robust_gpm.results import Kinds


def predicted(known: Kinds, data: Labels, engine: Engine, item: Codes, by: Codes) -> Floats:
    """Predict labels: the annotator's rates, averaged over the kinds the item may be of."""
    prior, gate, rates = known.prior, known.gate, known.own
    labels, place, people = of_items(data, item)
    with closing(engine.open(labels)) as session:
        session.allocate("kinds", per="items", shape=prior.shape)
        posterior = Pass(
            "robust_gpm.posterior",
            state=("kinds",),
            inputs=(Input("prior"), Input("gate"), Input("rates", annotator_axis=0)),
        )
        session.run_pass(posterior, prior=prior, gate=gate, rates=rates[people])
        kinds = session.collect("kinds")
    return mixed_confusion(kinds[place], rates.transpose(2, 0, 1), by)
