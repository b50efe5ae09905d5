"""The tables, and which labels are current.

Events are only appended. An annotation, named by (project, source, annotation), is in the state of its
latest event by (submitted, seq), and gone if that is a deletion. In projects of labels, the latest
annotation of an item by an annotator is current; in projects of comparisons all annotations are.

`migrations/` creates the same tables; a test compares both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    exc,
)

from annotruth.errors import InputError
from annotruth.serve.store.checks import check_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def to_microseconds(time: datetime) -> int:
    """Return a time as the number of microseconds since 1970, as the tables store it."""
    return (time - _EPOCH) // _MICROSECOND


def from_microseconds(number: int) -> datetime:
    """Return the time, in UTC, of a number of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=number)


class UtcTime(TypeDecorator[datetime]):
    """A time with its zone, stored as microseconds since 1970: both databases order these alike.

    Examples
    --------
    >>> UtcTime().process_bind_param(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None)
    1000000
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect | None) -> int | None:
        """Return the number to store."""
        return None if value is None else to_microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect | None) -> datetime | None:
        """Return the time of a stored number."""
        return None if value is None else from_microseconds(value)


class PlainText(TypeDecorator[str]):
    """Text that both databases can store and compare: valid Unicode without the zero character.

    Examples
    --------
    >>> PlainText().process_bind_param("film", None)
    'film'
    >>> PlainText().process_bind_param(chr(0), None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    annotruth.serve.store.schema._UnsuitableTextError: the text ... contains a zero character
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect | None) -> str | None:
        """Return the text, or refuse it."""
        if value is not None:
            try:
                check_text("text", value, None)
            except InputError as error:
                raise _UnsuitableTextError(str(error)) from None
        return value


class _UnsuitableTextError(InputError, exc.DontWrapMixin):
    """An `InputError` that SQLAlchemy raises as it is."""


metadata = MetaData()
_SEQ = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows only by its own type


def _project(**options: Any) -> Column[int]:
    return Column("project", Integer, ForeignKey("project.id"), nullable=False, **options)


