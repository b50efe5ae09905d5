"""The tables, one class of rows for each, and which labels are current.

Events are only appended. An annotation, named by (project, source, annotation), is in the state of its
latest event by (submitted, seq), and gone if that is a deletion. In projects of labels, the latest
annotation of an item by an annotator is current; in projects of comparisons all annotations are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    UniqueConstraint,
)

from annotruth.serve.store.rows import SEQ, PlainText, make_table, metadata

__all__ = ["metadata"]  # with all tables, which importing this module defines

ProjectKind = Literal["labels", "comparisons"]
Scope = Literal["read", "write", "admin"]
SnapshotKind = Literal["update", "refit"]
DeliveryStatus = Literal["waiting", "delivered", "failed"]


class LabelEvent(NamedTuple):
    """A label that was given, edited or deleted, as a client or a platform sends it.

    Of a comparison, the item is the left one and the label the outcome. A deletion needs neither
    items nor annotator if it has the annotation.
    """

    item: str = ""
    annotator: str = ""
    label: str = ""
    event_id: str | None = None  # the same one again, from the same source, is ignored; new if None
    # What later events edit or delete. By default, of labels, that of the annotator on the item, and
    # of comparisons the event's own.
    annotation: str | None = None
    other_item: str = ""  # the right item of a comparison
    started: datetime | None = None
    submitted: datetime | None = None  # the time of receipt if None
    deleted: bool = False


class Batch(NamedTuple):
    """Events that came together, for which project, and who sent them."""

    project: int
    source: str
    events: Sequence[LabelEvent]


class AppendedEvents(NamedTuple):
    """How many of the events were new and how many repeated, and the project's last ``seq``."""

    n_new: int
    n_repeated: int
    last_seq: int


class Project(NamedTuple):
    """A project: its labels or comparisons are fitted together."""

    id: int
    name: str
    kind: ProjectKind
    settings: dict[str, Any]
    created: datetime
    erasures: int = 0  # how often events were removed: who keeps labels in memory reads them again


project = make_table(Project, "project", UniqueConstraint("name"))


class StoredEvent(NamedTuple):
    """An event of the store, or a current label, which is the event that made it."""

    seq: int
    project: int
    source: str
    event_id: str
    annotation: str
    item: str
    other_item: str
    annotator: str
    label: str
    started: datetime | None
    submitted: datetime
    deleted: bool
    received: datetime

    @property
    def slot(self) -> tuple[str, str]:
        """The item and the annotator."""
        return self.item, self.annotator


event = make_table(
    StoredEvent,
    "event",
    UniqueConstraint("project", "source", "event_id", name="event_once"),
    Index("event_by_seq", "project", "seq"),
    Index("event_by_annotation", "project", "source", "annotation"),
    Index("event_by_slot", "project", "item", "annotator"),
    Index("event_by_annotator", "project", "annotator"),
    key=("seq",),
    types={"seq": SEQ},
    sqlite_autoincrement=True,  # a number is not used again after its row was removed
)


class Token(NamedTuple):
    """A token without its secret; ``project`` None stands for all projects."""

    id: str
    project: int | None
    name: str
    scope: Scope
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    last_used: datetime | None = None

    def allows(self, scope: Scope, project: int | None) -> bool:
        """Return whether the token has the scope in a project, or, for None, in all projects."""
        scopes: tuple[Scope, ...] = get_args(Scope)
        concerns = self.project is None or self.project == project
        return concerns and scopes.index(self.scope) >= scopes.index(scope)

    def is_valid(self, now: datetime) -> bool:
        """Return whether the token is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)


token = make_table(Token, "token", Column("hash", PlainText, nullable=False))


class LoginRow(NamedTuple):
    """A login of pages, until it ends."""

    hash: str
    token: str
    expires: datetime


login = make_table(LoginRow, "login", ForeignKeyConstraint(["token"], ["token.id"]), key=("hash",))


class GoldRow(NamedTuple):
    """The known truth of an item."""

    project: int
    item: str
    label: str


gold = make_table(GoldRow, "gold", key=("project", "item"))


class ContentRow(NamedTuple):
    """What an item is, which pages show."""

    project: int
    item: str
    content: dict[str, Any]
    added: datetime


item_content = make_table(ContentRow, "item_content", key=("project", "item"))


class TraitRow(NamedTuple):
    """What is known of an annotator, such as a group or a language."""

    project: int
    annotator: str
    traits: dict[str, Any]


trait = make_table(TraitRow, "trait", key=("project", "annotator"))


class Snapshot(NamedTuple):
    """A fit of a project's labels up to ``last_seq``; the row stays as history."""

    project: int
    version: int
    created: datetime
    last_seq: int
    n_labels: int
    model: str
    kind: SnapshotKind
    summary: dict[str, Any]
    folder: str  # below the folder of snapshots; empty when it was removed


