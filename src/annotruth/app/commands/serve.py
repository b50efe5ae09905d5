"""`annotruth serve`: quality control while labels arrive, as a web service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from annotruth.app import console
from annotruth.errors import InputError, system_errors_reported

if TYPE_CHECKING:
    from annotruth.serve.config import ServeConfig
    from annotruth.serve.store.database import Database

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME, which is better given as "
        "ANNOTRUTH_SERVE_DATABASE in the environment: other users of the machine do not see it.",
        show_default="a SQLite file in the data folder",
    ),
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Folder of the service's files: snapshots, the key of logins, and the database.",
        show_default="annotruth-data",
    ),
]

_PACKAGES = ("alembic", "fastapi", "httptools", "prometheus_client", "sqlalchemy", "uvicorn")


def serve(
    ctx: typer.Context,
    database: DatabaseOption = None,
    folder: FolderOption = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Address to listen on; 0.0.0.0 for all, behind a proxy with TLS.",
            show_default="127.0.0.1",
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Port to listen on.", show_default="8377")
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Let a simulated team label and compare items live. Without --data-dir, all is "
            "removed at the end.",
        ),
    ] = False,
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
    config = config_of(given, demo=demo and folder is None)
    if demo:
        from annotruth.serve.demo import run_demo

        code = run_demo(config, console.show_lines, temporary=folder is None)
    else:
        from annotruth.serve.start import run_service

        code = run_service(config, console.show_lines)
    raise typer.Exit(code)


def require_packages() -> None:
    """Refuse to go on without the packages of the extra ``serve``."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in _PACKAGES):
        raise InputError(
            "`annotruth serve` needs more packages: run `pip install 'annotruth[serve]'`"
        )


def config_of(given: dict[str, Any], *, demo: bool = False) -> ServeConfig:
    """Return the settings: options first, then environment variables, then defaults.

    The folder of a demo without --data-dir is a new one.
    """
    from annotruth.serve.config import ServeConfig, variable_of

    variable = variable_of("data_dir")
    environment = dict(os.environ)
    for name, value in given.items():
        if value is not None:
            environment[variable_of(name)] = str(value)
    if demo:
        import tempfile

        environment[variable] = tempfile.mkdtemp(prefix="annotruth-demo-")
    folder = Path(environment.setdefault(variable, "annotruth-data")).resolve()
    environment.setdefault(variable_of("database"), f"sqlite:///{folder / 'annotruth.db'}")
    return ServeConfig.from_environment(environment)


def open_database(
    ctx: typer.Context,
    database: str | None,
    folder: Path | None,
    *,
    create: bool = False,
    upgrade: bool = False,
) -> Database:
    """Return the database of a sub-command, whose options may also stand before its name.

    One that does not exist yet is created, if ``create``, or refused; one of an older version is
    brought up to date, if ``upgrade``, or refused.
    """
    require_packages()
    own = {"database": database, "data_dir": folder}
    config = config_of({**(ctx.obj or {}), **{name: value for name, value in own.items() if value}})
    ctx.obj = config
    from annotruth.serve.store.database import Database

    path = Path(config.database.removeprefix("sqlite:///"))
    if config.database.startswith("sqlite:///") and not path.exists():
        if not create:
            raise InputError(f"{path} does not exist: start `annotruth serve`, or give --data-dir")
        with system_errors_reported(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
    opened = Database.open(config.database)
    ctx.call_on_close(opened.dispose)
    if upgrade or (create and opened.schema_state() == "empty"):
        opened.upgrade()
    opened.check_schema()
    return opened
