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
    Connection,
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
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

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


metadata = MetaData()
_SEQ = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows only by its own type


def _project(**options: Any) -> Column[int]:
    return Column("project", Integer, ForeignKey("project.id"), nullable=False, **options)


project = Table(
    "project",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("created", UtcTime, nullable=False),
    # How often a person's data was erased. Who keeps labels in memory reads them again when it changes.
    Column("erasures", Integer, nullable=False),
)

event = Table(
    "event",
    metadata,
    Column("seq", _SEQ, primary_key=True),
    _project(),
    Column("source", Text, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("annotation", Text, nullable=False),
    Column("item", Text, nullable=False),
    Column("other_item", Text, nullable=False),
    Column("annotator", Text, nullable=False),
    Column("label", Text, nullable=False),
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
    Column("id", Text, primary_key=True),
    Column("project", Integer, ForeignKey("project.id")),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("created", UtcTime, nullable=False),
    Column("expires", UtcTime),
    Column("revoked", UtcTime),
    Column("last_used", UtcTime),
)

gold = Table(
    "gold",
    metadata,
    _project(primary_key=True),
    Column("item", Text, primary_key=True),
    Column("label", Text, nullable=False),
)

item_content = Table(
    "item_content",
    metadata,
    _project(primary_key=True),
    Column("item", Text, primary_key=True),
    Column("content", JSON, nullable=False),
    Column("added", UtcTime, nullable=False),
)

trait = Table(
    "trait",
    metadata,
    _project(primary_key=True),
    Column("annotator", Text, primary_key=True),
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
    Column("model", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("summary", JSON, nullable=False),
    Column("folder", Text, nullable=False),  # empty when it was removed
)

annotator_history = Table(
    "annotator_history",
    metadata,
    _project(primary_key=True),
    Column("annotator", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("created", UtcTime, nullable=False),
    Column("n_labels", Integer, nullable=False),
    Column("reliability", Float),
    Column("low", Float),
    Column("high", Float),
    Column("behavior", Text, nullable=False),
    Column("verdict", Text, nullable=False),
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
    Column("item", Text, primary_key=True),
    Column("annotator", Text, primary_key=True),
    Column("expires", UtcTime, nullable=False),
    Index("lease_by_annotator", "project", "annotator"),
)

alert = Table(
    "alert",
    metadata,
    Column("id", Integer, primary_key=True),
    _project(),
    Column("created", UtcTime, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("text", Text, nullable=False),
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
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
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
    Column("status", Text, nullable=False),
    Column("last_error", Text, nullable=False),
    UniqueConstraint("webhook", "alert", name="delivery_once"),
    Index("delivery_by_status", "status", "next_attempt"),
    Index("delivery_by_alert", "alert"),
)

connection = Table(
    "connection",
    metadata,
    Column("id", Integer, primary_key=True),
    _project(),
    Column("kind", Text, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("secret", Text, nullable=False),
    Column("cursor", JSON, nullable=False),
    Column("last_contact", UtcTime),
    Column("last_error", Text, nullable=False),
    sqlite_autoincrement=True,
)

audit = Table(
    "audit",
    metadata,
    Column("seq", _SEQ, primary_key=True),
    Column("project", Integer, ForeignKey("project.id")),
    Column("time", UtcTime, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
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
    Column("error", Text, nullable=False),
)

# The view that `current` describes; it is no table of `metadata`, which would create it as one.
_views = MetaData()
current_label = Table(
    "current_label", _views, *(Column(each.name, each.type) for each in event.columns)
)


def upsert(opened: Connection, table: Table) -> Any:
    """Return a statement that inserts rows, or replaces those with the same primary key."""
    dialect: Any = sqlite if opened.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table)
    keys = [each.name for each in table.primary_key]
    others = {each.name: statement.excluded[each.name] for each in table.c if each.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


def lock_project(opened: Connection, project_id: int) -> None:
    """Wait for other transactions that have locked the project; SQLite has one writer anyway."""
    # With key_share, labels can be appended meanwhile.
    chosen = select(project.c.id).where(project.c.id == project_id)
    opened.execute(chosen.with_for_update(key_share=True))
