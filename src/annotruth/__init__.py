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

from annotruth.bindings import bind

if TYPE_CHECKING:
    from annotruth import agreement, metrics, simulate
    from annotruth.advising import next_labels, plan_labels
    from annotruth.analyses.advice.advice import Advice
    from annotruth.analyses.advice.changes import changes
    from annotruth.analyses.advice.plan import Plan
    from annotruth.api import evaluate, fit, load, update
    from annotruth.engines.spark import SparkEngine
    from annotruth.errors import (
        AnnotruthError,
        AnnotruthWarning,
        ConvergenceWarning,
        InputError,
        OutputError,
    )
    from annotruth.io.comparisons import read_comparisons
    from annotruth.io.readers import read_labels
    from annotruth.models.baselines import MajorityVote, MeanScore, MedianScore
    from annotruth.models.confusion.bcc import EBCC, IBCC
    from annotruth.models.confusion.bwa import BWA
    from annotruth.models.confusion.dawid_skene import DawidSkene
    from annotruth.models.confusion.glad import GLAD
    from annotruth.models.confusion.mace import MACE
    from annotruth.models.confusion.one_coin import OneCoin
    from annotruth.models.distributed_fit import DistributedFit
    from annotruth.models.gpm import GPM
    from annotruth.models.pairs.bradley_terry import BradleyTerry
    from annotruth.models.pairs.crowd_bt import CrowdBT
    from annotruth.models.pairs.pair_gpm.model import PairGPM
    from annotruth.models.pairs.result import RankFit
    from annotruth.models.pairs.thurstone import Thurstone
    from annotruth.models.result import Fit
    from annotruth.models.robust_gpm.model import RobustGPM
    from annotruth.models.scales.ordinal_binary import OrdinalBinary
    from annotruth.models.scales.ordinal_mixture import OrdinalMixture
    from annotruth.models.scales.subject_bias import SubjectBias
    from annotruth.observations import Comparisons, Labels, Scale
    from annotruth.observations.options import ReadOptions
    from annotruth.questions.result import QuestionFits
    from annotruth.ranking import compare_rankings, next_comparisons, plan_comparisons, rank
    from annotruth.selection.choose import choose
    from annotruth.selection.compare import compare
    from annotruth.selection.comparison import Comparison
    from annotruth.selection.heldout import held_out
    from annotruth.sets.fit import SetFit
    from annotruth.sets.model import SetModel

bind(
    {
        "load": "annotruth.models.storage:load",
        "load_fit": "annotruth.models.storage:load_fit",
        "save": "annotruth.models.storage:save",
        "Fit.notebook": "annotruth.report.notebook:fit_block",
        "Fit.plot": "annotruth.report.charts.fit_charts:FitCharts",
        "Fit.report": "annotruth.report.page:write_report",
        "Fit.evaluate": "annotruth.selection.evaluate:evaluate_labels",
        "Fit.update": "annotruth.updating:update_fit",
        "Fit.standing_table": "annotruth.analyses.advice.advice:standing_table",
        "Fit.verdict_table": "annotruth.analyses.advice.advice:keep_table",
        "DistributedFit.evaluate": "annotruth.models.distributed_fit:refuse_distributed",
        "DistributedFit.update": "annotruth.models.distributed_fit:refuse_distributed",
        "RankFit.evaluate": "annotruth.selection.evaluate:evaluate_ranking",
        "RankFit.update": "annotruth.ranking:update_ranking",
        "RankFit.notebook": "annotruth.report.notebook:rank_block",
        "RankFit.plot": "annotruth.report.charts.rank_charts:RankCharts",
        "RankFit.report": "annotruth.report.page:write_report",
        "RankFit.verdict_table": "annotruth.analyses.advice.annotators:verdict_table",
        "SetFit.evaluate": "annotruth.sets.evaluate:evaluate_sets",
        "SetFit.load": "annotruth.sets.storage:make_set_fit",
        "SetFit.model": "annotruth.sets.model:SetModel",
        "SetFit.report": "annotruth.report.page:write_report",
        "SetFit.stored": "annotruth.sets.storage:stored_fit",
        "SetFit.verdict_table": "annotruth.analyses.advice.annotators:verdict_table",
        "QuestionFits.load": "annotruth.questions.storage:load_questions",
        "QuestionFits.report": "annotruth.report.page:write_report",
        "QuestionFits.save": "annotruth.questions.storage:save_questions",
        "Comparisons.of": "annotruth.io.comparisons:comparisons_of",
        "Advice.notebook": "annotruth.report.notebook:advice_block",
        "Changes.notebook": "annotruth.report.notebook:changes_block",
        "Plan.notebook": "annotruth.report.notebook:plan_block",
        "Comparison.notebook": "annotruth.report.notebook:comparison_block",
        "Comparison.report": "annotruth.report.comparison:write_comparison",
    }
)

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
    "BWA": "annotruth.models.confusion.bwa",
    "EBCC": "annotruth.models.confusion.bcc",
    "GLAD": "annotruth.models.confusion.glad",
    "GPM": "annotruth.models.gpm",
    "IBCC": "annotruth.models.confusion.bcc",
    "MACE": "annotruth.models.confusion.mace",
    "Advice": "annotruth.analyses.advice.advice",
    "AnnotruthError": "annotruth.errors",
    "AnnotruthWarning": "annotruth.errors",
    "BradleyTerry": "annotruth.models.pairs.bradley_terry",
    "Comparison": "annotruth.selection.comparison",
    "Comparisons": "annotruth.observations",
    "ConvergenceWarning": "annotruth.errors",
    "CrowdBT": "annotruth.models.pairs.crowd_bt",
    "DawidSkene": "annotruth.models.confusion.dawid_skene",
    "DistributedFit": "annotruth.models.distributed_fit",
    "Fit": "annotruth.models.result",
    "InputError": "annotruth.errors",
    "Labels": "annotruth.observations",
    "MajorityVote": "annotruth.models.baselines",
    "MeanScore": "annotruth.models.baselines",
    "MedianScore": "annotruth.models.baselines",
    "OneCoin": "annotruth.models.confusion.one_coin",
    "OrdinalBinary": "annotruth.models.scales.ordinal_binary",
    "OrdinalMixture": "annotruth.models.scales.ordinal_mixture",
    "OutputError": "annotruth.errors",
    "PairGPM": "annotruth.models.pairs.pair_gpm.model",
    "Plan": "annotruth.analyses.advice.plan",
    "QuestionFits": "annotruth.questions.result",
    "RankFit": "annotruth.models.pairs.result",
    "ReadOptions": "annotruth.observations.options",
    "RobustGPM": "annotruth.models.robust_gpm.model",
    "Scale": "annotruth.observations",
    "SetFit": "annotruth.sets.fit",
    "SetModel": "annotruth.sets.model",
    "SparkEngine": "annotruth.engines.spark",
    "SubjectBias": "annotruth.models.scales.subject_bias",
    "Thurstone": "annotruth.models.pairs.thurstone",
    "changes": "annotruth.analyses.advice.changes",
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
    "read_comparisons": "annotruth.io.comparisons",
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