snapshot = make_table(
    Snapshot, "snapshot", key=("project", "version"), types={"last_seq": BigInteger}
)


class AnnotatorHistory(NamedTuple):
    """What a snapshot said about an annotator; kept only when something changed noticeably."""

    project: int
    annotator: str
    version: int
    created: datetime
    n_labels: int
    reliability: float | None
    low: float | None
    high: float | None
    behavior: str
    verdict: str


annotator_history = make_table(
    AnnotatorHistory, "annotator_history", key=("project", "annotator", "version")
)


class HourlyCount(NamedTuple):
    """How many labels were submitted in an hour, which is given by its first moment."""

    project: int
    hour: datetime
    n_labels: int


hourly = make_table(HourlyCount, "hourly", key=("project", "hour"))


class WorkerState(NamedTuple):
    """How far the worker is in a project, when it last was alive, and what went wrong, if anything."""

    project: int
    last_seq: int = 0
    heartbeat: datetime | None = None
    error: str = ""


worker_state = make_table(
    WorkerState, "worker_state", key=("project",), types={"last_seq": BigInteger}
)


class Lease(NamedTuple):
    """An item that an annotator was asked to label, until a time."""

    project: int
    item: str
    annotator: str
    expires: datetime


lease = make_table(
    Lease,
    "lease",
    Index("lease_by_annotator", "project", "annotator"),
    key=("project", "item", "annotator"),
)


class Alert(NamedTuple):
    """Something that people should know, such as an annotator whose verdict changed."""

    id: int
    project: int
    created: datetime
    kind: str
    subject: str
    text: str
    detail: dict[str, Any]
    seen: bool = False


alert = make_table(
    Alert, "alert", Index("alert_by_project", "project", "id"), sqlite_autoincrement=True
)


class Webhook(NamedTuple):
    """Where alerts of some kinds are sent; ``repr`` does not show the secret."""

    id: int
    project: int
    url: str
    secret: str
    kinds: list[str]
    active: bool = True

    def __repr__(self) -> str:
        return f"Webhook(id={self.id}, project={self.project}, url={self.url!r})"


webhook = make_table(Webhook, "webhook", sqlite_autoincrement=True)


class Delivery(NamedTuple):
    """An alert that is, or was, to be sent to a webhook."""

    id: int
    webhook: int
    alert: int
    attempts: int
    next_attempt: datetime
    status: DeliveryStatus
    last_error: str = ""


delivery = make_table(
    Delivery,
    "delivery",
    ForeignKeyConstraint(["webhook"], ["webhook.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(["alert"], ["alert.id"], ondelete="CASCADE"),
    UniqueConstraint("webhook", "alert", name="delivery_once"),
    Index("delivery_by_status", "status", "next_attempt"),
    Index("delivery_by_alert", "alert"),
)


class PlatformConnection(NamedTuple):
    """A labelling tool that sends labels to a project; its number is part of its webhook's address."""

    id: int
    project: int
    kind: str  # a key of `annotruth.serve.hooks.platforms.PLATFORMS`
    settings: dict[str, Any]  # which question is read, and how the platform's API is reached
    secret: str
    cursor: Mapping[str, Any] = {}  # what polling and predictions remember
    last_contact: datetime | None = None  # when it last sent something, or was last polled
    last_error: str = ""  # empty since something went well

    @property
    def source(self) -> str:
        """The source of its events."""
        return f"{self.kind}:{self.id}"


platform_connection = make_table(PlatformConnection, "connection", sqlite_autoincrement=True)


class AuditEntry(NamedTuple):
    """Who did what, and when; ``detail`` has no secrets."""

    seq: int
    project: int | None
    time: datetime
    actor: str
    action: str
    detail: dict[str, Any]


audit = make_table(
    AuditEntry,
    "audit",
    Index("audit_by_project", "project", "seq"),
    key=("seq",),
    types={"seq": SEQ},
    sqlite_autoincrement=True,
)
