"""More labels for a fit of many: what an update takes beside a full fit, and how far it is off."""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from annotruth.arrays import Floats
from annotruth.errors import ConvergenceWarning
from annotruth.labels import Labels
from annotruth.models.base import Estimator
from annotruth.models.registry import UPDATABLE, model_named
from annotruth.models.result import Fit
from annotruth.models.updating import Updates
from annotruth.simulate import crowd as crowd_of
from benchmarks import machine
from benchmarks.crowds import simulated

TARGET = 0.02
WITHIN = 1e-3
NEW = 1_000


class Off(NamedTuple):
    """How far annotators and items are from a full fit."""

    reliability: Floats
    distribution: Floats

    @property
    def largest(self) -> str:
        return ", ".join(f"{apart.max():.1e}" for apart in self)

    def __str__(self) -> str:
        return ", ".join(
            f"at most {apart.max():.1e} (99%: {np.quantile(apart, 0.99):.1e}, "
            f"{np.count_nonzero(apart > WITHIN)} of {len(apart)} beyond)"
            for apart in self
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.updates", description=__doc__)
    parser.add_argument("--labels", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument("--new", type=int, default=NEW, help=f"default: {NEW:,}")
    parser.add_argument("--model", default="gpm", choices=UPDATABLE)
    parser.add_argument(
        "--tight", type=float, help="tolerance of a second full fit to compare with"
    )
    parser.add_argument("--accelerated", action="store_true", help="full fits leap ahead")
    parser.add_argument(
        "--hard", action="store_true", help="10 labels an item, where GPM has many maxima"
    )
    parser.add_argument("--deals", nargs="*", choices=DEALS, default=list(DEALS))
    options = parser.parse_args()

    against: dict[str, dict[str, Any]] = {"default": {}}
    if options.tight is not None:
        against[f"tol {options.tight:g}"] = {"tol": options.tight, "max_iter": 100_000}
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(machine.describe(("annotruth", "numpy", "numba")), flush=True)
    make = simulated if options.hard else told_apart
    crowd = make(options.labels + 2 * options.new)
    model = model_named(options.model)
    model().fit(simulated(20_000)).partial_fit([(0, 0, 1)], duplicates="keep")  # to compile
    usual = partial(model, acceleration=True) if options.accelerated else model
    for name in options.deals:
        base, *batches = DEALS[name](crowd, options.new)
        estimator = usual()
        full_time = seconds(lambda estimator=estimator, base=base: estimator.fit(base))
        full = estimator.result_
        print(
            f"\n{name}: {base.describe()}\n"
            f"full fit {full_time:.2f} s, {full.n_iter} iterations ({full.stop_reason})",
            flush=True,
        )
        prepared = seconds(lambda estimator=estimator, full=full: load(estimator, full))
        print(f"sums of the loaded fit {prepared:.2f} s")
        for new in batches:
            time = seconds(lambda estimator=estimator, new=new: estimator.partial_fit(new))
            update = estimator.update_
            share = time / full_time
            verdict = "met" if share <= TARGET else "NOT met"
            print(
                f"update with {update.n_labels:,} labels, {update.n_items} new items, "
                f"{update.n_annotators} new annotators: {time:.3f} s = {share:.2%} of the full fit "
                f"(target {TARGET:.0%}: {verdict}); passed {update.trace.n_iter} times over "
                f"{update.n_passed:,} labels",
                flush=True,
            )
        table = update.item_table
        merged = seconds(lambda estimator=estimator: estimator.result_)
        found = estimator.result_
        found = estimator.result_
        warm = usual().resume(full)
        for new in batches:
            warm.partial_fit(new)
        touch = seconds(lambda warm=warm: warm._make_whole(touch=True))
        warm_fit = warm.result_
        print(f"made whole in {merged:.2f} s; {len(table):,} items fitted anew by the last update")
        fits = {told: usual(**how).fit(found.data).result_ for told, how in against.items()}
        print(
            f"touched up in {touch:.2f} s, {warm_fit.n_iter} iterations: log-likelihood per label "
            f"{per_label(warm_fit):.9f}, update {per_label(found):.9f}, full fits "
            + ", ".join(f"{per_label(fit):.9f}" for fit in fits.values())
        )
        for told, again in {**fits, "touched up": warm_fit}.items():
            asked, others = off(found, again, batches)
            verdict = "met" if max(map(np.max, asked)) <= WITHIN else "NOT met"
            print(
                f"off a full fit of all ({told}, "
                f"{again.n_iter} iterations), reliabilities and distributions: "
                f"touched {asked} (target {WITHIN:g}: {verdict}), all {others.largest}",
                flush=True,
            )
    return 0


def seconds(work: object) -> float:
    began = perf_counter()
    work()  # type: ignore[operator]
    return perf_counter() - began


def told_apart(n_labels: int) -> Labels:
    """A crowd in which the serious and the others can be told apart."""
    return crowd_of(
        n_items=n_labels // 25,
        n_annotators=n_labels // 200,
        n_categories=3,
        labels_per_item=25,
        spammer_share=0.2,
        seed=0,
    ).labels


def load(estimator: Estimator, fit: Fit) -> None:
    """Do what the first update would do first."""
    estimator._updates = Updates(estimator, fit)
    _ = fit.data.by_annotator


def scattered(crowd: Labels, n: int) -> list[Labels]:
    """Two batches of any labels."""
    batch = np.zeros(crowd.n_labels, dtype=np.int8)
    batch[np.random.default_rng(1).permutation(crowd.n_labels)[: 2 * n]] = np.repeat([1, 2], n)
    return [crowd.subset(batch == b) for b in range(3)]


def new_items(crowd: Labels, n: int) -> list[Labels]:
    """Two batches of items that nobody has labelled yet."""
    from_end = crowd.n_labels - crowd.cell_ptr[crowd.item_ptr][1:]
    item = crowd.item_of_label()
    batch = np.where(from_end < n, 2, np.where(from_end < 2 * n, 1, 0))[item]
    return [crowd.subset(batch == b) for b in range(3)]


def off(found: Fit, again: Fit, batches: list[Labels]) -> tuple[Off, Off]:
    """Compare items and annotators of the new labels, and all of them."""
    apart = np.abs(found.reliability - again.reliability)
    n = found.data.n_categories
    theta = np.abs(found.distribution.dense(n) - again.distribution.dense(n)).max(axis=1)
    rows = sum(new.n_labels for new in batches)
    last = found.data.row >= found.data.n_labels - rows
    item, annotator = found.data.item_of_label()[last], found.data.annotator[last]
    asked = Off(apart[np.unique(annotator)], theta[np.unique(item)])
    return asked, Off(apart, theta)


def per_label(fit: Fit) -> float:
    return fit.log_likelihood / fit.data.n_labels


DEALS = {"scattered": scattered, "new-items": new_items}

if __name__ == "__main__":
    sys.exit(main())
