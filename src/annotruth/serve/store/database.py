"""Opening the database: SQLite or PostgreSQL by URL, its transactions, its schema and its errors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from sqlalchemy import Connection, Engine, create_engine, event, exc, inspect, text
from sqlalchemy.engine import URL, make_url

from annotruth.errors import InputError, listed, one_line, shorten, shown
from annotruth.serve.store.tables import metadata

_SECONDS_FOR_LOCK = 30
_SECONDS_TO_CONNECT = 10
_UPGRADE_LOCK = 0x616E6E6F
_MIGRATIONS = Path(__file__).parent / "migrations"
_EXAMPLES = "give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
_PRAGMAS = (
    "journal_mode = wal",  # readers and a writer do not wait for each other
    "synchronous = full",  # what is committed survives a failure of the power
    "foreign_keys = on",
    "cache_size = -65536",  # KiB: the indexes of a million labels
    "wal_autocheckpoint = 10000",  # pages: those that many commits change are copied once
)
_PERMANENT = ("authentication failed", "does not exist", "no password supplied", "pg_hba.conf")

_FREE_SPACE = "free some space"
SchemaState = Literal["empty", "old", "current"]


class DatabaseUnavailableError(InputError):
    """The database cannot be used now: the server is away, the disk is full, or a file is locked.

    What was not committed is not stored. Try again when the cause, which the message names, is gone.
    """

    @property
    def public_reason(self) -> str:
        """The reason for clients, who need not know the server or the file that the message names."""
        full = _FREE_SPACE in str(self)
        return "the disk of the database is full" if full else "the database does not answer"


@dataclass(frozen=True)
class Database:
    """An open database."""

    engine: Engine
    name: str  # for messages, without a password

    @classmethod
    def open(cls, url: str, *, wait: float = _SECONDS_TO_CONNECT) -> Database:
        """Return the database of a URL, after a first contact.

        A file is created where there is none. A server that does not answer, and a file that is
        locked, are tried again for ``wait`` seconds.
        """
        parsed = _parse(url)
        if parsed.drivername == "sqlite":
            name = parsed.database or ""
            _create_file(name)
            engine = create_engine(
                parsed, connect_args={"timeout": _SECONDS_FOR_LOCK, "isolation_level": None}
            )
            event.listen(engine, "connect", _set_pragmas)
            event.listen(engine, "begin", _begin)
        else:
            name = parsed.render_as_string(hide_password=True)
            engine = create_engine(
                parsed,
                pool_pre_ping=True,
                connect_args={"connect_timeout": _SECONDS_TO_CONNECT},
            )
        database = cls(engine, name)
        try:
            database._make_contact(wait)
        except BaseException:
            database.dispose()
            raise
        return database

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Return a connection to write with; the block is one transaction.

        In SQLite the transaction waits for other writers before it begins.
        """
        with self._errors_reported(), self.engine.execution_options(writes=True).begin() as opened:
            yield opened

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Return a connection to read with; what the block reads is of one moment."""
        with self._errors_reported(), self._reader.connect() as opened:
            yield opened

    @property
    def _reader(self) -> Engine:
        # As in SQLite, all that a transaction reads is of the moment of its first query.
        isolation = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        return self.engine.execution_options(**isolation)

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        """Return the database."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.dispose()

    def compact(self) -> None:
        """Rewrite SQLite's file, so that removed rows are neither in it nor in its log.

        PostgreSQL does so by itself.
        """
        if self.is_sqlite:
            with self._errors_reported(), closing(self.engine.raw_connection()) as opened:
                for statement in ("vacuum", "pragma wal_checkpoint(truncate)"):
                    opened.cursor().execute(statement)

    def schema_state(self) -> SchemaState:
        """Return whether the tables are there and current; refuse those of a newer version."""
        with self.connect() as opened:
            return _schema_state(opened, self.name)

    def upgrade(self) -> None:
        """Create the tables, or bring those of an older version up to date; refuse newer ones.

        Of several processes that upgrade at once, one does and the others wait.
        """
        if self.schema_state() == "current":
            return
        from alembic import command

        with self.begin() as opened:
            if not self.is_sqlite:  # where `begin` has locked the file
                opened.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
            config, state = _migrations(), _schema_state(opened, self.name)
            config.attributes["connection"] = opened
            if state == "empty":
                metadata.create_all(opened)
                command.stamp(config, "head")
            elif state == "old":
                command.upgrade(config, "head")

    def check_schema(self) -> None:
        """Refuse a database whose tables are missing or not of this version."""
        if self.schema_state() != "current":
            raise InputError(
                f"{self.name}: the tables are missing or of an older version: run "
                "`annotruth serve upgrade` with the same --database"
            )

    def _make_contact(self, wait: float) -> None:
        deadline = time.monotonic() + wait
        while True:
            try:
                with self._errors_reported(), self.engine.connect() as opened:
                    opened.execute(text("select 1"))
                return
            except DatabaseUnavailableError as error:
                if self._is_permanent(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(0.2)

    def _is_permanent(self, error: DatabaseUnavailableError) -> bool:
        if self.is_sqlite:
            # SQLite does not wait for a process that changes the journal at the same time.
            return "is locked" not in str(error)
        return any(reason in str(error) for reason in _PERMANENT)

    @contextmanager
    def _errors_reported(self) -> Iterator[None]:
        """Turn errors that are no fault of the program into one line."""
        try:
            yield
        except exc.TimeoutError:
            raise DatabaseUnavailableError(
                f"{self.name}: all connections are in use: try again"
            ) from None
        except exc.DBAPIError as error:
            reason = _reason(error)
            if "not a database" in reason or "malformed" in reason:
                raise InputError(
                    f"{self.name}: {reason}: choose another file, or restore a backup"
                ) from None
            if error.connection_invalidated or (
                isinstance(error, exc.OperationalError | exc.InternalError)
                and not reason.startswith("no such ")  # table or column: the program's fault
            ):
                raise DatabaseUnavailableError(
                    f"{self.name}: {reason}; {_next_step(reason)}"
                ) from None
            raise


def file_of(url: str) -> Path | None:
    """Return the file of a SQLite database, or None for a server."""
    parsed = _parse(url)
    return Path(parsed.database or "") if parsed.drivername == "sqlite" else None


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):  # such as a port that is no number
        raise InputError(f"{shown(url)} is not the URL of a database: {_EXAMPLES}") from None
    scheme = parsed.drivername.partition("+")[0]
    if scheme in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if scheme != "sqlite":
        raise InputError(f"databases of {shown(scheme)} are not supported: {_EXAMPLES}")
    if parsed.database in (None, "", ":memory:") or parsed.host or "?" in url:
        raise InputError(
            f"{shown(url)} names no file: give sqlite:///FILE, or sqlite:////PATH/FILE for an "
            "absolute path"
        )
    return parsed.set(drivername="sqlite")


