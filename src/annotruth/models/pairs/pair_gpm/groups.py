"""Taste groups: where their scores start."""

from __future__ import annotations

from annotruth.models.pairs.pair_gpm.steps import PairGPMParameters, PairGPMSteps


def split_into_groups(
    steps: PairGPMSteps, parameters: PairGPMParameters, seed: int
) -> PairGPMParameters:
    """Return parameters in which groups of annotators have scores of their own."""
    raise NotImplementedError
