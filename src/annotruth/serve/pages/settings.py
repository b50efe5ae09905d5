"""The settings of a project: model and targets, tokens, webhooks and connections."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.models.registry import MODELS
from annotruth.report.charts.drawing import escaped
from annotruth.report.html import section, settings
from annotruth.serve.hooks.platforms import PLATFORMS
from annotruth.serve.pages import cells
from annotruth.serve.pages.layout import Frame, field, form, render, select, text_area
from annotruth.serve.pages.table import plain_table
from annotruth.serve.store.connections import PlatformConnection
from annotruth.serve.store.records import Delivery, Project, Token, Webhook

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


@dataclass(frozen=True, kw_only=True)
class SettingsData:
    """What the page of settings shows.

    Attributes
    ----------
    project
        The project with its settings.
    tokens, webhooks, connections
        What there is of each; secrets are not among them.
    last_deliveries
        The last delivery of each webhook that has one, by its number.
    secret
        What was just created, and its text or secret, which is shown once.
    notice
        What is wrong with the last change.
    now
        The time, for which tokens have expired.

    Examples
    --------
    >>> from datetime import UTC
    >>> time = datetime(2026, 1, 1, tzinfo=UTC)
    >>> SettingsData(project=Project(1, "films", "labels", {}, time), now=time).tokens
    ()
    """

    project: Project
    now: datetime
    tokens: Sequence[Token] = ()
    webhooks: Sequence[Webhook] = ()
    last_deliveries: Mapping[int, Delivery] = dataclasses.field(default_factory=dict)
    connections: Sequence[PlatformConnection] = ()
    secret: tuple[str, str] | None = None
    notice: str = ""


def settings_page(frame: Frame, data: SettingsData) -> str:
    """Return the page of settings; those who may not change them see them."""
    parts = [
        _secret(*data.secret) if data.secret else "",
        section("project", "Project", _project(frame, data.project)),
        section("tokens", "Tokens", _tokens(frame, data)),
        section("webhooks", "Webhooks", _webhooks(frame, data)),
        section("connections", "Connections", _connections(frame, data)),
    ]
    return render(frame, "Settings", *parts, tab="settings", notice=data.notice)


def _project(frame: Frame, project: Project) -> str:
    known = project.settings
    if not frame.is_admin:
        return settings({name.replace("_", " "): value for name, value in known.items()}) or (
            '<p class="quiet">All settings have their defaults.</p>'
        )
    models = PAIR_MODELS if frame.is_ranking else MODELS
    names = {"": "default", "auto": "auto: chosen by held-out labels"} | {
        n: n for n in sorted(models)
    }
    number = 'step="any" min="0"'
    fields = [select("model", "Model", names, str(known.get("model") or ""))]
    if not frame.is_ranking:
        fields += [
            select("scale", "Scale", {"": "inferred", "nominal": "nominal: without an order", "ordinal": "ordinal"},
                   str(known.get("scale") or "")),
            text_area("categories", "Categories", known.get("categories") or (),
                      tip="one per line, the lowest first; empty: any label is accepted"),
            field("labels_per_item", "Labels per item", known.get("labels_per_item"), kind="number",
                  tip="at most; empty: as many as the advice asks for", attributes='min="1" step="1"'),
        ]  # fmt: skip
    fields += [
        field("cost_per_label", f"Cost per {frame.unit}", known.get("cost_per_label"), kind="number",
              attributes=number),
        field("refit_after", "Refit after", known.get("refit_after"), kind="number",
              tip="share of new labels since the last full fit; 0.2 if empty",
              attributes='min="0.01" max="100" step="any"'),
    ]  # fmt: skip
    made = form(
        frame.address("settings"), frame.csrf, *fields, button="Save", hidden={"do": "save"}
    )
    return f'<div class="form">{made}</div>'


def _tokens(frame: Frame, data: SettingsData) -> str:
    note = "Tokens of this project. <code>annotruth serve token create</code> makes those for all."
    parts = [f"<p>{note}</p>"]
    rows = [
        [escaped(t.name), escaped(t.scope), _state(t, data.now), cells.moment(t.last_used) or "never",
         _remove(frame, "revoke-token", t.id, "Revoke", t.name) if t.is_valid(data.now) else ""]
        for t in data.tokens
    ]  # fmt: skip
    parts.append(_listed(("Name", "Scope", "State", "Last used", ""), rows))
    if frame.is_admin:
        fields = (
            field("name", "Name", attributes='required maxlength="60"'),
            select("scope", "Scope", _SCOPES),
            select("days", "Expires", _DAYS, "365"),
        )
        parts.append(_form(frame, "create-token", "Create a token", *fields))
    return "".join(parts)


def _state(token: Token, now: datetime) -> str:
    if token.revoked is not None:
        return cells.tag("revoked")
    if not token.is_valid(now):
        return cells.tag("expired")
    return "valid" + (f" until {cells.moment(token.expires)}" if token.expires else "")


def _webhooks(frame: Frame, data: SettingsData) -> str:
    rows = [
        [escaped(_shown_url(hook.url)), escaped(", ".join(ALERT_KINDS.get(k, k) for k in hook.kinds)),
         "active" if hook.active else "paused", _outcome(data.last_deliveries.get(hook.id)),
         _remove(frame, "remove-webhook", hook.id, "Remove", _shown_url(hook.url))]
        for hook in data.webhooks
    ]  # fmt: skip
    parts = ["<p>Requests that are sent when something happens, signed by Standard Webhooks.</p>"]
    parts.append(_listed(("Address", "Sent when", "State", "Last delivery", ""), rows))
    if frame.is_admin:
        boxes = "".join(
            f'<label class="box"><input type="checkbox" name="on_{kind}" checked> {text}</label>'
            for kind, text in ALERT_KINDS.items()
        )
        url = field("url", "Address", kind="url", attributes='required maxlength="2000"')
        parts.append(_form(frame, "create-webhook", "Add a webhook", url, f"<div>{boxes}</div>"))
    return "".join(parts)


def _outcome(last: Delivery | None) -> str:
    if last is None:
        return "none yet"
    error = f": {last.last_error}" if last.last_error else ""
    return escaped(f"{last.status}{error}")


def _connections(frame: Frame, data: SettingsData) -> str:
    rows = [
        [escaped(_PLATFORMS.get(c.kind, c.kind)), f"<code>/hooks/{c.id}</code>", cells.moment(c.last_contact) or "none yet",
         escaped(c.last_error), _remove(frame, "remove-connection", c.id, "Remove", f"/hooks/{c.id}")]
        for c in data.connections
    ]  # fmt: skip
    parts = ["<p>Platforms that send labels as they are given.</p>"]
    parts.append(_listed(("Platform", "Sends to", "Last contact", "Last error", ""), rows))
    if frame.is_admin:
        fields = (
            select("kind", "Platform", _PLATFORMS),
            field("question", "Question that is read", tip="if there are several"),
            field("dataset", "Dataset of Argilla", tip="its name or id"),
            field("secret", "Secret that Argilla made", kind="password", attributes='autocomplete="off"',
                  tip="empty for the others: a new one is shown then"),
            field("url", "Address of the platform", kind="url", tip="for polling and predictions"),
            field("project", "Number of its project", tip="for polling and predictions"),
            field("token", "Its access token", kind="password", tip="for polling and predictions",
                  attributes='autocomplete="off"'),
            select("predictions", "Predictions to Label Studio", {"": "no", "true": "yes"}),
        )  # fmt: skip
        parts.append(_form(frame, "create-connection", "Add a connection", *fields))
    return "".join(parts)


def _form(frame: Frame, action: str, button: str, *fields: str) -> str:
    made = form(
        frame.address("settings"), frame.csrf, *fields, button=button, hidden={"do": action}
    )
    return (
        f'<details class="add"><summary>{button}</summary><div class="form">{made}</div></details>'
    )


def _remove(frame: Frame, action: str, which: object, button: str, name: str) -> str:
    """Return a button that revokes or removes what has a name, after a question."""
    if not frame.is_admin:
        return ""
    hidden = {"do": action, "id": which}
    label = f"{button} {name}"
    return form(
        frame.address("settings"),
        frame.csrf,
        button=button,
        label=label,
        hidden=hidden,
        confirm=f"{label}?",
    )


def _listed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return plain_table(header, rows) if rows else '<p class="quiet">None.</p>'


def _secret(what: str, text: str) -> str:
    return (
        f'<p class="secret" role="status">The {escaped(what)}, which is shown only now: '
        f"<code>{escaped(text)}</code></p>"
    )


def _shown_url(url: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
