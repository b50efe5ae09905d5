"""The current labels of a project in columns, kept up to date by the slots that events change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes
from annotruth.labels.encode import IdTable, encode_column
from annotruth.labels.frames import as_arrow

LABEL_COLUMNS = ("item", "annotator", "label")
PAIR_COLUMNS = ("item", "other_item", "annotator", "label")
"""The columns of comparisons; the item is the left one."""

IntCodes = NDArray[np.int32]


class CurrentRow(NamedTuple):
    """One current label: the event that made it, and what it says.

    Examples
    --------
    >>> CurrentRow(7, "film", "", "ann", "good").label
    'good'
    """

    seq: int
    item: str
    other_item: str
    annotator: str
    label: str


class CurrentLabels:
    """The current labels or comparisons of a project, one entry per label in every column.

    A slot is an item, of a comparison the left one, and an annotator. A code may have no label left.

    Parameters
    ----------
    are_pairs
        Whether these are comparisons.
    first
        Ids of ``item`` and ``annotator`` that get the first codes, such as those of a fit to update.

    Attributes
    ----------
    codes
        The codes of each column.
    seq
        The number of the event that made each label.

    Examples
    --------
    >>> current = CurrentLabels()
    >>> rows = [CurrentRow(1, "film", "", "ann", "good"), CurrentRow(2, "film", "", "bob", "bad")]
    >>> current.replace([("film", "ann"), ("film", "bob")], rows)
    2
    >>> current.replace([("film", "bob")], [CurrentRow(3, "film", "", "bob", "good")])
    1
    >>> current.table()["label"].to_pylist()
    ['good', 'good']
    """

    def __init__(
        self, *, are_pairs: bool = False, first: Mapping[str, pa.Array] | None = None
    ) -> None:
        self.are_pairs = are_pairs
        self.columns = PAIR_COLUMNS if are_pairs else LABEL_COLUMNS
        self._ids = {name: IdTable() for name in LABEL_COLUMNS}
        for name, values in (first or {}).items():
            self._ids[name].add(values.cast(pa.string()))
        self.codes = {name: np.empty(0, dtype=np.int32) for name in self.columns}
        self.seq = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.seq)

    def ids(self, column: str) -> pa.Array:
        """Return the text behind the codes of a column."""
        return self._table_of(column).values().cast(pa.string())

    def _table_of(self, column: str) -> IdTable:
        return self._ids["item" if column == "other_item" else column]

    def add_table(self, table: pa.Table) -> None:
        """Add labels of a table with the columns of `CurrentRow`, all of new slots."""
        for name in self.columns:
            added = self._table_of(name).add(table[name].combine_chunks().cast(pa.string()))
            self.codes[name] = np.concatenate([self.codes[name], added])
        self.seq = np.concatenate([self.seq, table["seq"].to_numpy()])

    def replace(self, slots: Sequence[tuple[str, str]], rows: Iterable[CurrentRow]) -> int:
        """Replace all labels of some slots by the rows, which are all current ones of these slots.

        Return how many slots have other labels than before.
        """
        if not slots:
            return 0
        items, annotators = zip(*slots, strict=True)
        # A slot that has no label, and had none, may name unknown ids; they get codes without labels.
        changed = _slot_keys(
            self._ids["item"].add(pa.array(items, pa.string())),
            self._ids["annotator"].add(pa.array(annotators, pa.string())),
        )
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
            self._ids[name] = IdTable()
            self._ids[name].add(encoded.values)
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
