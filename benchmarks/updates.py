"""More labels for a fit of many: what an update takes beside a full fit, and how far it is off.

Off a full fit of all labels from the start, and off further passes over all labels from where the
update ended. The full fit and those passes end at different maxima for some annotators; how far
they are apart is printed too, for no update can be nearer to both.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import ConvergenceWarning
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.base import Estimator
from annotruth.models.gpm.model import GPM
from annotruth.models.incremental import Updatable, Updates
from annotruth.models.registry import UPDATABLE, get_model
from annotruth.models.result import Fit
from annotruth.simulate import crowd as crowd_of
from benchmarks import machine
from benchmarks.crowds import simulated

TARGET = 0.02
WITHIN = 1e-3
NEW = 1_000
REPEATS = 3


class Concerned(NamedTuple):
    """Annotators and items with new labels."""

    annotator: Codes
    item: Codes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.updates", description=__doc__)
    parser.add_argument("--labels", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument("--new", type=int, default=NEW, help=f"default: {NEW:,}")
    parser.add_argument(
        "--hard", action="store_true", help="10 labels an item, where GPM has many maxima"
    )
    parser.add_argument("--model", choices=UPDATABLE, default=GPM.name, help="default: gpm")
    parser.add_argument("--deals", nargs="*", choices=DEALS, default=list(DEALS))
    options = parser.parse_args()

    warnings.simplefilter("ignore", ConvergenceWarning)
    print(machine.describe(("annotruth", "numpy", "numba")), flush=True)
    make = simulated if options.hard else told_apart
    crowd = make(options.labels + options.new)
    model = get_model(options.model)
    model.updates_from = 0  # what is compiled first is small
    model().fit(make(100_000)).partial_fit([(0, 0, 1)], duplicates="keep")
    for name in options.deals:
        measure(name, model, *DEALS[name](crowd, options.new))
    return 0


def measure(name: str, make: type[Estimator], base: Labels, new: Labels) -> None:
    """Time an update and compare where it ends."""
    model = make()
    full = taken(lambda: model.fit(base))
    before = model.result_
    print(
        f"\n{name}: {base.describe()}\n"
        f"full fit {full}, {before.n_iter} iterations ({before.stop_reason})",
        flush=True,
    )
    loads, times = [], []
    for _ in range(REPEATS):
        model.resume(before)
        loads.append(taken(lambda: load(model, before)))
        times.append(taken(lambda: model.partial_fit(new)))
    update, time = model.update_, fastest(times)
    wall, processor = time.wall / full.wall, time.processor / full.processor
    print(
        f"update from the loaded state with {update.n_labels:,} labels, {update.n_items} new "
        f"items, {update.n_annotators} new annotators: {time} = {wall:.2%} of the full fit, on "
        f"processors {processor:.2%} (target {TARGET:.0%}: {met(max(wall, processor) <= TARGET)}); "
        f"passed {update.history.n_iter} times over {update.n_passed:,} labels "
        f"({update.history.stop_reason})",
        flush=True,
    )
    whole = taken(lambda: model.result_)
    found = model.result_
    print(f"what is known of the loaded fit {fastest(loads)}, made whole in {whole}", flush=True)

    asked = concerned(found.data, base.n_labels)
    again = make().fit(found.data).result_
    pairs = [("update, full fit", found, again), ("fit before, full fit", before, again)]
    if make is GPM:
        # Leaps end where plain steps do, and sooner.
        further = GPM(acceleration=True).resume(before)
        going_on = taken(lambda: further.partial_fit(new, touch=True))
        on = further.result_
        print(
            f"further passes: log-likelihood per label {per_label(on):.9f} ({on.n_iter} in "
            f"{going_on}: {on.stop_reason})"
        )
        pairs += [
            ("update, further passes", found, on),
            ("further passes, full fit", on, again),
        ]
    print(
        f"log-likelihood per label: update {per_label(found):.9f}, full fit of all "
        f"{per_label(again):.9f} ({again.n_iter} iterations)\n"
        f"off by more than {WITHIN:g} (largest of nine in ten, of 99 in 100, of all), "
        f"{len(asked.annotator):,} annotators and {len(asked.item):,} items with new labels:"
    )
    for told, one, other in pairs:
        print(f"  {told}: {off(one, other, asked)}", flush=True)
    others = np.setdiff1d(np.arange(base.n_annotators), asked.annotator)
    apart = np.abs(before.reliability[others] - again.reliability[others])
    print(f"  fit before, full fit, annotators without new labels: {spread(apart)}", flush=True)


def met(is_so: bool) -> str:
    return "met" if is_so else "NOT met"


class Taken(NamedTuple):
    """Seconds on the wall, and on processors, which other work on the machine disturbs less."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s (on processors {self.processor:.2f})"


def taken(work: Callable[[], object]) -> Taken:
    wall, processor = perf_counter(), process_time()
    work()
    return Taken(perf_counter() - wall, process_time() - processor)


def fastest(times: list[Taken]) -> Taken:
    return Taken(*(min(column) for column in zip(*times, strict=True)))


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


def load(model: Estimator, fit: Fit) -> None:
    """Do what the first update would do first."""
    model._updates = Updates(cast("Updatable[Any]", model), fit)


def scattered(crowd: Labels, n: int) -> list[Labels]:
    """Leave out any labels."""
    new = np.zeros(crowd.n_labels, dtype=np.bool_)
    new[np.random.default_rng(1).permutation(crowd.n_labels)[:n]] = True
    return [crowd.subset(~new), crowd.subset(new)]


def new_items(crowd: Labels, n: int) -> list[Labels]:
    """Leave out all labels of some items."""
    new = crowd.n_labels - crowd.cell_ptr[crowd.item_ptr][1:] < n
    of_label: NDArray[np.bool_] = new[crowd.item_of_label()]
    return [crowd.subset(~of_label), crowd.subset(of_label)]


def concerned(labels: Labels, n_before: int) -> Concerned:
    """Name whom and what the labels that came last are of."""
    last = labels.row >= n_before
    return Concerned(np.unique(labels.annotator[last]), np.unique(labels.item_of_label()[last]))


def off(one: Fit, other: Fit, asked: Concerned) -> str:
    """Compare reliabilities and distributions; items that one does not know are left out."""
    people = asked.annotator[asked.annotator < one.data.n_annotators]
    items = asked.item[asked.item < one.data.n_items]
    told = [spread(np.abs(one.reliability[people] - other.reliability[people]))]
    if len(items):
        n = one.data.n_categories
        theta = [fit.distribution.rows(items, n) for fit in (one, other)]
        told.append(spread(np.abs(theta[0] - theta[1]).max(axis=1)))
    return "; ".join(told)


def spread(apart: Floats) -> str:
    nine, nearly, most = (np.quantile(apart, q) for q in (0.9, 0.99, 1.0))
    return f"{np.mean(apart > WITHIN):.1%} ({nine:.1e}, {nearly:.1e}, {most:.1e})"


def per_label(fit: Fit) -> float:
    return fit.log_likelihood / fit.data.n_labels


DEALS = {"scattered": scattered, "new-items": new_items}

if __name__ == "__main__":
    sys.exit(main())