def _create_file(name: str) -> None:
    """Create an empty file that only its owner reads: it will have secrets."""
    try:
        os.close(os.open(name, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        reason = error.strerror or str(error)
        raise DatabaseUnavailableError(
            f"{name}: {reason}: choose a file in a folder that exists and that you may write to"
        ) from None


def _set_pragmas(opened: Any, _: Any) -> None:
    for pragma in _PRAGMAS:
        opened.execute(f"pragma {pragma}")


def _begin(opened: Connection) -> None:
    writes = opened.get_execution_options().get("writes", False)
    # A transaction that reads first and writes later fails when another one wrote in between.
    opened.exec_driver_sql("begin immediate" if writes else "begin")


def _migrations() -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config


def _schema_state(opened: Connection, name: str) -> SchemaState:
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    heads = MigrationContext.configure(opened).get_current_heads()
    tables = set(inspect(opened).get_table_names())
    if not heads:
        others = sorted(tables & set(metadata.tables))
        if others:
            raise InputError(
                f"{name}: there are tables of another program ({listed(others)}): give annotruth a "
                "database of its own"
            )
        return "empty"
    found = listed(sorted(heads))
    scripts = ScriptDirectory.from_config(_migrations())
    if found not in {each.revision for each in scripts.walk_revisions()}:
        raise InputError(
            f"{name}: the tables are of a newer version of annotruth (schema {shorten(found)}): "
            "install that version or a newer one"
        )
    if found != scripts.get_current_head():
        return "old"
    if missing := sorted(set(metadata.tables) - tables):
        raise InputError(f"{name}: tables are missing ({listed(missing)}): restore a backup")
    return "current"


def _reason(error: exc.DBAPIError) -> str:
    """Return the driver's own words, without the statement and its values."""
    return shorten(one_line(str(error.orig)), 200)


def _next_step(reason: str) -> str:
    if "full" in reason or "No space" in reason:
        return _FREE_SPACE
    if "readonly" in reason or "read-only" in reason:
        return "choose a file and a folder that you may write to"
    if "locked" in reason:
        return "another program holds it: try again when that has ended"
    if "authentication" in reason or "password" in reason:
        return "check the user and the password of the URL"
    if "does not exist" in reason:
        return "create it first, or correct the URL"
    return "try again when it can be reached"
