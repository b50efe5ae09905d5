"""The sheet "About": what was read, with which result, and what the columns of all sheets mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from annotruth.analyses.advice.annotators import verdict_rules
from annotruth.errors import counted
from annotruth.io.workbook import Sheet
from annotruth.models import base_fit
from annotruth.models.pairs.beside import contradictions
from annotruth.report.rank_verdict import rank_trust
from annotruth.report.verdict import trust_of
from annotruth.report.workbook.book import Book
from annotruth.report.workbook.part import Part

AboutRow: TypeAlias = tuple[str, str, str]
"""What the row is about, the name of something, and its value or meaning."""

_READ, _RESULT, _PAY = "What was read", "Result", "Pay"


def about_fit(book: Book, parts: Sequence[Part], source: str) -> list[AboutRow]:
    """Return what was read, with which result, the rules for verdicts, and what columns mean."""
    fit = book.fit
    rows = [
        *_read(book, source),
        *_result(book, parts),
        *made_rows(fit.fitted_at or base_fit.now()),
    ]
    if book.price is not None:
        rows.append((_PAY, "Price of one", f"{book.price:f}"))
        rows += [(_PAY, f"Amount: {word}", f"{amount:,f}") for word, amount in book.amounts.items()]
    if book.verdict is not None:
        rows += [("Verdicts", *rule) for rule in verdict_rules(fit).items()]
    return [*rows, *(row for part in parts for row in part.meanings())]


def about_sheet(rows: Sequence[AboutRow]) -> Sheet:
    """Return the sheet, without rows that say nothing."""
    about, what, value = zip(*(row for row in rows if row[2]), strict=True)
    return Sheet("About", pa.table({"About": about, "What": what, "Value": value}))


def made_rows(time: datetime) -> list[AboutRow]:
    """Return which version made the results, and when."""
    made = "Made"
    return [
        (made, "By", f"annotruth {version('annotruth')}"),
        (made, "Date", f"{time:%Y-%m-%d %H:%M} UTC"),
    ]


def _read(book: Book, source: str) -> list[AboutRow]:
    """Return what was read, and the rows that were not used, with reasons."""
    data, unit = book.data, book.fit.unit
    unused = {f"without a {unit}": data.n_dropped, "repeated, counted once": data.n_repeated}
    return [
        (_READ, "File", source),
        (_READ, "Read as", data.read_as),
        (_READ, f"{unit.capitalize()}s", book.fit.describe()),
        (_READ, "Rows", f"{data.n_read:,} read, {data.n_labels:,} used"),
        *((_READ, "Rows not used", f"{n:,} {why}") for why, n in {**unused, **data.unused}.items() if n),
        (_READ, "Left out", data.left_out),
    ]  # fmt: skip


def _result(book: Book, parts: Sequence[Part]) -> list[AboutRow]:
    """Return the result in a few counts, and whether it can be trusted."""
    fit, rows = book.fit, []
    trust = rank_trust(fit) if book.is_ranking else None
    if fit.kind == "labels":
        trust = trust_of(fit, book.advice)
    if trust is not None:
        rows.append((_RESULT, "Can it be trusted?", f"{trust.word}. {trust.sentence}"))
    warning = "; ".join(contradictions(fit)) if book.is_ranking else fit.notice()
    rows.append((_RESULT, "Warning", warning))
    if book.verdict is not None:
        counts = Counter(book.proposal)
        said = (
            f"{counts[word]:,} {word}" for word in ("in question", "look at", "pay") if counts[word]
        )
        rows.append((_RESULT, "People", ", ".join(said)))
    for part in parts:
        n = part.table.num_rows
        if part.name == "Relabel":
            add = counted(int(pc.sum(part.table["add"]).as_py() or 0), "label")
            rows.append((_RESULT, "Items to relabel", f"{n:,}, with {add}" if n else "none"))
        elif part.name == "Disputed":
            what = "Doubtful votes" if book.is_ranking else "Disputed items"
            rows.append((_RESULT, what, f"{n:,}" if n else "none"))
    return [*rows, (_RESULT, "Model", fit.model), (_RESULT, "How it ended", fit.stop_reason)]