project = Table(
    "project",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", PlainText, nullable=False, unique=True),
    Column("kind", PlainText, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("created", UtcTime, nullable=False),
    # How often events were removed. Who keeps labels in memory reads them again when it changes.
    Column("erasures", Integer, nullable=False),
)

event = Table(
    "event",
    metadata,
    Column("seq", _SEQ, primary_key=True),
    _project(),
    Column("source", PlainText, nullable=False),
    Column("event_id", PlainText, nullable=False),
    Column("annotation", PlainText, nullable=False),
    Column("item", PlainText, nullable=False),
    Column("other_item", PlainText, nullable=False),
    Column("annotator", PlainText, nullable=False),
    Column("label", PlainText, nullable=False),
    Column("started", UtcTime),
    Column("submitted", UtcTime, nullable=False),
    Column("deleted", Boolean, nullable=False),
    Column("received", UtcTime, nullable=False),
    UniqueConstraint("project", "source", "event_id", name="event_once"),
    Index("event_by_seq", "project", "seq"),
    Index("event_by_annotation", "project", "source", "annotation"),
    Index("event_by_slot", "project", "item", "annotator"),
    Index("event_by_annotator", "project", "annotator"),
    sqlite_autoincrement=True,  # a number is not used again after its row was removed
)

token = Table(
    "token",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("project", Integer, ForeignKey("project.id")),
    Column("name", PlainText, nullable=False),
    Column("hash", PlainText, nullable=False),
    Column("scope", PlainText, nullable=False),
    Column("created", UtcTime, nullable=False),
    Column("expires", UtcTime),
    Column("revoked", UtcTime),
    Column("last_used", UtcTime),
)

login = Table(
    "login",
    metadata,
    Column("hash", PlainText, primary_key=True),
    Column("token", PlainText, ForeignKey("token.id"), nullable=False),
    Column("expires", UtcTime, nullable=False),
)

gold = Table(
    "gold",
    metadata,
    _project(primary_key=True),
    Column("item", PlainText, primary_key=True),
    Column("label", PlainText, nullable=False),
)

item_content = Table(
    "item_content",
    metadata,
    _project(primary_key=True),
    Column("item", PlainText, primary_key=True),
    Column("content", JSON, nullable=False),
    Column("added", UtcTime, nullable=False),
)

trait = Table(
    "trait",
    metadata,
    _project(primary_key=True),
    Column("annotator", PlainText, primary_key=True),
    Column("traits", JSON, nullable=False),
)

snapshot = Table(
    "snapshot",
    metadata,
    _project(primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("created", UtcTime, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("n_labels", Integer, nullable=False),
    Column("model", PlainText, nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("summary", JSON, nullable=False),
    Column("folder", PlainText, nullable=False),  # empty when it was removed
)

annotator_history = Table(
    "annotator_history",
    metadata,
    _project(primary_key=True),
    Column("annotator", PlainText, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("created", UtcTime, nullable=False),
    Column("n_labels", Integer, nullable=False),
    Column("reliability", Float),
    Column("low", Float),
    Column("high", Float),
    Column("behavior", PlainText, nullable=False),
    Column("verdict", PlainText, nullable=False),
)

hourly = Table(
    "hourly",
    metadata,
    _project(primary_key=True),
    Column("hour", UtcTime, primary_key=True),
    Column("n_labels", Integer, nullable=False),
)

lease = Table(
    "lease",
    metadata,
    _project(primary_key=True),
    Column("item", PlainText, primary_key=True),
    Column("annotator", PlainText, primary_key=True),
    Column("expires", UtcTime, nullable=False),
    Index("lease_by_annotator", "project", "annotator"),
)

alert = Table(
    "alert",
    metadata,
    Column("id", Integer, primary_key=True),
    _project(),
    Column("created", UtcTime, nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("subject", PlainText, nullable=False),
    Column("text", PlainText, nullable=False),
    Column("detail", JSON, nullable=False),
    Column("seen", Boolean, nullable=False),
    Index("alert_by_project", "project", "id"),
    sqlite_autoincrement=True,
)

webhook = Table(
    "webhook",
    metadata,
    Column("id", Integer, primary_key=True),
    _project(),
    Column("url", PlainText, nullable=False),
    Column("secret", PlainText, nullable=False),
    Column("kinds", JSON, nullable=False),
    Column("active", Boolean, nullable=False),
    sqlite_autoincrement=True,
)

delivery = Table(
    "delivery",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("webhook", Integer, ForeignKey("webhook.id", ondelete="CASCADE"), nullable=False),
    Column("alert", Integer, ForeignKey("alert.id", ondelete="CASCADE"), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt", UtcTime, nullable=False),
    Column("status", PlainText, nullable=False),
    Column("last_error", PlainText, nullable=False),
    UniqueConstraint("webhook", "alert", name="delivery_once"),
    Index("delivery_by_status", "status", "next_attempt"),
    Index("delivery_by_alert", "alert"),
)

connection = Table(
    "connection",
    metadata,
    Column("id", Integer, primary_key=True),
    _project(),
    Column("kind", PlainText, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("secret", PlainText, nullable=False),
    Column("cursor", JSON, nullable=False),
    Column("last_contact", UtcTime),
    Column("last_error", PlainText, nullable=False),
    sqlite_autoincrement=True,
)

audit = Table(
    "audit",
    metadata,
    Column("seq", _SEQ, primary_key=True),
    Column("project", Integer, ForeignKey("project.id")),
    Column("time", UtcTime, nullable=False),
    Column("actor", PlainText, nullable=False),
    Column("action", PlainText, nullable=False),
    Column("detail", JSON, nullable=False),
    Index("audit_by_project", "project", "seq"),
    sqlite_autoincrement=True,
)

worker_state = Table(
    "worker_state",
    metadata,
    _project(primary_key=True),
    Column("last_seq", BigInteger, nullable=False),
    Column("heartbeat", UtcTime),
    Column("error", PlainText, nullable=False),
)

# The view that `current` describes; it is no table of `metadata`, which would create it as one.
_views = MetaData()
current_label = Table(
    "current_label", _views, *(Column(each.name, each.type) for each in event.columns)
)
