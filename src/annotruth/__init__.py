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
    from annotruth import coefficients, metrics, simulate
    from annotruth.advising import next_labels, plan_labels
    from annotruth.analyses.advice.advice import Advice
    from annotruth.analyses.advice.changes import changes
    from annotruth.analyses.advice.plan import Plan
    from annotruth.analyses.agreement import AgreementTable, agreement
    from annotruth.api import evaluate, fit, load, update
    from annotruth.engines.spark import SparkEngine
    from annotruth.errors import (
        AnnotruthError,
        AnnotruthWarning,
        ConvergenceWarning,
        InputError,
        OutputError,
    )
    from annotruth.io.opened import OpenedFile, open_labels
    from annotruth.io.readers import read_comparisons, read_labels
    from annotruth.models.baselines import MajorityVote, MeanScore, MedianScore
    from annotruth.models.confusion.bcc import EBCC, IBCC
    from annotruth.models.confusion.bwa import BWA
    from annotruth.models.confusion.dawid_skene import DawidSkene, OneCoin
    from annotruth.models.confusion.glad import GLAD
    from annotruth.models.confusion.mace import MACE
    from annotruth.models.gpm import GPM
    from annotruth.models.pairs.bradley_terry import BradleyTerry
    from annotruth.models.pairs.crowd_bt import CrowdBT
    from annotruth.models.pairs.pair_gpm.model import PairGPM
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
    from annotruth.selection.compare import Comparison, compare
    from annotruth.selection.heldout import held_out
    from annotruth.sets.model import SetModel

