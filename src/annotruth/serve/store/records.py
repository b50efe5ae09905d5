"""What the functions of the store take and return: one frozen class per kind of row."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

ProjectKind = Literal["labels", "comparisons"]
Scope = Literal["read", "write", "admin"]
SnapshotKind = Literal["update", "refit"]
DeliveryStatus = Literal["waiting", "delivered", "failed"]


class LabelEvent(NamedTuple):
    """A label that was given, edited or deleted, as a client or a platform sends it.

    Attributes
    ----------
    item, annotator, label
        Who said what about which item. Of a comparison, the item is the left one and the label the
        outcome. A deletion needs none of them if it has the annotation.
    event_id
        Makes the event idempotent: the same one again, from the same source, is ignored. By default
        a new one.
    annotation
        The annotation that later events edit or delete. By default, in projects of labels, that of
        the annotator on the item, and in projects of comparisons the event's own.
    other_item
        The right item of a comparison.
    started, submitted
        When the annotator began and ended; ``submitted`` is the time of receipt by default.
    deleted
        Whether the annotation was deleted.

    Examples
    --------
    >>> LabelEvent("film 1", "ann", "good").deleted
    False
    """

    item: str = ""
    annotator: str = ""
    label: str = ""
    event_id: str | None = None
    annotation: str | None = None
    other_item: str = ""
    started: datetime | None = None
    submitted: datetime | None = None
    deleted: bool = False


class StoredEvent(NamedTuple):
    """An event of the store, or a current label, which is the event that made it.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> time = datetime(2026, 1, 1, tzinfo=UTC)
    >>> StoredEvent(1, 1, "api", "e1", "a1", "film", "", "ann", "good", None, time, False, time).slot
    ('film', 'ann')
    """

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


class Batch(NamedTuple):
    """Events that came together, and who sent them.

    Examples
    --------
    >>> Batch("api", [LabelEvent("film 1", "ann", "good")]).source
    'api'
    """

    source: str
    events: Iterable[LabelEvent]


class Appended(NamedTuple):
    """How many of the events were new and how many repeated, and the project's last ``seq``.

    Examples
    --------
    >>> Appended(n_new=2, n_repeated=1, last_seq=7).n_new
    2
    """

    n_new: int
    n_repeated: int
    last_seq: int


class Project(NamedTuple):
    """A project: its labels or comparisons are fitted together.

    ``erasures`` counts how often events were removed, such as those of a person: who keeps labels in
    memory reads them again when it has changed.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> Project(1, "films", "labels", {"model": "auto"}, datetime(2026, 1, 1, tzinfo=UTC)).name
    'films'
    """

    id: int
    name: str
    kind: ProjectKind
    settings: dict[str, Any]
    created: datetime
    erasures: int = 0


class Token(NamedTuple):
    """A token without its secret; ``project`` None stands for all projects.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> token = Token("3f", None, "ci", "write", datetime(2026, 1, 1, tzinfo=UTC))
    >>> token.allows("read", 5), token.allows("admin", 5)
    (True, False)
    """

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


class Snapshot(NamedTuple):
    """A fit of a project's labels up to ``last_seq``.

    ``folder`` is where the fit is saved, below the folder of snapshots; it is empty when the folder
    was removed. The row stays as history, with the figures in ``summary``.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> time = datetime(2026, 1, 1, tzinfo=UTC)
    >>> Snapshot(1, 3, time, 120, 100, "robust-gpm", "refit", {"n_items": 20}, "1/3").version
    3
    """

    project: int
    version: int
    created: datetime
    last_seq: int
    n_labels: int
    model: str
    kind: SnapshotKind
    summary: dict[str, Any]
    folder: str


class AnnotatorHistory(NamedTuple):
    """What a snapshot said about an annotator; kept only when something changed noticeably.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> time = datetime(2026, 1, 1, tzinfo=UTC)
    >>> AnnotatorHistory(1, "ann", 3, time, 40, 0.9, 0.8, 0.95, "serious", "keep").verdict
    'keep'
    """

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


class WorkerState(NamedTuple):
    """How far the worker is in a project, when it last was alive, and what went wrong, if anything.

    Examples
    --------
    >>> WorkerState(project=1, last_seq=7).error
    ''
    """

    project: int
    last_seq: int = 0
    heartbeat: datetime | None = None
    error: str = ""


class Lease(NamedTuple):
    """An item that an annotator was asked to label, until a time.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> Lease(1, "film 1", "ann", datetime(2026, 1, 1, tzinfo=UTC)).item
    'film 1'
    """

    project: int
    item: str
    annotator: str
    expires: datetime


class Alert(NamedTuple):
    """Something that people should know, such as an annotator whose verdict changed.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> Alert(1, 1, datetime(2026, 1, 1, tzinfo=UTC), "item finished", "film 1", "", {}).seen
    False
    """

    id: int
    project: int
    created: datetime
    kind: str
    subject: str
    text: str
    detail: dict[str, Any]
    seen: bool = False


class Webhook(NamedTuple):
    """Where alerts of some kinds are sent; ``repr`` does not show the secret.

    Examples
    --------
    >>> Webhook(1, 1, "https://example.org/hook", "whsec_abc", ("item finished",))
    Webhook(id=1, project=1, url='https://example.org/hook')
    """

    id: int
    project: int
    url: str
    secret: str
    kinds: tuple[str, ...]
    active: bool = True

    def __repr__(self) -> str:
        return f"Webhook(id={self.id}, project={self.project}, url={self.url!r})"


class Delivery(NamedTuple):
    """An alert that is, or was, to be sent to a webhook.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> Delivery(1, 2, 3, 0, datetime(2026, 1, 1, tzinfo=UTC), "waiting").attempts
    0
    """

    id: int
    webhook: int
    alert: int
    attempts: int
    next_attempt: datetime
    status: DeliveryStatus
    last_error: str = ""


class AuditEntry(NamedTuple):
    """Who did what, and when.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> AuditEntry(1, None, datetime(2026, 1, 1, tzinfo=UTC), "ci", "token revoked", {}).action
    'token revoked'
    """

    seq: int
    project: int | None
    time: datetime
    actor: str
    action: str
    detail: dict[str, Any]
