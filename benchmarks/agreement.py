"""How often intervals of agreement contain the agreement of a large crowd.

python -m benchmarks.agreement --runs 400
"""

from __future__ import annotations

import argparse

import numpy as np

from annotruth.analyses.agreement import agreement_of
from annotruth.observations import Labels, Scale

# Items, people, and labels per item; None if everybody labels every item.
SIZES = ((40, 15, None), (40, 25, None), (100, 40, None), (100, 20, 5), (200, 40, 3), (30, 5, None))
_LARGE = (3000, 3000, 30)

COEFFICIENTS = {
    "scale": (
        ("percent agreement", "identity"),
        ("Krippendorff's alpha", "ordinal"),
        ("Krippendorff's alpha", "interval"),
        ("Fleiss' kappa", "quadratic"),
        ("Gwet's AC2", "linear"),
        ("ICC(1)", "interval"),
    ),
    "classes": (
        ("percent agreement", "identity"),
        ("Krippendorff's alpha", "nominal"),
        ("Fleiss' kappa", "identity"),
        ("Gwet's AC1", "identity"),
    ),
}


def draw(kind: str, rng: np.random.Generator, n: int, k: int, per_item: int | None) -> Labels:
    """Return labels of n items by k people who differ in bias and noise, or in accuracy."""
    if kind == "scale":
        noise = rng.normal(0, 1, (n, k)) * np.exp(rng.normal(-0.3, 0.4, (1, k)))
        score = rng.normal(3, 1, (n, 1)) + rng.normal(0, 0.4, (1, k)) + noise
        label, scale = np.clip(np.rint(score), 1, 5).astype(int) - 1, Scale.ordinal([1, 2, 3, 4, 5])
    else:
        truth, accuracy = rng.integers(3, size=(n, 1)), rng.beta(6, 2, (1, k))
        is_hard = rng.random((n, 1)) < 0.3
        is_right = rng.random((n, k)) < np.where(is_hard, 0.5, 1.0) * accuracy
        label = np.where(is_right, truth, rng.integers(3, size=(n, k)))
        scale = Scale.nominal(["a", "b", "c"])
    order = rng.random((n, k)).argsort(axis=1).argsort(axis=1)
    item, person = np.nonzero(order < (per_item or k))
    return Labels.from_codes(
        item,
        person,
        label[item, person],
        items=[f"item {e}" for e in range(n)],
        annotators=[f"person {s}" for s in range(k)],
        scale=scale,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement")
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    for kind, names in COEFFICIENTS.items():
        large = agreement_of(draw(kind, np.random.default_rng(1), *_LARGE))
        true = {name: large.value(*name)[0] for name in names}
        for size in SIZES:
            hits, widths = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
            for run in range(runs):
                found = agreement_of(draw(kind, np.random.default_rng([run, *size[:2]]), *size))
                for name in names:
                    _, low, high = found.value(*name)
                    hits[name] += low <= true[name] <= high
                    widths[name] += high - low
            for name in names:
                print(
                    f"{kind}, {size[0]} items, {size[1]} people, {size[2] or 'all'} per item: "
                    f"{', '.join(name)}: {hits[name] / runs:.1%} of intervals contain "
                    f"{true[name]:.3f}, mean width {widths[name] / runs:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
