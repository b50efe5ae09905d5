"""Checks of what is to be stored."""

from __future__ import annotations

from datetime import UTC, datetime

from annotruth.errors import InputError, shown
from annotruth.labels.validate import check_value
from annotruth.serve.store.records import LabelEvent, ProjectKind

MAX_ID_LENGTH = 512
MAX_LABEL_LENGTH = 10_000
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


def check_event(given: LabelEvent, kind: ProjectKind) -> None:
    """Refuse an event that lacks something, or has text that cannot be stored."""
    named = {
        "item": given.item,
        "annotator": given.annotator,
        "label": given.label,
        "right item": given.other_item,
        "event id": given.event_id,
        "annotation": given.annotation,
    }
    for what, value in named.items():
        if value:
            check_text(what, value, MAX_LABEL_LENGTH if what == "label" else MAX_ID_LENGTH)
    for what, value in (("event id", given.event_id), ("annotation", given.annotation)):
        if value == "":
            raise InputError(f"the {what} is empty: leave it out or give one")
    for time in (given.started, given.submitted):
        if time is not None and time.tzinfo is None:
            raise InputError(f"the time {time} has no time zone: write it as 2026-01-31T12:00:00Z")
        if time is not None and time < _EARLIEST:
            raise InputError(
                f"the time {time.isoformat()} is before {_EARLIEST.year}: correct it, or leave it out"
            )
    if given.deleted and given.annotation is not None:
        return
    needed = ["item", "annotator"] if kind == "labels" else ["item", "right item", "annotator"]
    missing = [what for what in needed if not named[what]]
    if not given.deleted and not given.label:
        missing.append("label" if kind == "labels" else "outcome")
    elif given.deleted and kind == "comparisons":
        missing = ["annotation"]
    if missing:
        raise InputError(f"the event has no {missing[0]}")
    if not given.deleted:  # what an earlier version stored can be deleted
        for what in (*needed, *(["label"] if kind == "labels" else [])):
            check_value(what, str(named[what]))
        if kind == "comparisons" and given.item == given.other_item:
            raise InputError(
                f"item {shown(given.item)} is compared with itself: leave the comparison out, or "
                "correct one of its items"
            )


def check_text(what: str, value: str, max_length: int | None = MAX_ID_LENGTH) -> None:
    """Refuse text that is too long or that a database cannot store."""
    if "\0" in value:
        raise InputError(f"the {what} {shown(value)} contains a zero character")
    try:
        n_bytes = len(value.encode())
    except UnicodeEncodeError:
        raise InputError(f"the {what} {shown(value)} is not valid Unicode") from None
    # PostgreSQL's index of an item and an annotator has room for 2,700 bytes.
    if max_length is not None and (len(value) > max_length or n_bytes > 2 * max_length):
        raise InputError(
            f"the {what} {shown(value)} is longer than {max_length:,} characters, or than "
            f"{2 * max_length:,} bytes"
        )
