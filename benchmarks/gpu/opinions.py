"""Whole fits of the default model where opinions differ, on the card and in memory."""

from __future__ import annotations

from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.memory import MemorySession
from annotruth.models.em_estimator import EMEstimator
from annotruth.models.robust_gpm import model, opinion_results
from annotruth.models.robust_gpm.opinion_steps import OpinionSteps, SinglePrecisionOpinionSteps
from benchmarks.gpu.crowds import make_opinions
from benchmarks.gpu.robust_gpm import compare_engines
from benchmarks.gpu.timing import Stages

STAGES: Stages = {
    "labels to the engine": [(GPUSession, "__init__"), (MemorySession, "__init__")],
    "folds": [(model, "assign_folds")],
    "verdict": [(model, "judge_agreement")],
    "truth or opinions": [(model.RobustGPM, "_has_one_truth")],
    "EM": [(EMEstimator, "_run_em")],
    "leave-one-out": [
        (SinglePrecisionOpinionSteps, "leave_one_out"),
        (OpinionSteps, "leave_one_out"),
    ],
    "annotators": [(opinion_results, "final_model"), (opinion_results, "annotator_results")],
    "summaries of items": [(opinion_results, "_summarize_items")],
    "parameters to memory": [(opinion_results.OpinionState, "to_host")],
    "collecting items": [(GPUSession, "collect")],
    "tables of items": [(opinion_results, "item_results")],
}


def time_opinions(n_labels: int = 100_000_000) -> None:
    """Time fits of items on which opinions differ."""
    compare_engines(make_opinions, n_labels, n_labels // 200, STAGES)
