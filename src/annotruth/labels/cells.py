"""Text that a spreadsheet would run as a formula: marked in files for people, and restored.

A spreadsheet runs a cell of a CSV that begins with = + - @, a tab or a line end, also behind spaces
and quotes, and takes a cell that begins with ' for text. So ' is put before such text. Text that
begins with ' and would be a formula without it gets another one. That makes marking reversible:
text is a marked one exactly if it begins with ' and the rest would have been marked.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from annotruth.labels.encode import decode_table
from annotruth.labels.scale import is_text, to_plain

MARK = "'"
# The script of the report, data.js, has the same two patterns.
_FORMULA = "^['\"\\x01-\\x20\\x7f\u00a0\ufeff]*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
_NUMBER = r"^[-+]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][-+]?[0-9]+)?$"


def mark_formulas(table: pa.Table) -> pa.Table:
    """Return a table with a mark before all text that a spreadsheet would run as a formula.

    Numbers, also those written as text, stay as they are.
    """
    columns = [
        _mark(to_plain(column)) if is_text(column.type) else column
        for column in decode_table(table).columns
    ]
    return pa.table(columns, names=_mark(pa.array(table.column_names, pa.string())).to_pylist())


def restore_formulas(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return text without the marks, if all formulas of the column are marked.

    A column with an unmarked formula was not marked, so its quotes are part of the text.
    """
    formulas = _are_formulas(column)
    rest = pc.utf8_slice_codeunits(column, 1)
    marked = pc.and_(pc.starts_with(column, MARK), _are_formulas(rest))
    if pc.any(pc.and_not(formulas, marked)).as_py() or not pc.any(marked).as_py():
        return column
    return pc.if_else(marked, rest, column)


def _mark(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    formulas = _are_formulas(column)
    if not pc.any(formulas).as_py():
        return column
    mark, nothing = (pa.scalar(text, column.type) for text in (MARK, ""))
    marked = pc.binary_join_element_wise(mark, column, nothing)
    return pc.if_else(formulas, marked, column)


def _are_formulas(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.and_not(
        pc.match_substring_regex(column, _FORMULA), pc.match_substring_regex(column, _NUMBER)
    )
