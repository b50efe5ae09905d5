"""A sheet before it is written: a table, and the heading and the meaning of each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from annotruth.io.drop_list import DECISION, DECISIONS
from annotruth.io.workbook import Sheet
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.report.headings import HEADINGS

_TONES = {"drop": "bad", "in question": "bad", "unsure": "fair", "look at": "fair"}
_IDS = {"item", "annotator", "left", "right"}
_DIGITS = dict.fromkeys(("held_out", "held_out_error", "behind", "behind_error"), "0.0000")
_SHARES = {"confidence", "match_share"}
PART_HEADINGS: Mapping[str, tuple[str, str]] = {
    "annotator": ("Annotator", "who gave the labels"),
    "item": ("Item", "what was labelled"),
    "verdict": ("Verdict", "the verdict of the report; its rules are above"),
    "proposal": ("Proposal", "pay, look at, or in question: nothing is withheld before somebody decides"),
    "decision": (DECISION.capitalize(), f"for you: {', '.join(DECISIONS)}; --drop FILE.xlsx leaves out those not to pay"),
    "ask": ("Ask for more", "whether to give them more items"),
    "given": ("Labels", "number of labels, answers or comparisons they gave"),
    "matches": ("Equal to the result", "how many of their labels are the recovered label"),
    "match_share": ("Share equal", "share of their labels that are the recovered label"),
    "doubtful": ("Probably not serious", f"how many of their labels have a p serious below {SPAMMER_BELOW}"),
    "price": ("Price", "of one label"),
    "amount": ("Amount", "labels times price"),
    "amount_decided": ("Amount decided", "for you: what you pay, where it differs"),
    "add": ("Labels to add", "how many more labels are proposed for this round"),
    "give_to": ("Give it to", "who should label it, by the advice"),
    "not_again": ("Not again", "who has labelled it: another label of theirs says nothing new"),
    "why": ("Why", "the reason"),
    "label": ("Label", "the recovered label"),
    "labels": ("Label", "the recovered set of labels"),
    "disputed": ("Disputed in the report", HEADINGS["disputed"][1]),
    "n_answers": ("Answers", "number of answers"),
    "votes_for": ("Labels for it", "how many of the labels are this one"),
    "who_said": ("Who said what", "each label, and who gave it"),
    "overruled": ("Why", "how right those on each side are on average, who of them is in question, and what their labels do to the odds of the label against the runner-up: times 1 is nothing"),
    "outcome": ("Chosen", "what the annotator preferred"),
    "context": ("Context", "the prompt, scene or question"),
    "gain": ("Gain", "what the comparison is expected to add; higher is better"),
}  # fmt: skip
"""Headings and meanings of columns that the report does not have, or says in another way."""


@dataclass(frozen=True)
class Part:
    """A sheet: its table, what stands there if it is empty, what its own columns mean, and what it is."""

    name: str
    table: pa.Table
    if_empty: str
    own: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    about: str = ""

    def heading(self, name: str) -> tuple[str, str]:
        """Return the heading and the meaning of a column."""
        if name.endswith(" "):  # of what items are, whose names are the caller's
            return name[:-1], ""
        text = name.replace("_", " ").strip()
        return (
            self.own.get(name)
            or PART_HEADINGS.get(name)
            or HEADINGS.get(name, (text[:1].upper() + text[1:], ""))
        )

    def sheet(self) -> Sheet:
        """Return the sheet."""
        names = self.table.column_names
        shares = dict.fromkeys(_SHARES.intersection(names), "0%")
        return Sheet(
            self.name,
            self.table,
            {name: self.heading(name)[0] for name in names},
            {**shares, **_DIGITS, "amount": "#,##0.00", "price": "0.00####", "gain": "0.0000"},
            ids=_IDS.intersection(names),
            choices={"decision": DECISIONS},
            to_fill=("decision", "amount_decided"),
            tones=dict.fromkeys(("verdict", "proposal"), _TONES),
            if_empty=self.if_empty,
        )

    def meanings(self) -> list[tuple[str, str, str]]:
        """Return a row per column: the sheet, the heading and what it means."""
        rows = [(self.name, "This sheet", self.about)]
        rows += [(self.name, *self.heading(name)) for name in self.table.column_names]
        return [row for row in rows if row[2]]
