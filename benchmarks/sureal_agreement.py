"""Differences between subject bias and sureal's maximum likelihood."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sureal.dataset_reader import RawDatasetReader
from sureal.subjective_model import (
    MaximumLikelihoodEstimationModel,
    MaximumLikelihoodEstimationModelContentOblivious,
)

import annotruth as at

DATASETS = ("vqeg-hd", "ftv")
TOLERANCE = 1e-12


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sureal_agreement")
    parser.add_argument("--data-dir", type=Path, required=True, help="folder with vqeg-hd/, ftv/")
    options = parser.parse_args()

    warnings.simplefilter("ignore")
    print("Largest differences; deviation is sqrt(v^2 + a^2), the noise of an annotator's votes.\n")
    print(
        "| labels | sureal | score | bias | deviation | log-likelihood per label, theirs | ours |"
    )
    print("|---|---|--:|--:|--:|--:|--:|")
    for name in DATASETS:
        votes = pd.read_csv(options.data_dir / name / "labels.csv").pivot(
            index="item", columns="annotator", values="label"
        )
        compare(name, votes)
    return 0


def compare(name: str, votes: pd.DataFrame) -> None:
    """Print the differences to each of sureal's models, with one content or one per item."""
    labels = votes.melt(ignore_index=False, value_name="label").dropna().reset_index()
    shared = at.fit(labels, at.SubjectBias(ambiguity="shared", tol=TOLERANCE))
    variants = {
        "without contents": (MaximumLikelihoodEstimationModelContentOblivious, False),
        "one content": (MaximumLikelihoodEstimationModel, False),
        "one content per item": (MaximumLikelihoodEstimationModel, True),
    }
    for variant, (model, content_per_item) in variants.items():
        fit = at.fit(labels, "subject-bias") if content_per_item else shared
        assert fit.log_likelihood is not None
        ours = f"{fit.log_likelihood / fit.data.n_labels:.6f}"
        try:
            theirs = sureal(model, votes, content_per_item=content_per_item)
        except ValueError as error:
            print(f"| {name} | {variant} | {type(error).__name__}: {error} | | | | {ours} |")
            continue
        items = fit.items().set_index("item").expectation.loc[votes.index]
        annotators = fit.annotators().set_index("annotator").loc[votes.columns]
        ambiguity = np.max(theirs.get("content_ambiguity", [0.0]))
        deviation = np.hypot(theirs["observer_inconsistency"], ambiguity)
        differences = (
            np.abs(items - theirs["quality_scores"]).max(),
            np.abs(annotators.bias - theirs["observer_bias"]).max(),
            np.abs(annotators.inconsistency - deviation).max(),
        )
        figures = " | ".join(f"{value:.1e}" for value in differences)
        print(f"| {name} | {variant} | {figures} | {theirs['loglikelihood']:.6f} | {ours} |")


def sureal(model: type, votes: pd.DataFrame, *, content_per_item: bool) -> dict[str, Any]:
    """Return the estimates of one of sureal's models."""
    contents = range(len(votes)) if content_per_item else [0] * len(votes)
    dataset = types.SimpleNamespace(
        dataset_name="votes",
        ref_videos=[
            {"content_id": c, "content_name": str(c), "path": f"r{c}"}
            for c in sorted(set(contents))
        ],
        dis_videos=[
            {"content_id": c, "asset_id": i, "os": list(row), "path": f"d{i}"}
            for i, (c, row) in enumerate(zip(contents, votes.to_numpy(float), strict=True))
        ],
    )
    with contextlib.redirect_stdout(io.StringIO()):
        estimates: dict[str, Any] = model(RawDatasetReader(dataset)).run_modeling(
            delta_thr=TOLERANCE
        )
    return estimates


if __name__ == "__main__":
    sys.exit(main())
