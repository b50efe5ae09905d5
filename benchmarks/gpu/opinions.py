"""Whole fits of the default model where opinions differ, on the card and in memory."""

from __future__ import annotations

from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.memory import MemorySession
from annotruth.models.robust_gpm import model, opinion_model
from annotruth.models.robust_gpm.opinions import OpinionSteps
from benchmarks.gpu.crowds import make_opinions
from benchmarks.gpu.robust_gpm import compare_engines
from benchmarks.gpu.timing import Stages

STAGES: Stages = {
    "labels to the engine": [(GPUSession, "__init__"), (MemorySession, "__init__")],
    "folds": [(model, "assign_folds")],
    "verdict": [(model, "judge_agreement")],
    "truth or opinions": [(model.RobustGPM, "_has_one_truth")],
    "EM": [(opinion_model, "run_em")],
    "leave-one-out": [(OpinionSteps, "leave_one_out")],
    "annotators": [(opinion_model, "final_model"), (opinion_model, "annotator_results")],
    "summaries of items": [(opinion_model, "_summarize_items")],
    "parameters to memory": [(opinion_model.OpinionState, "to_host")],
    "collecting items": [(GPUSession, "collect")],
    "tables of items": [(opinion_model, "item_results")],
}


def time_opinions(n_labels: int = 100_000_000) -> None:
    """Time fits of items on which opinions differ."""
    compare_engines(make_opinions, n_labels, n_labels // 200, STAGES)
