"""Fit the current labels of a project."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.api import fit
from annotruth.errors import AnnotruthWarning, InputError, counted, listed, shown
from annotruth.io.formats.votes import JOINED
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import now
from annotruth.models.options import settings_of
from annotruth.models.pairs.registry import make_pair_estimator
from annotruth.models.registry import AUTO
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.encode import encode_column, match_ids
from annotruth.observations.frames import as_arrow
from annotruth.observations.options import ReadOptions
from annotruth.observations.pairs.outcomes import outcome_of_word
from annotruth.observations.pairs.table import LEFT, RIGHT, Comparisons
from annotruth.observations.scale import infer_scale
from annotruth.ranking import rank
from annotruth.serve.store.tables import ProjectKind
from annotruth.updating import fit_again

AnyFit = Fit[Any]


class FitSettings(NamedTuple):
    """The settings of a project that its fit depends on, and the known truths."""

    model: str | None = None  # the name of a model, "auto", or None for the default
    scale: str = "auto"  # as in `ReadOptions`; categories None are those of the labels
    categories: tuple[Any, ...] | None = None
    gold: tuple[tuple[str, str], ...] = ()  # known truths: item and label

    @classmethod
    def of(cls, settings: Mapping[str, Any], gold: Mapping[str, str]) -> FitSettings:
        """Return those of a project."""
        categories = settings.get("categories")
        return cls(
            settings.get("model") or None,
            settings.get("scale") or "auto",
            tuple(categories) if categories else None,
            tuple(sorted(gold.items())),
        )

    def fingerprint(self) -> str:
        """Return a text that differs if any of the settings does."""
        content = json.dumps(self, default=str).encode()
        return hashlib.sha256(content).hexdigest()

    def options(self) -> ReadOptions:
        """Return how labels are read."""
        categories = None if self.categories is None else list(self.categories)
        return ReadOptions(scale=cast("Any", self.scale), categories=categories)


class CurrentFit(NamedTuple):
    """A fit of current labels."""

    fit: AnyFit  # the fit, without a table of past fits: the store keeps the history
    is_refit: bool  # whether its model was chosen anew
    seq: Codes  # the number of the event of each of its labels, in the order of its rows
    notes: tuple[str, ...] = ()  # what was left out of it, one sentence each


class _Usable(NamedTuple):
    """Labels or comparisons that can be fitted, the numbers of their events, and what cannot."""

    data: Any
    seq: Codes
    notes: tuple[str, ...]


def fit_current(
    current: pa.Table, kind: ProjectKind, settings: FitSettings, before: AnyFit | None = None
) -> CurrentFit:
    """Fit current labels; with an earlier fit, by its model, if that is possible.

    Labels that cannot be used are left out, and a note counts them.
    """
    with warnings.catch_warnings():  # meant for readers of files; the fit says whether it converged
        warnings.simplefilter("ignore", AnnotruthWarning)
        if kind == "comparisons":
            data, seq, notes = _comparisons(current)
            after = None if before is None else _rank_again(before, data)
            model = None if settings.model == AUTO else settings.model
            return CurrentFit(after or rank(data, model), after is None, seq, notes)
        data, seq, notes = _labels(current, settings)
        after = None if before is None else _fit_again(before, data)
        made = replace(after or fit(data, settings.model), earlier_fits=None)
    return CurrentFit(made, after is None, seq, (*notes, *_note_on_sets(data)))


def _rank_again(before: AnyFit, data: Comparisons) -> AnyFit:
    estimator = make_pair_estimator(before.model, settings_of(before))
    return replace(estimator.fit(data).result_, chosen=before.chosen)


def _fit_again(before: Fit, labels: Labels) -> Fit | None:
    old, new = before.data.scale, labels.scale
    if (old.kind, old.names) == (new.kind, new.names):
        with suppress(InputError):  # not with this model, or not with these labels
            return replace(fit_again(before, labels), fitted_at=now())
    return None


def _labels(current: pa.Table, settings: FitSettings) -> _Usable:
    """Return labels on the scale of the settings, with known truths, and what was left out."""
    options = settings.options()
    notes: tuple[str, ...] = ()
    if options.categories is not None:
        said = encode_column(current["label"])
        _, code = infer_scale(said.values, kind=options.scale, categories=options.categories)
        usable = (code >= 0)[said.codes]
        current = current.filter(as_arrow(usable))
        notes = _note(usable, "label", f"not among the categories {listed(options.categories)}")
    if not len(current):
        raise InputError("there are no labels that can be fitted")
    data, more = _with_gold(
        Labels.of(current.select(["item", "annotator", "label"]), options), settings
    )
    return _Usable(data, current["seq"].to_numpy(), (*notes, *more))


def _comparisons(current: pa.Table) -> _Usable:
    said = encode_column(current["label"])
    words = [outcome_of_word(word) for word in said.values.to_pylist()]
    outcome = np.array(words, dtype=np.int8)[said.codes]
    for side, name in ((LEFT, "item"), (RIGHT, "other_item")):  # the label may be the winner's id
        outcome[(outcome < 0) & pc.equal(current["label"], current[name]).to_numpy()] = side
    differ = pc.not_equal(current["item"], current["other_item"]).to_numpy()
    usable = (outcome >= 0) & differ
    if not usable.any():
        raise InputError("there are no comparisons that can be fitted")
    notes = _note(usable, "comparison", "without a winner, or of an item with itself")
    current = current.filter(as_arrow(usable))
    both = pa.chunked_array([*current["item"].chunks, *current["other_item"].chunks])
    sides, annotators = encode_column(both), encode_column(current["annotator"])
    left, right = np.split(sides.codes, 2)
    made = Comparisons.from_codes(
        left,
        right,
        annotators.codes,
        outcome[usable],
        items=sides.values,
        annotators=annotators.values,
    )
    return _Usable(made, current["seq"].to_numpy(), notes)


def _note(usable: NDArray[np.bool_], what: str, why: str) -> tuple[str, ...]:
    n_left_out = int(np.count_nonzero(~usable))
    if not n_left_out:
        return ()
    return (f"{counted(n_left_out, f'{what} is', f'{what}s are')} left out: {why}",)


def _note_on_sets(labels: Labels) -> tuple[str, ...]:
    """Return a note on answers that are sets of labels, which arrive as one label each.

    A category is a set if some part of it is also a label by itself, or a part of another category.
    """
    parts = [str(name).split(JOINED) for name in labels.scale.names]
    occurs = Counter(part for each in parts for part in each)
    is_set = [len(each) > 1 and any(occurs[part] > 1 for part in each) for each in parts]
    n_sets = int(np.count_nonzero(np.array(is_set)[labels.category_of_label()]))
    if not n_sets:
        return ()
    example = shown(labels.scale.names[is_set.index(True)])
    note = (
        f"{counted(n_sets, 'answer has', 'answers have')} several labels, such as {example}, which "
        "count as one label here; to fit sets of labels, run `annotruth serve export PROJECT "
        f"labels.csv` and then `annotruth fit labels.csv --separator '{JOINED}'`"
    )
    return (note,)


def _with_gold(labels: Labels, settings: FitSettings) -> tuple[Labels, tuple[str, ...]]:
    """Return labels with the known truths of their items, and how many truths are no category."""
    if not settings.gold:
        return labels, ()
    items, values = (pa.array(column, pa.string()) for column in zip(*settings.gold, strict=True))
    usable = labels.scale.codes_of(values) >= 0
    notes = _note(usable, "known truth", f"not among the categories {listed(labels.scale.names)}")
    has_labels = match_ids(items, labels.items) >= 0
    table = pa.table({"item": items, "label": values}).filter(as_arrow(usable & has_labels))
    return (labels.with_gold(table) if len(table) else labels), notes
