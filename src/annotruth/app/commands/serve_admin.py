"""The sub-commands of `annotruth serve`: tokens, projects and their data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from annotruth.app import console, named_files
from annotruth.app.commands.serve import Service, require_packages
from annotruth.app.named_files import check_existing
from annotruth.errors import InputError, counted, listed, shown

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annotruth.serve.store.tables import Project

_ACTOR = "command line"  # in the audit log
_UNIT = {"labels": "label", "comparisons": "comparison"}  # what projects of each kind hold


def token_create(
    service: Service,
    name: str,
    scope: Literal["read", "write", "admin"] = "write",
    only: str | None = None,
    days: int | None = None,
) -> None:
    """Create a token and print it; it is not stored and cannot be shown again.

    **Examples**

        annotruth serve token create label-studio --project films

        annotruth serve token create lead --scope admin --days 30
    """
    require_packages()
    from annotruth.serve.administration import Administration, check_token
    from annotruth.serve.store.rows import utc_now

    check_token(name, scope)
    opened = service.open(create=only is None)
    now = utc_now()
    expires = None if days is None else now + timedelta(days=days)
    with opened.begin() as connection:
        of = None if only is None else _project(connection, only).id
        admin = Administration(connection, _ACTOR, now)
        _, text = admin.create_token(of, name, scope, expires)
    console.show_lines(text)


def token_list(service: Service) -> None:
    """List all tokens, without their secrets.

    **Examples**

        annotruth serve token list
    """
    import pyarrow as pa

    opened = service.open()
    from annotruth.serve.administration import list_tokens
    from annotruth.serve.store.projects import list_projects
    from annotruth.serve.store.rows import utc_now

    with opened.connect() as connection:
        tokens = list_tokens(connection)
        names = {each.id: each.name for each in list_projects(connection)}
    now = utc_now()
    rows = [
        {
            "id": token.id,
            "name": token.name,
            "project": "all" if token.project is None else names[token.project],
            "scope": token.scope,
            "state": "valid" if token.is_valid(now) else "revoked" if token.revoked else "expired",
            "created": f"{token.created:%Y-%m-%d}",
            "last used": f"{token.last_used:%Y-%m-%d %H:%M}" if token.last_used else "",
        }
        for token in tokens
    ]
    if rows:
        table = pa.Table.from_pylist(rows)
        console.show_table("Tokens", table, max_rows=len(rows))
    else:
        console.show_lines("no tokens")


def token_revoke(service: Service, token: str) -> None:
    """Revoke a token; logins that were made with it end too.

    **Examples**

        annotruth serve token revoke 3f9a2c71b0de
    """
    opened = service.open()
    from annotruth.serve.administration import Administration
    from annotruth.serve.store.rows import utc_now

    with opened.begin() as connection:
        if not Administration(connection, _ACTOR, utc_now()).revoke_token(None, token):
            raise InputError(
                f"there is no valid token with the id {shown(token)}: see `annotruth serve token list`"
            )
    console.show_lines(f"revoked {token}")


def project_create(
    service: Service,
    name: str,
    kind: Literal["labels", "comparisons"] = "labels",
    model: str | None = None,
) -> None:
    """Create a project.

    **Examples**

        annotruth serve project create films

        annotruth serve project create arena --kind comparisons
    """
    require_packages()
    from annotruth.serve.administration import Administration, check_project
    from annotruth.serve.store.rows import utc_now

    settings = {} if model is None else {"model": model}
    check_project(name, kind, settings)
    opened = service.open(create=True)
    with opened.begin() as connection:
        Administration(connection, _ACTOR, utc_now()).create_project(name, kind, settings)
    console.show_lines(f"created {name}")


def project_list(service: Service) -> None:
    """List all projects.

    **Examples**

        annotruth serve project list
    """
    import pyarrow as pa

    opened = service.open()
    from annotruth.serve.store.projects import latest_snapshot, list_projects

    with opened.connect() as connection:
        rows = [
            {
                "project": each.name,
                "kind": each.kind,
                "labels": 0 if (last := latest_snapshot(connection, each.id)) is None else last.n_labels,
                "created": f"{each.created:%Y-%m-%d}",
            }
            for each in list_projects(connection)
        ]  # fmt: skip
    if rows:
        console.show_table("Projects", pa.Table.from_pylist(rows), max_rows=len(rows))
    else:
        console.show_lines("no projects: `annotruth serve project create NAME` creates one")


def import_(service: Service, project: str, file: str) -> None:
    """Add the labels of a file to a project; what is there already is left out.

    **Examples**

        annotruth serve import films labels.csv
    """
    opened = service.open()
    from annotruth.serve.store.maintenance import append_file
    from annotruth.serve.store.rows import utc_now

    with opened.connect() as connection:
        of = _project(connection, project)
    with console.warnings_in_one_line(quiet=False):
        appended = append_file(opened, of, file, utc_now())
    added = counted(appended.n_new, _UNIT[of.kind])
    console.show_lines(f"added {added} to {project}; {appended.n_repeated:,} were there already")


def export(service: Service, project: str, out: Path, force: bool = False) -> None:
    """Write the current labels of a project to a CSV, Parquet or JSON file.

    **Examples**

        annotruth serve export films labels.parquet
    """
    check_existing("OUT", out, "file", force=force)
    opened = service.open()
    from annotruth.serve.store.maintenance import export_labels

    with opened.connect() as connection:
        of = _project(connection, project)
        n_rows = export_labels(connection, of, out)
    console.show_lines(f"wrote {counted(n_rows, _UNIT[of.kind])} to {out}")


def erase(service: Service, project: str, annotator: str) -> None:
    """Erase all data of a person from a project: labels, history, alerts and saved fits.

    **Examples**

        annotruth serve erase films ann@example.com
    """
    opened = service.open()
    from annotruth.serve.store.maintenance import erase_annotator
    from annotruth.serve.store.rows import utc_now

    with opened.connect() as connection:
        of = _project(connection, project)
    erased = erase_annotator(opened, service.config.data_dir, of, annotator, _ACTOR, utc_now())
    console.show_lines(
        f"erased {counted(erased, _UNIT[of.kind])}; the worker fits again without them"
    )


def backup(service: Service, file: Path, force: bool = False) -> None:
    """Copy the SQLite database; the service may keep running.

    For PostgreSQL, use pg_dump.

    **Examples**

        annotruth serve backup monday.db
    """
    check_existing("FILE", file, "file", force=force)
    opened = service.open()
    named_files.check_outputs({"--database": [opened.name]}, {"FILE": [file]})
    from annotruth.serve.store.maintenance import backup as write_backup

    write_backup(opened, file)
    console.show_lines(f"wrote {file}")


def upgrade(service: Service) -> None:
    """Bring the tables of the database up to date.

    **Examples**

        annotruth serve upgrade
    """
    service.open(upgrade=True)
    console.show_lines("the database is up to date")


def _project(connection: Connection, name: str) -> Project:
    from annotruth.serve.store.projects import get_project, list_projects

    found = get_project(connection, name)
    if found is None:
        names = [each.name for each in list_projects(connection)]
        known = f"there are {listed(names)}" if names else "there are none yet"
        raise InputError(f"there is no project {shown(name)}: {known}")
    return found


SERVE_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "token": (token_create, token_list, token_revoke),
    "project": (project_create, project_list),
    "": (import_, export, erase, backup, upgrade),
}
"""The sub-commands in their groups; those without a group follow `annotruth serve`."""

GROUP_HELPS = {
    "token": "Create, list and revoke tokens.",
    "project": "Create and list projects.",
}