bind(
    {
        "load": "annotruth.models.storage:load",
        "load_fit": "annotruth.models.storage:load_fit",
        "labels.first_lines": "annotruth.report.verdict:first_lines_of_labels",
        "labels.item": "annotruth.report.explain:explain_item",
        "labels.kind": "annotruth.models.fits.tables:LABELS",
        "labels.annotator": "annotruth.report.explain:explain_annotator",
        "labels.evaluate": "annotruth.selection.evaluate:evaluate_labels",
        "labels.plot": "annotruth.report.charts.fit_charts:FitCharts",
        "labels.read": "annotruth.io.readers:labels_of",
        "labels.report": "annotruth.report.page:write_report",
        "labels.save": "annotruth.models.storage:save",
        "labels.standing_table": "annotruth.analyses.advice.standing:standing_table",
        "labels.write": "annotruth.report.workbook.write:write_fit",
        "labels.update": "annotruth.updating:update_fit",
        "labels.verdict_table": "annotruth.analyses.advice.standing:keep_table",
        "distributed.kind": "annotruth.models.fits.tables:DISTRIBUTED",
        "distributed.evaluate": "annotruth.models.storage.folder:refuse_distributed",
        "distributed.update": "annotruth.models.storage.folder:refuse_distributed",
        "comparisons.first_lines": "annotruth.report.rank_verdict:first_lines_of_ranking",
        "comparisons.item": "annotruth.report.explain:explain_item",
        "comparisons.kind": "annotruth.models.pairs.result:COMPARISONS",
        "comparisons.annotator": "annotruth.report.explain:explain_annotator",
        "comparisons.evaluate": "annotruth.selection.evaluate:evaluate_ranking",
        "comparisons.plot": "annotruth.report.charts.rank_charts:RankCharts",
        "comparisons.read": "annotruth.io.readers:comparisons_of",
        "comparisons.report": "annotruth.report.page:write_report",
        "comparisons.save": "annotruth.models.storage:save",
        "comparisons.update": "annotruth.ranking:update_ranking",
        "comparisons.write": "annotruth.report.workbook.write:write_fit",
        "comparisons.verdict_table": "annotruth.analyses.advice.annotators:verdict_table",
        "sets.item": "annotruth.report.explain:explain_item",
        "sets.kind": "annotruth.sets.fit:SETS",
        "sets.annotator": "annotruth.report.explain:explain_annotator",
        "sets.evaluate": "annotruth.sets.fit:evaluate_sets",
        "sets.model": "annotruth.sets.model:SetModel",
        "sets.report": "annotruth.report.page:write_report",
        "sets.save": "annotruth.models.storage:save",
        "sets.update": "annotruth.models.storage.folder:refuse_sets",
        "sets.write": "annotruth.report.workbook.write:write_fit",
        "sets.verdict_table": "annotruth.analyses.advice.annotators:verdict_table",
        "distributed.write": "annotruth.report.workbook.write:write_fit",
        "questions.load": "annotruth.questions.result:load_questions",
        "questions.report": "annotruth.report.page:write_report",
        "further_kinds": "annotruth.analyses:further_kinds",
        "Comparison.write": "annotruth.report.workbook.write:write_comparison",
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
    "AgreementTable",
    "AnnotruthError",
    "AnnotruthWarning",
    "BradleyTerry",
    "Comparison",
    "Comparisons",
    "ConvergenceWarning",
    "CrowdBT",
    "DawidSkene",
    "Fit",
    "InputError",
    "Labels",
    "MajorityVote",
    "MeanScore",
    "MedianScore",
    "OneCoin",
    "OpenedFile",
    "OrdinalBinary",
    "OrdinalMixture",
    "OutputError",
    "PairGPM",
    "Plan",
    "QuestionFits",
    "ReadOptions",
    "RobustGPM",
    "Scale",
    "SetModel",
    "SparkEngine",
    "SubjectBias",
    "Thurstone",
    "agreement",
    "changes",
    "choose",
    "coefficients",
    "compare",
    "compare_rankings",
    "evaluate",
    "fit",
    "held_out",
    "load",
    "metrics",
    "next_comparisons",
    "next_labels",
    "open_labels",
    "plan_comparisons",
    "plan_labels",
    "rank",
    "read_comparisons",
    "read_labels",
    "simulate",
    "update",
]

_NAMES = {  # per module
    "annotruth.advising": "next_labels plan_labels",
    "annotruth.analyses.advice.advice": "Advice",
    "annotruth.analyses.advice.changes": "changes",
    "annotruth.analyses.advice.plan": "Plan",
    "annotruth.analyses.agreement": "AgreementTable agreement",
    "annotruth.api": "evaluate fit load update",
    "annotruth.engines.spark": "SparkEngine",
    "annotruth.errors": "AnnotruthError AnnotruthWarning ConvergenceWarning InputError OutputError",
    "annotruth.io.opened": "OpenedFile open_labels",
    "annotruth.io.readers": "read_comparisons read_labels",
    "annotruth.models.baselines": "MajorityVote MeanScore MedianScore",
    "annotruth.models.confusion.bcc": "EBCC IBCC",
    "annotruth.models.confusion.bwa": "BWA",
    "annotruth.models.confusion.dawid_skene": "DawidSkene OneCoin",
    "annotruth.models.confusion.glad": "GLAD",
    "annotruth.models.confusion.mace": "MACE",
    "annotruth.models.gpm": "GPM",
    "annotruth.models.pairs.bradley_terry": "BradleyTerry",
    "annotruth.models.pairs.crowd_bt": "CrowdBT",
    "annotruth.models.pairs.pair_gpm.model": "PairGPM",
    "annotruth.models.pairs.thurstone": "Thurstone",
    "annotruth.models.result": "Fit",
    "annotruth.models.robust_gpm.model": "RobustGPM",
    "annotruth.models.scales.ordinal_binary": "OrdinalBinary",
    "annotruth.models.scales.ordinal_mixture": "OrdinalMixture",
    "annotruth.models.scales.subject_bias": "SubjectBias",
    "annotruth.observations": "Comparisons Labels Scale",
    "annotruth.observations.options": "ReadOptions",
    "annotruth.questions.result": "QuestionFits",
    "annotruth.ranking": "compare_rankings next_comparisons plan_comparisons rank",
    "annotruth.selection.choose": "choose",
    "annotruth.selection.compare": "Comparison compare",
    "annotruth.selection.heldout": "held_out",
    "annotruth.sets.model": "SetModel",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = ("coefficients", "metrics", "simulate")


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
