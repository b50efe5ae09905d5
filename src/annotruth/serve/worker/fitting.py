"""Fit the current labels of a project: from scratch, or starting from the last fit.

Current labels are kept in columns, up to date by the slots that events change.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
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
from annotruth.updating import fit_again

LABEL_COLUMNS = ("item", "annotator", "label")
PAIR_COLUMNS = ("item", "other_item", "annotator", "label")
"""The columns of comparisons; the item is the left one."""

IntCodes = NDArray[np.int32]

AnyFit = Fit[Any]


class CurrentRow(NamedTuple):
    """One current label: the event that made it, and what it says."""

    seq: int
    item: str
    other_item: str
    annotator: str
    label: str


class CurrentLabels:
    """The current labels or comparisons of a project, one entry per label in every column.

    A slot is an item, of a comparison the left one, and an annotator. A code may have no label left.
    """

    def __init__(
        self, *, are_pairs: bool = False, first: Mapping[str, pa.Array] | None = None
    ) -> None:
        self.are_pairs = are_pairs
        self.columns = PAIR_COLUMNS if are_pairs else LABEL_COLUMNS
        self._ids: dict[str, dict[str, int]] = {name: {} for name in LABEL_COLUMNS}
        for name, values in (first or {}).items():
            self._add_ids(name, values.cast(pa.string()).to_pylist())
        self.codes = {name: np.empty(0, dtype=np.int32) for name in self.columns}
        self.seq = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.seq)

    def ids(self, column: str) -> pa.Array:
        """Return the text behind the codes of a column."""
        return pa.array(list(self._table_of(column)), pa.string())

    def _table_of(self, column: str) -> dict[str, int]:
        return self._ids["item" if column == "other_item" else column]

    def _add_ids(self, column: str, values: Iterable[str]) -> IntCodes:
        """Return the codes of ids; new ones get the next codes."""
        codes = self._table_of(column)
        return np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int32)

    def add_table(self, table: pa.Table) -> None:
        """Add labels of a table with the columns of `CurrentRow`, all of new slots."""
        for name in self.columns:
            codes, values, _ = encode_column(table[name])
            added = self._add_ids(name, values.to_pylist())
            self.codes[name] = np.concatenate([self.codes[name], added[codes]])
        self.seq = np.concatenate([self.seq, table["seq"].to_numpy()])

    def replace(self, slots: Sequence[tuple[str, str]], rows: Iterable[CurrentRow]) -> int:
        """Replace all labels of some slots by the rows, which are all current ones of these slots.

        Return how many slots have other labels than before.
        """
        if not slots:
            return 0
        items, annotators = zip(*slots, strict=True)
        # A slot that has no label, and had none, may name unknown ids; they get codes without labels.
        changed = _slot_keys(self._add_ids("item", items), self._add_ids("annotator", annotators))
        removed = _is_in(
            _slot_keys(self.codes["item"], self.codes["annotator"]), np.unique(changed)
        )
        before = {name: codes[removed] for name, codes in self.codes.items()}
        n_kept = len(self) - np.count_nonzero(removed)
        if n_kept < len(self):
            self.codes = {name: codes[~removed] for name, codes in self.codes.items()}
            self.seq = self.seq[~removed]
        self.add_table(_table_of(list(rows)))
        after = {name: codes[n_kept:] for name, codes in self.codes.items()}
        return self._count_changed_slots(before, after)

    def _count_changed_slots(
        self, before: Mapping[str, IntCodes], after: Mapping[str, IntCodes]
    ) -> int:
        counts: defaultdict[tuple[int, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
        for columns, sign in ((before, -1), (after, 1)):
            for row in zip(*(columns[name].tolist() for name in self.columns), strict=True):
                counts[row[0], row[-2]][row] += sign
        return sum(any(changes.values()) for changes in counts.values())

    def put_in_order(self) -> None:
        """Put labels in the order of their events, and ids in that of their first label.

        The result depends on nothing but the current labels, and no id is without labels. Right
        items follow the left ones, as in `Comparisons`.
        """
        order = np.argsort(self.seq, kind="stable")
        self.seq = self.seq[order]
        for name in LABEL_COLUMNS:
            same_ids = [each for each in self.columns if self._table_of(each) is self._ids[name]]
            codes = np.concatenate([self.codes[each][order] for each in same_ids])
            coded = pa.DictionaryArray.from_arrays(as_arrow(codes), self.ids(name))
            encoded = encode_column(pa.chunked_array([coded]))
            self._ids[name] = {}
            self._add_ids(name, encoded.values.to_pylist())
            parts = np.split(encoded.codes, len(same_ids))
            self.codes |= dict(zip(same_ids, parts, strict=True))

    def table(self) -> pa.Table:
        """Return the labels, in dictionary columns."""
        return pa.table(
            {
                name: pa.DictionaryArray.from_arrays(as_arrow(self.codes[name]), self.ids(name))
                for name in self.columns
            }
        )


def _slot_keys(item: IntCodes, annotator: IntCodes) -> Codes:
    return (item.astype(np.int64) << 32) | annotator


def _is_in(values: Codes, ascending: Codes) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (
        ascending.take(np.searchsorted(ascending, values), mode="clip") == values
    )
    return same


def _table_of(rows: Sequence[CurrentRow]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(CurrentRow._fields)
    return pa.table(
        {
            name: pa.array(list(column), pa.int64() if name == "seq" else pa.string())
            for name, column in zip(CurrentRow._fields, columns, strict=True)
        }
    )


class FitSettings(NamedTuple):
    """The settings of a project that its fit depends on, and the known truths."""

    model: str | None = None  # the name of a model, "auto", or None for the default
    scale: str = "auto"  # as in `ReadOptions`; categories None are those of the labels
    categories: tuple[Any, ...] | None = None
    gold: tuple[tuple[str, str], ...] = ()  # known truths: item and label
    asked: Any = None  # another value than before asks for a fit from scratch

    @classmethod
    def of(cls, settings: Mapping[str, Any], gold: Mapping[str, str]) -> FitSettings:
        """Return those of a project."""
        categories = settings.get("categories")
        return cls(
            settings.get("model") or None,
            settings.get("scale") or "auto",
            tuple(categories) if categories else None,
            tuple(sorted(gold.items())),
            settings.get("refit_asked"),
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
    is_refit: bool  # whether it was made from scratch
    seq: Codes  # the number of the event of each of its labels, in the order of its rows
    notes: tuple[str, ...] = ()  # what was left out of it, one sentence each


class _Usable(NamedTuple):
    """Labels or comparisons that can be fitted, the numbers of their events, and what cannot."""

    data: Any
    seq: Codes
    notes: tuple[str, ...]


def fit_current(
    current: CurrentLabels, settings: FitSettings, before: AnyFit | None = None
) -> CurrentFit:
    """Fit current labels starting from an earlier fit, or from scratch.

    It starts from scratch, and puts the labels in order, without an earlier fit or where the fit
    cannot be continued: it is of another scale or, for some models, of other items. Labels that
    cannot be used are left out, and a note counts them.
    """
    with warnings.catch_warnings():  # meant for readers of files; the fit says whether it converged
        warnings.simplefilter("ignore", AnnotruthWarning)
        made = None if before is None else _update(current, settings, before)
        if made is None:
            made = _fit_from_scratch(current, settings)
    if made.fit.kind == "labels":
        return made._replace(notes=(*made.notes, *_note_on_sets(made.fit.data)))
    return made


def _fit_from_scratch(current: CurrentLabels, settings: FitSettings) -> CurrentFit:
    current.put_in_order()
    if current.are_pairs:
        data, seq, notes = _comparisons(current)
        model = None if settings.model == AUTO else settings.model
        return CurrentFit(rank(data, model), True, seq, notes)
    data, seq, notes = _labels(current, settings)
    return CurrentFit(replace(fit(data, settings.model), earlier_fits=None), True, seq, notes)


def _update(current: CurrentLabels, settings: FitSettings, before: AnyFit) -> CurrentFit | None:
    """Return a fit that continues an earlier one; None if that is impossible."""
    if before.kind == "comparisons":
        comparisons, seq, notes = _comparisons(current)
        if not _come_first(before.data, comparisons):
            return None
        estimator = make_pair_estimator(before.model, settings_of(before))
        estimator.fit(comparisons)
        return CurrentFit(replace(estimator.result_, chosen=before.chosen), False, seq, notes)
    usable = _labels_on_scale_of(current, settings, before)
    with suppress(InputError):  # not with this model, or not with these labels
        if usable is not None:
            after = replace(fit_again(before, usable.data), fitted_at=now())
            return CurrentFit(after, False, usable.seq, usable.notes)
    return None


def _labels(current: CurrentLabels, settings: FitSettings) -> _Usable:
    """Return labels on the scale of the settings, with known truths, and what was left out."""
    table, seq, options = current.table(), current.seq, settings.options()
    notes: tuple[str, ...] = ()
    if options.categories is not None:
        values = current.ids("label")
        _, code = infer_scale(values, kind=options.scale, categories=options.categories)
        usable = (code >= 0)[current.codes["label"]]
        table, seq = table.filter(as_arrow(usable)), seq[usable]
        notes = _note(usable, "label", f"not among the categories {listed(options.categories)}")
    if not len(table):
        raise InputError("there are no labels that can be fitted")
    labels, more = _with_gold(Labels.of(table, options), settings)
    return _Usable(labels, seq, (*notes, *more))


def _labels_on_scale_of(
    current: CurrentLabels, settings: FitSettings, before: Fit
) -> _Usable | None:
    """Return labels on the scale of an earlier fit, with known truths, and what was left out.

    None if one of them is not on the scale and that is not fixed by the settings.
    """
    scale = before.data.scale
    category = scale.codes_of(current.ids("label"))[current.codes["label"]]
    usable = category >= 0
    if not usable.any() or not (usable.all() or settings.categories):
        return None
    (item, items), (annotator, annotators) = (
        _without_gaps(current.codes[name][usable], current.ids(name))
        for name in ("item", "annotator")
    )
    labels, notes = _with_gold(
        Labels.from_codes(
            item, annotator, category[usable], items=items, annotators=annotators, scale=scale
        ),
        settings,
    )
    left_out = _note(
        usable, "label", f"not among the categories {listed(settings.categories or ())}"
    )
    return _Usable(labels, current.seq[usable], (*left_out, *notes))


def _comparisons(current: CurrentLabels) -> _Usable:
    """Return the comparisons that can be used, and how many cannot."""
    codes, words = current.codes, current.ids("label")
    outcome = np.array([outcome_of_word(word) for word in words.to_pylist()], dtype=np.int8)
    outcome = outcome[codes["label"]]
    winner = match_ids(words, current.ids("item"))[codes["label"]]
    unknown = outcome < 0
    outcome[unknown & (winner == codes["item"])] = LEFT
    outcome[unknown & (winner == codes["other_item"])] = RIGHT
    usable = (outcome >= 0) & (codes["item"] != codes["other_item"])
    if not usable.any():
        raise InputError("there are no comparisons that can be fitted")
    sides = np.concatenate([codes["item"][usable], codes["other_item"][usable]])
    item, items = _without_gaps(sides, current.ids("item"))
    annotator, annotators = _without_gaps(codes["annotator"][usable], current.ids("annotator"))
    left, right = np.split(item, 2)
    made = Comparisons.from_codes(
        left, right, annotator, outcome[usable], items=items, annotators=annotators
    )
    notes = _note(usable, "comparison", "without a winner, or of an item with itself")
    return _Usable(made, current.seq[usable], notes)


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


def _come_first(before: Comparisons, after: Comparisons) -> bool:
    """Return whether items and annotators begin with those before."""
    pairs = ((before.items, after.items), (before.annotators, after.annotators))
    return all(old.equals(new[: len(old)]) for old, new in pairs)


def _without_gaps(codes: IntCodes, ids: pa.Array) -> tuple[IntCodes, pa.Array]:
    """Return codes and ids without the ids that have no label; the others keep their order."""
    used = np.bincount(codes, minlength=len(ids)) > 0
    if used.all():
        return codes, ids
    number = (np.cumsum(used) - 1).astype(np.int32)
    return number[codes], ids.filter(as_arrow(used))


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
