"""The list of projects, and the form that logs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from annotruth.report.charts.drawing import escaped
from annotruth.serve.pages import cells
from annotruth.serve.pages.layout import PROJECTS, Frame, field, form, render, select
from annotruth.serve.pages.table import Column, TableQuery, paged_table
from annotruth.serve.store.records import Project, Snapshot

_COLUMNS = [
    Column("name", "Project", sorts=False),
    Column("kind", "Kind", sorts=False, rank=1),
    Column("n_labels", "Labels", right=True, sorts=False),
    Column("agreement", "Agreement", right=True, sorts=False, rank=1),
    Column("finished", "Finished", "items that need no more labels", right=True, sorts=False),
    Column("updated", "Updated", "time of the last snapshot, in UTC", sorts=False, rank=1),
]
_KINDS = {"labels": "labels of items", "comparisons": "comparisons of pairs of items"}


class ProjectRow(NamedTuple):
    """A project and its latest snapshot.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> ProjectRow(Project(1, "films", "labels", {}, datetime(2026, 1, 1, tzinfo=UTC))).snapshot
    """

    project: Project
    snapshot: Snapshot | None = None


def projects_page(frame: Frame, rows: Sequence[ProjectRow], *, may_create: bool) -> str:
    """Return the list of projects."""
    lines = [_row(each) for each in rows]
    table = paged_table("Projects", _COLUMNS, lines, TableQuery(path=PROJECTS, sort=""), len(lines))
    parts = [f'<section class="first">{table}</section>']
    if may_create:
        fields = (
            field("name", "Name", tip="lower-case letters, digits and -",
                  attributes='required pattern="[a-z0-9\\-]{1,60}" maxlength="60"'),
            select("kind", "Kind", _KINDS),
        )  # fmt: skip
        made = form(PROJECTS, frame.csrf, *fields, button="Create")
        parts.append(f'<section><h2>New project</h2><div class="form">{made}</div></section>')
    return render(frame, "Projects", *parts)


def _row(each: ProjectRow) -> list[str]:
    project, snapshot = each
    name = cells.link(Frame(project=project.name).address(), project.name)
    if snapshot is None:
        return [name, escaped(project.kind), "0", "", "", ""]
    summary = snapshot.summary
    finished, n_items = summary.get("n_finished"), summary.get("n_items")
    is_ranking = project.kind == "comparisons" or finished is None or not n_items
    return [
        name,
        escaped(project.kind),
        f"{snapshot.n_labels:,}",
        cells.number(summary.get("agreement")),
        "" if is_ranking else f"{finished:,} of {n_items:,}",
        cells.moment(snapshot.created),
    ]


def login_page(*, wrong: bool = False) -> str:
    """Return the form that logs in with a token.

    A link that `annotruth serve` prints has the token behind ``#``, which browsers do not send;
    the page's script puts it into the form.
    """
    fields = field(
        "token", "Token", kind="password",
        tip="made by: annotruth serve token create",
        attributes='required autocomplete="off" spellcheck="false" autofocus id="token"',
    )  # fmt: skip
    notice = "This token is unknown, revoked or expired." if wrong else ""
    content = (
        '<section class="first"><div class="form"><form method="post" action="/login" id="login">'
        f'{fields}<button type="submit">Log in</button></form></div></section>'
    )
    return render(Frame(scope=""), "Log in", content, notice=notice)


def message_page(frame: Frame, title: str, text: str) -> str:
    """Return a page with one message, such as that of an error."""
    content = (
        f'<section class="first"><p class="lead">{escaped(text)}</p>'
        f'<p><a href="{PROJECTS}">Projects</a></p></section>'
    )
    return render(frame, title, content)
