"""`annotruth serve`: quality control while labels arrive, as a web service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from annotruth.app import console
from annotruth.errors import InputError, system_errors_reported

if TYPE_CHECKING:
    from annotruth.serve.config import ServeConfig
    from annotruth.serve.store.database import Database

_PACKAGES = ("alembic", "fastapi", "httptools", "prometheus_client", "sqlalchemy", "uvicorn")


def serve(
    ctx: typer.Context,
    database: str | None = None,
    folder: Path | None = None,
    host: str | None = None,
    port: int | None = None,
    demo: bool = False,
) -> None:
    """Collect labels and show their quality while they arrive.

    Starts a web server and a worker that fits new labels, on this machine alone unless --host says
    otherwise. The first start prints a link that logs in as administrator. All further settings are
    environment variables that begin with ANNOTRUTH_SERVE_.

    **Examples**

        annotruth serve --demo

        annotruth serve --data-dir films

        annotruth serve token create laptop --scope write --data-dir films
    """
    given = {"database": database, "data_dir": folder, "host": host, "port": port}
    ctx.obj = given
    if ctx.invoked_subcommand is not None:
        return
    require_packages()
    if demo:
        code = _run_demo(given)
    else:
        from annotruth.serve.start import run_service

        code = run_service(config_of(given), console.show_lines)
    raise typer.Exit(code)


def _run_demo(given: dict[str, Any]) -> int:
    """Run the demo; without --data-dir, in a new folder that is removed at the end."""
    from tempfile import TemporaryDirectory

    from annotruth.serve.demo import run_demo

    if given["data_dir"] is not None:
        return run_demo(config_of(given), console.show_lines)
    with TemporaryDirectory(prefix="annotruth-demo-", ignore_cleanup_errors=True) as folder:
        own = {**given, "data_dir": folder, "database": given["database"] or sqlite_in(folder)}
        return run_demo(config_of(own), console.show_lines)


def require_packages() -> None:
    """Refuse to go on without the packages of the extra ``serve``."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in _PACKAGES):
        raise InputError(
            "`annotruth serve` needs more packages: run `pip install 'annotruth[serve]'`"
        )


def config_of(given: dict[str, Any]) -> ServeConfig:
    """Return the settings: options first, then environment variables, then defaults."""
    from annotruth.serve.config import ServeConfig, variable_of

    environment = dict(os.environ)
    for name, value in given.items():
        if value is not None:
            environment[variable_of(name)] = str(value)
    folder = environment.setdefault(variable_of("data_dir"), "annotruth-data")
    environment.setdefault(variable_of("database"), sqlite_in(folder))
    return ServeConfig.from_environment(environment)


def sqlite_in(folder: str) -> str:
    """Return the URL of the SQLite file in a data folder."""
    return f"sqlite:///{Path(folder).resolve() / 'annotruth.db'}"


class Service:
    """The database of a sub-command, whose options may also stand before its name."""

    def __init__(self, ctx: typer.Context, database: str | None, folder: Path | None) -> None:
        self._context = ctx
        own = {"database": database, "data_dir": folder}
        self._given = {**(ctx.obj or {}), **{name: value for name, value in own.items() if value}}

    @property
    def config(self) -> ServeConfig:
        """The settings of the service."""
        return config_of(self._given)

    def open(self, *, create: bool = False, upgrade: bool = False) -> Database:
        """Return the database.

        A file that does not exist yet is created, if ``create``, or refused; so are the tables. Those
        of an older version are brought up to date, if ``upgrade``, or refused.
        """
        require_packages()
        from annotruth.serve.store.database import Database, file_of

        name = self.config.database
        path = file_of(name)
        if path is not None and not path.exists():
            if not create:
                raise InputError(
                    f"{path} does not exist: start `annotruth serve`, or give --data-dir"
                )
            with system_errors_reported(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
        opened = Database.open(name)
        self._context.call_on_close(opened.dispose)
        if upgrade or (create and opened.schema_state() == "empty"):
            opened.upgrade()
        opened.check_schema()
        return opened
