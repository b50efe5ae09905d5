"""The settings of a project, its alerts and audit log, and the page that documents the API."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup, escape

from annotruth.errors import counted, shorten
from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.models.registry import MODELS
from annotruth.report.render import CodeText, Part, Section, Settings, Text, with_code
from annotruth.serve.hooks.platforms import PLATFORMS
from annotruth.serve.pages.parts import (
    AddForm,
    CheckBoxes,
    ChoiceField,
    Field,
    First,
    FormBox,
    Frame,
    Moment,
    PageLink,
    Secret,
    Tag,
    TextArea,
    WholeTable,
    moment,
    render,
)
from annotruth.serve.pages.table import Column, TableQuery, paged_table
from annotruth.serve.store.tables import (
    Alert,
    AuditEntry,
    Delivery,
    PlatformConnection,
    Project,
    Token,
    Webhook,
)
from annotruth.serve.web.schemas import AlertKind

ALERT_KINDS = {
    "verdict": "annotator's verdict changed",
    "finished": "items finished",
    "agreement": "agreement fell",
}
"""The kinds of alerts that a webhook can be sent on."""

_PLATFORMS = {kind: platform.title for kind, platform in PLATFORMS.items()}
_SCOPES = {
    "read": "read: see the pages and results",
    "write": "write: also send labels",
    "admin": "admin: also change settings",
}
_DAYS = {"": "never", "1": "in a day", "30": "in 30 days", "365": "in a year"}
_SCALES = {"": "inferred", "nominal": "nominal: without an order", "ordinal": "ordinal"}

FINISHED_PICK = "finished"
"""What chooses the pages of finished items."""

FINISHED: tuple[AlertKind, ...] = ("finished",)
_ALERT_COLUMNS = [
    Column("created", "Time", "in UTC", sorts=False),
    Column("text", "Alert", sorts=False),
    Column("kind", "Kind", sorts=False, rank=1),
    Column("seen", "Seen", sorts=False),
]
_AUDIT_COLUMNS = [
    Column("time", "Time", "in UTC", sorts=False),
    Column("actor", "Who", "the token's name", sorts=False),
    Column("action", "Action", sorts=False),
    Column("detail", "Detail", sorts=False, rank=1),
]
_MAX_DETAIL = 300


@dataclass(frozen=True, kw_only=True)
class SettingsData:
    """What the page of settings shows."""

    project: Project  # the project with its settings
    now: datetime  # the time, for which tokens have expired
    tokens: Sequence[Token] = ()  # what there is of each; secrets are not among them
    webhooks: Sequence[Webhook] = ()
    # The last delivery of each webhook that has one, by its number.
    last_deliveries: Mapping[int, Delivery] = dataclasses.field(default_factory=dict)
    connections: Sequence[PlatformConnection] = ()
    # What was just created, and its text or secret, which is shown once.
    secret: tuple[str, str] | None = None
    notice: str = ""  # what is wrong with the last change


def settings_page(frame: Frame, data: SettingsData) -> str:
    """Return the page of settings; those who may not change them see them."""
    parts = [
        Secret(*data.secret) if data.secret else "",
        Section("project", "Project", [_project(frame, data.project)]),
        Section("tokens", "Tokens", _tokens(frame, data)),
        Section("webhooks", "Webhooks", _webhooks(frame, data)),
        Section("connections", "Connections", _connections(frame, data)),
    ]
    return render(frame, "Settings", *parts, tab="settings", notice=data.notice)


def _project(frame: Frame, project: Project) -> Part:
    known = project.settings
    if not frame.is_admin:
        shown = {name.replace("_", " "): value for name, value in known.items()}
        return Settings(shown) if shown else Text("All settings have their defaults.", "quiet")
    names = {"": "default", "auto": "auto: chosen by held-out labels"}
    names |= {name: name for name in sorted(PAIR_MODELS if frame.is_ranking else MODELS)}
    fields: list[Part] = [ChoiceField("model", "Model", names, str(known.get("model") or ""))]
    if not frame.is_ranking:
        fields += [
            ChoiceField("scale", "Scale", _SCALES, str(known.get("scale") or "")),
            TextArea(
                "categories",
                "Categories",
                known.get("categories") or (),
                "one per line, the lowest first; empty: any label is accepted",
            ),
            Field(
                "labels_per_item",
                "Labels per item",
                known.get("labels_per_item"),
                "number",
                "at most; empty: as many as the advice asks for",
                {"min": 1, "step": 1},
            ),
        ]
    cost, refit = known.get("cost_per_label"), known.get("refit_after")
    tip = "share of new labels since the last full fit; 0.2 if empty"
    limits = {"min": "0.01", "max": "100", "step": "any"}
    fields += [
        Field(
            "cost_per_label",
            f"Cost per {frame.unit}",
            cost,
            "number",
            attributes={"step": "any", "min": 0},
        ),
        Field("refit_after", "Refit after", refit, "number", tip, limits),
    ]
    return FormBox(frame.form("settings", *fields, button="Save", do="save"))


def _tokens(frame: Frame, data: SettingsData) -> list[Part]:
    note = Text(
        [
            "Tokens of this project. ",
            CodeText("annotruth serve token create"),
            " makes those for all.",
        ]
    )
    rows = [
        (
            t.name,
            t.scope,
            _validity(t, data.now),
            moment(t.last_used) or "never",
            _remove(frame, "revoke-token", t.id, "Revoke", t.name) if t.is_valid(data.now) else "",
        )
        for t in data.tokens
    ]
    table = WholeTable(("Name", "Scope", "State", "Last used", ""), rows, "None.")
    fields = (
        Field("name", "Name", attributes={"required": "", "maxlength": 60}),
        ChoiceField("scope", "Scope", _SCOPES),
        ChoiceField("days", "Expires", _DAYS, "365"),
    )
    return [note, table, *_add_form(frame, "create-token", "Create a token", *fields)]


def _validity(token: Token, now: datetime) -> Part:
    if token.revoked is not None:
        return Tag("revoked")
    if not token.is_valid(now):
        return Tag("expired")
    return ["valid until ", Moment(token.expires)] if token.expires else "valid"


def _webhooks(frame: Frame, data: SettingsData) -> list[Part]:
    rows = [
        (
            _shown_url(hook.url),
            ", ".join(ALERT_KINDS.get(k, k) for k in hook.kinds),
            "active" if hook.active else "paused",
            _outcome(data.last_deliveries.get(hook.id)),
            _remove(frame, "remove-webhook", hook.id, "Remove", _shown_url(hook.url)),
        )
        for hook in data.webhooks
    ]
    url = Field("url", "Address", kind="url", attributes={"required": "", "maxlength": 2000})
    boxes = CheckBoxes({f"on_{kind}": text for kind, text in ALERT_KINDS.items()})
    return [
        Text("Requests that are sent when something happens, signed by Standard Webhooks."),
        WholeTable(("Address", "Sent when", "State", "Last delivery", ""), rows, "None."),
        *_add_form(frame, "create-webhook", "Add a webhook", url, boxes),
    ]


def _outcome(last: Delivery | None) -> str:
    if last is None:
        return "none yet"
    return last.status + (f": {last.last_error}" if last.last_error else "")


def _connections(frame: Frame, data: SettingsData) -> list[Part]:
    rows = [
        (
            _PLATFORMS.get(c.kind, c.kind),
            CodeText(f"/hooks/{c.id}"),
            moment(c.last_contact) or "none yet",
            c.last_error,
            _remove(frame, "remove-connection", c.id, "Remove", f"/hooks/{c.id}"),
        )
        for c in data.connections
    ]
    hidden, tip = {"autocomplete": "off"}, "for polling and predictions"
    made = "empty for the others: a new one is shown then"
    fields = (
        ChoiceField("kind", "Platform", _PLATFORMS),
        Field("question", "Question that is read", tip="if there are several"),
        Field("dataset", "Dataset of Argilla", tip="its name or id"),
        Field("secret", "Secret that Argilla made", "", "password", made, hidden),
        Field("url", "Address of the platform", kind="url", tip=tip),
        Field("project", "Number of its project", tip=tip),
        Field("token", "Its access token", "", "password", tip, hidden),
        ChoiceField("predictions", "Predictions to Label Studio", {"": "no", "true": "yes"}),
    )
    return [
        Text("Platforms that send labels as they are given."),
        WholeTable(("Platform", "Sends to", "Last contact", "Last error", ""), rows, "None."),
        *_add_form(frame, "create-connection", "Add a connection", *fields),
    ]


def _add_form(frame: Frame, do: str, button: str, *fields: Part) -> list[Part]:
    """Return the form that adds something, for those who may."""
    form = frame.form("settings", *fields, button=button, do=do)
    return [AddForm(form)] if frame.is_admin else []


def _remove(frame: Frame, do: str, which: object, button: str, name: str) -> Part:
    """Return a button that revokes or removes what has a name, after a question."""
    label = f"{button} {name}"
    options = {"button": button, "label": label, "confirm": f"{label}?"}
    return frame.form("settings", do=do, id=which, **options) if frame.is_admin else ""


def _shown_url(url: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def log_query(path: str, query: Mapping[str, str]) -> TableQuery:
    """Return which page of a log is asked for."""
    return TableQuery.parse(path, query, (), "")


def alerts_page(
    frame: Frame, query: TableQuery, alerts: Sequence[Alert], total: int, n_others: int
) -> str:
    """Return one page of the alerts of a project.

    Those of finished items, which ask for nothing and are many, have pages of their own; ``n_others`` is
    the number of those on the other pages.
    """
    rows = [
        {
            "created": Moment(alert.created),
            "text": _subject(frame, alert),
            "kind": alert.kind,
            "seen": alert.seen or Tag("new"),
        }
        for alert in alerts
    ]
    first: list[Part] = []
    if frame.n_alerts and frame.scope != "read":
        first.append(frame.form("alerts", button="Mark all as seen"))
    if n_others:
        is_finished = query.pick == FINISHED_PICK
        other = frame.address("alerts", **({} if is_finished else {"pick": FINISHED_PICK}))
        of = "about annotators and agreement" if is_finished else "of finished items"
        first.append(Text(PageLink(other, f"{counted(n_others, 'alert')} {of}")))
    first.append(paged_table(frame, "Alerts", _ALERT_COLUMNS, rows, query, total))
    under = "When the verdict on an annotator changes, agreement falls, or items are finished."
    return render(frame, "Alerts", First(first), tab="alerts", under=under, live=True)


def _subject(frame: Frame, alert: Alert) -> Part:
    """Return the text of an alert, a link to the page of the one annotator or item, if any."""
    if alert.kind == "verdict" and alert.subject:
        return frame.annotator(alert.subject, alert.text, 200)
    items = alert.detail.get("items")
    if isinstance(items, list) and len(items) == 1:
        return PageLink(frame.address("item", id=items[0]), alert.text, 200)
    return alert.text


def audit_page(frame: Frame, query: TableQuery, entries: Sequence[AuditEntry], total: int) -> str:
    """Return one page of the audit log."""
    rows = [
        {
            "time": Moment(entry.time),
            "actor": shorten(entry.actor),
            "action": entry.action,
            "detail": CodeText(_detail(entry)) if entry.detail else "",
        }
        for entry in entries
    ]
    table = paged_table(frame, "Audit log", _AUDIT_COLUMNS, rows, query, total)
    under = "Who changed what. Labels are not listed here; they are never overwritten."
    return render(frame, "Audit log", First([table]), tab="audit", under=under)


def _detail(entry: AuditEntry) -> str:
    return shorten(json.dumps(entry.detail, ensure_ascii=False, default=str), _MAX_DETAIL)


def api_page(schema: Mapping[str, Any]) -> str:
    """Return a page that documents the API, given its OpenAPI description; it works offline."""
    info = schema["info"]
    programs = Text(["For programs: ", PageLink("/openapi.json", "openapi.json"), "."])
    title = f"API of {info['title']} {info['version']}"
    return render(Frame(), title, Text(_prose(info["description"])), programs, *_endpoints(schema))


def _endpoints(schema: Mapping[str, Any]) -> Iterator[Part]:
    for number, (path, methods) in enumerate(schema["paths"].items()):
        for method, endpoint in methods.items():
            text = endpoint.get("description", endpoint.get("summary", ""))
            address = escape(f"{method.upper()} {path}").replace("/", Markup("/<wbr>"))
            parameters = [
                (each["name"], each["in"], each.get("description", ""))
                for each in endpoint.get("parameters", ())
            ]
            parts = [
                Text(_prose(text)),
                WholeTable(("parameter", "in", "meaning"), parameters),
                _body(endpoint, schema),
            ]
            yield Section(f"{method}-{number}", address, parts)


def _prose(text: str) -> Markup:
    """Return text in which what is between backticks is code."""
    return with_code(re.sub("`+", "`", text))


def _body(endpoint: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Part]:
    content = endpoint.get("requestBody", {}).get("content", {})
    if not content:
        return []
    sent = next(iter(content.values()))["schema"]
    name = sent.get("oneOf", [sent])[0]["$ref"].rpartition("/")[2]
    fields = schema["components"]["schemas"][name]
    required = fields.get("required", ())
    rows = [
        (name, "yes" if name in required else "", each.get("description", ""))
        for name, each in fields.get("properties", {}).items()
    ]
    return [
        Text(f"Body: {', '.join(content)}"),
        WholeTable(("field", "required", "meaning"), rows),
    ]
