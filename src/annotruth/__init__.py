"""Recover the truth from labels given by unreliable annotators.

>>> import annotruth as at
>>> labels = [("a", "ann", "cat"), ("a", "bob", "cat"), ("b", "ann", "dog"), ("b", "bob", "dog")]
>>> fit = at.fit(labels, model="gpm")  # or a path: at.fit("labels.csv")
>>> fit.item_table()["label"].to_pylist()
['cat', 'dog']
>>> tables = fit.items(), fit.annotators(), fit.labels()

Names are imported on first use, so that ``import annotruth`` is fast.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotruth import agreement, metrics, simulate
    from annotruth.advice.advice import Advice
    from annotruth.advice.changes import changes
    from annotruth.advice.plan import Plan
    from annotruth.advising import next_labels, plan_labels
    from annotruth.api import evaluate, fit, load, update
    from annotruth.comparisons import Comparisons
    from annotruth.comparisons.read import read_comparisons
    from annotruth.engines.spark import SparkEngine
    from annotruth.errors import (
        AnnotruthError,
        AnnotruthWarning,
        ConvergenceWarning,
        InputError,
        OutputError,
    )
    from annotruth.io.options import ReadOptions
    from annotruth.io.readers import read_labels
    from annotruth.labels import Labels, Scale
    from annotruth.models.baselines import MajorityVote, MeanScore, MedianScore
    from annotruth.models.bwa import BWA
    from annotruth.models.confusion.ebcc import EBCC
    from annotruth.models.confusion.ibcc import IBCC
    from annotruth.models.confusion.mace import MACE
    from annotruth.models.confusion.one_coin import OneCoin
    from annotruth.models.dawid_skene.model import DawidSkene
    from annotruth.models.distributed_fit import DistributedFit
    from annotruth.models.glad.model import GLAD
    from annotruth.models.gpm.model import GPM
    from annotruth.models.ordinal_binary import OrdinalBinary
    from annotruth.models.ordinal_mixture.model import OrdinalMixture
    from annotruth.models.pairs.bradley_terry import BradleyTerry
    from annotruth.models.pairs.crowd_bt import CrowdBT
    from annotruth.models.pairs.pair_gpm.model import PairGPM
    from annotruth.models.pairs.result import RankFit
    from annotruth.models.pairs.thurstone import Thurstone
    from annotruth.models.result import Fit
    from annotruth.models.robust_gpm.model import RobustGPM
    from annotruth.models.subject_bias.model import SubjectBias
    from annotruth.questions.result import QuestionFits
    from annotruth.ranking import compare_rankings, next_comparisons, plan_comparisons, rank
    from annotruth.selection.choose import choose
    from annotruth.selection.compare import compare
    from annotruth.selection.comparison import Comparison
    from annotruth.selection.heldout import held_out
    from annotruth.sets.fit import SetFit
    from annotruth.sets.model import SetModel

# Messages are shown only if the program that imports annotruth configures logging.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "BWA",
    "EBCC",
    "GLAD",
    "GPM",
    "IBCC",
    "MACE",
    "Advice",
    "AnnotruthError",
    "AnnotruthWarning",
    "BradleyTerry",
    "Comparison",
    "Comparisons",
    "ConvergenceWarning",
    "CrowdBT",
    "DawidSkene",
    "DistributedFit",
    "Fit",
    "InputError",
    "Labels",
    "MajorityVote",
    "MeanScore",
    "MedianScore",
    "OneCoin",
    "OrdinalBinary",
    "OrdinalMixture",
    "OutputError",
    "PairGPM",
    "Plan",
    "QuestionFits",
    "RankFit",
    "ReadOptions",
    "RobustGPM",
    "Scale",
    "SetFit",
    "SetModel",
    "SparkEngine",
    "SubjectBias",
    "Thurstone",
    "agreement",
    "changes",
    "choose",
    "compare",
    "compare_rankings",
    "evaluate",
    "fit",
    "held_out",
    "load",
    "metrics",
    "next_comparisons",
    "next_labels",
    "plan_comparisons",
    "plan_labels",
    "rank",
    "read_comparisons",
    "read_labels",
    "simulate",
    "update",
]

_MODULE_OF = {
    "BWA": "annotruth.models.bwa",
    "EBCC": "annotruth.models.confusion.ebcc",
    "GLAD": "annotruth.models.glad.model",
    "GPM": "annotruth.models.gpm.model",
    "IBCC": "annotruth.models.confusion.ibcc",
    "MACE": "annotruth.models.confusion.mace",
    "Advice": "annotruth.advice.advice",
    "AnnotruthError": "annotruth.errors",
    "AnnotruthWarning": "annotruth.errors",
    "BradleyTerry": "annotruth.models.pairs.bradley_terry",
    "Comparison": "annotruth.selection.comparison",
    "Comparisons": "annotruth.comparisons",
    "ConvergenceWarning": "annotruth.errors",
    "CrowdBT": "annotruth.models.pairs.crowd_bt",
    "DawidSkene": "annotruth.models.dawid_skene.model",
    "DistributedFit": "annotruth.models.distributed_fit",
    "Fit": "annotruth.models.result",
    "InputError": "annotruth.errors",
    "Labels": "annotruth.labels",
    "MajorityVote": "annotruth.models.baselines",
    "MeanScore": "annotruth.models.baselines",
    "MedianScore": "annotruth.models.baselines",
    "OneCoin": "annotruth.models.confusion.one_coin",
    "OrdinalBinary": "annotruth.models.ordinal_binary",
    "OrdinalMixture": "annotruth.models.ordinal_mixture.model",
    "OutputError": "annotruth.errors",
    "PairGPM": "annotruth.models.pairs.pair_gpm.model",
    "Plan": "annotruth.advice.plan",
    "QuestionFits": "annotruth.questions.result",
    "RankFit": "annotruth.models.pairs.result",
    "ReadOptions": "annotruth.io.options",
    "RobustGPM": "annotruth.models.robust_gpm.model",
    "Scale": "annotruth.labels",
    "SetFit": "annotruth.sets.fit",
    "SetModel": "annotruth.sets.model",
    "SparkEngine": "annotruth.engines.spark",
    "SubjectBias": "annotruth.models.subject_bias.model",
    "Thurstone": "annotruth.models.pairs.thurstone",
    "changes": "annotruth.advice.changes",
    "choose": "annotruth.selection.choose",
    "compare": "annotruth.selection.compare",
    "compare_rankings": "annotruth.ranking",
    "evaluate": "annotruth.api",
    "fit": "annotruth.api",
    "held_out": "annotruth.selection.heldout",
    "load": "annotruth.api",
    "next_comparisons": "annotruth.ranking",
    "next_labels": "annotruth.advising",
    "plan_comparisons": "annotruth.ranking",
    "plan_labels": "annotruth.advising",
    "rank": "annotruth.ranking",
    "read_comparisons": "annotruth.comparisons.read",
    "read_labels": "annotruth.io.readers",
    "update": "annotruth.api",
}
_MODULES = ("agreement", "metrics", "simulate")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("annotruth")
    if name in _MODULES:
        return importlib.import_module(f"annotruth.{name}")
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'annotruth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
