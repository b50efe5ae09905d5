"""Recover the truth from labels that many unreliable people gave.

>>> import annotruth as at
>>> fit = at.fit("labels.csv", model="gpm")  # doctest: +SKIP
>>> fit.items(), fit.annotators(), fit.labels()  # doctest: +SKIP

Names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotruth import agreement, metrics, simulate
    from annotruth.active import Advice, Plan
    from annotruth.advising import next_labels, plan_labels
    from annotruth.comparing import Comparison, compare
    from annotruth.engines.spark import SparkEngine
    from annotruth.errors import (
        AnnotruthError,
        AnnotruthWarning,
        ConvergenceWarning,
        InputError,
        OutputError,
    )
    from annotruth.fitting import evaluate, fit, update
    from annotruth.io.readers import read_labels
    from annotruth.labels import Labels, Scale
    from annotruth.models.baselines import MajorityVote, MeanScore, MedianScore
    from annotruth.models.changes import changes
    from annotruth.models.choosing import choose
    from annotruth.models.dawid_skene import DawidSkene
    from annotruth.models.glad import GLAD
    from annotruth.models.gpm import GPM
    from annotruth.models.heldout import held_out
    from annotruth.models.ordinal_binary import OrdinalBinary
    from annotruth.models.ordinal_mixture import OrdinalMixture
    from annotruth.models.result import Fit
    from annotruth.models.robust_gpm import RobustGPM
    from annotruth.models.spark_fit import SparkFit
    from annotruth.models.storage import load
    from annotruth.models.subject_bias import SubjectBias

__all__ = [
    "GLAD",
    "GPM",
    "Advice",
    "AnnotruthError",
    "AnnotruthWarning",
    "Comparison",
    "ConvergenceWarning",
    "DawidSkene",
    "Fit",
    "InputError",
    "Labels",
    "MajorityVote",
    "MeanScore",
    "MedianScore",
    "OrdinalBinary",
    "OrdinalMixture",
    "OutputError",
    "Plan",
    "RobustGPM",
    "Scale",
    "SparkEngine",
    "SparkFit",
    "SubjectBias",
    "agreement",
    "changes",
    "choose",
    "compare",
    "evaluate",
    "fit",
    "held_out",
    "load",
    "metrics",
    "next_labels",
    "plan_labels",
    "read_labels",
    "simulate",
    "update",
]

_HOMES = {
    "GLAD": "annotruth.models.glad",
    "GPM": "annotruth.models.gpm",
    "Advice": "annotruth.active",
    "AnnotruthError": "annotruth.errors",
    "AnnotruthWarning": "annotruth.errors",
    "Comparison": "annotruth.comparing",
    "ConvergenceWarning": "annotruth.errors",
    "DawidSkene": "annotruth.models.dawid_skene",
    "Fit": "annotruth.models.result",
    "InputError": "annotruth.errors",
    "Labels": "annotruth.labels",
    "MajorityVote": "annotruth.models.baselines",
    "MeanScore": "annotruth.models.baselines",
    "MedianScore": "annotruth.models.baselines",
    "OrdinalBinary": "annotruth.models.ordinal_binary",
    "OrdinalMixture": "annotruth.models.ordinal_mixture",
    "OutputError": "annotruth.errors",
    "Plan": "annotruth.active",
    "RobustGPM": "annotruth.models.robust_gpm",
    "Scale": "annotruth.labels",
    "SparkEngine": "annotruth.engines.spark",
    "SparkFit": "annotruth.models.spark_fit",
    "SubjectBias": "annotruth.models.subject_bias",
    "changes": "annotruth.models.changes",
    "choose": "annotruth.models.choosing",
    "compare": "annotruth.comparing",
    "evaluate": "annotruth.fitting",
    "fit": "annotruth.fitting",
    "held_out": "annotruth.models.heldout",
    "load": "annotruth.models.storage",
    "next_labels": "annotruth.advising",
    "plan_labels": "annotruth.advising",
    "read_labels": "annotruth.io.readers",
    "update": "annotruth.fitting",
}
_ROOMS = ("agreement", "metrics", "simulate")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("annotruth")
    if name in _ROOMS:
        return importlib.import_module(f"annotruth.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'annotruth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
