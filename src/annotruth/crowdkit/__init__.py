"""crowd-kit's classes and terms, so that programs for it change only their imports.

>>> import pandas as pd
>>> from annotruth.crowdkit import DawidSkene  # was: from crowdkit.aggregation import DawidSkene
>>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
>>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
>>> DawidSkene(n_iter=100).fit_predict(frame).tolist()
['a', 'b', 'a', 'b']

A frame has the columns task, worker, label. Labels are classes, even if they are numbers, and a
worker's second label on a task is another vote. For pair comparisons a frame has the columns worker,
left, right, label, the id of the item that won. ``crowdkit.metrics`` and
``crowdkit.postprocessing`` are here too. For ordinal scales, scores and intervals use the models of
`annotruth`; ``model_`` is the one under a fitted aggregator, if there is one.
"""

from annotruth.crowdkit.dawid_skene import DawidSkene, OneCoinDawidSkene
from annotruth.crowdkit.mmsr import MMSR
from annotruth.crowdkit.models import GLAD, GPM, MACE, RobustGPM
from annotruth.crowdkit.pairwise import BradleyTerry, NoisyBradleyTerry
from annotruth.crowdkit.votes import (
    KOS,
    BinaryRelevance,
    GoldMajorityVote,
    MajorityVote,
    Wawa,
    ZeroBasedSkill,
)

__all__ = [
    "GLAD",
    "GPM",
    "KOS",
    "MACE",
    "MMSR",
    "BinaryRelevance",
    "BradleyTerry",
    "DawidSkene",
    "GoldMajorityVote",
    "MajorityVote",
    "NoisyBradleyTerry",
    "OneCoinDawidSkene",
    "RobustGPM",
    "Wawa",
    "ZeroBasedSkill",
]
