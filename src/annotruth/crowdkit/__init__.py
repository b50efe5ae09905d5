"""crowd-kit's classes and terms, so that programs for it change only their imports.

>>> from annotruth.crowdkit import DawidSkene  # was: from crowdkit.aggregation import DawidSkene
>>> DawidSkene(n_iter=100).fit_predict(frame)  # doctest: +SKIP

A frame has the columns task, worker, label. Labels are classes, even if they are numbers, and a
worker's second label on a task is another vote. For pair comparisons a frame has the columns worker,
left, right, label, the id of the item that won. ``crowdkit.metrics`` and
``crowdkit.postprocessing`` are here too. For ordinal scales, scores and intervals use the models of
`annotruth`; ``model_`` is the one under a fitted aggregator, if there is one.
"""

from annotruth.crowdkit.binary_relevance import BinaryRelevance
from annotruth.crowdkit.dawid_skene import DawidSkene, OneCoinDawidSkene
from annotruth.crowdkit.glad import GLAD
from annotruth.crowdkit.gpm import GPM, RobustGPM
from annotruth.crowdkit.kos import KOS
from annotruth.crowdkit.mace import MACE
from annotruth.crowdkit.majority_vote import GoldMajorityVote, MajorityVote, Wawa, ZeroBasedSkill
from annotruth.crowdkit.mmsr import MMSR
from annotruth.crowdkit.pairwise import BradleyTerry, NoisyBradleyTerry

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
