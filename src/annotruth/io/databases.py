"""Labels from databases: SQLite and DuckDB files, and servers by URL. They are only read."""

from __future__ import annotations

import importlib.util
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError, listed, one_line, option, shorten
from annotruth.io.content import DATABASE_TITLE, ContentKind, size_limit
from annotruth.io.decompress import VALUE_BYTES, refuse_size
from annotruth.observations.disk import format_size
from annotruth.observations.frames import ChooseColumns

_ROWS_AT_ONCE = 1 << 13
_WAIT_FOR_LOCK = 5  # seconds
_INSTALL = "install it with: pip install 'annotruth[sql]'"
# What is not part of a statement's words: comments, and text and names in quotes.
_QUOTED = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`""", re.DOTALL)
_TABLES: dict[ContentKind, str] = {
    "sqlite": "select name from sqlite_master where type in ('table', 'view') "
    "and name not like 'sqlite\\_%' escape '\\' order by name",
    "duckdb": "select table_name from information_schema.tables order by table_name",
}
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"} | dict.fromkeys(
    ("mysql", "mariadb"), "mysql+pymysql"
)


def read_database(
    path: Path, kind: ContentKind, query: str | None, choose: ChooseColumns, *, limit: int
) -> tuple[pa.Table, str]:
    """Return the rows of a query, or of the only table with columns of labels, and what was read."""
    if query is not None:
        _check_query(query)
    with _errors_reported(), closing(_open(path, kind)) as connection:
        table = None if query is not None else _find_table(connection, kind, choose)
        cursor = _run(connection, query or f"select * from {_quoted(table)}")
        rows = _fetch(cursor, _names(cursor), choose, limit)
    what = "query" if query is not None else f"table {table}"
    return rows, f"{DATABASE_TITLE[kind]}, {what}"


def read_database_url(
    url: str, query: str | None, choose: ChooseColumns, *, max_size: str | int | None = None
) -> tuple[pa.Table, str]:
    """Return the rows of a query from a database server, and what was read."""
    if query is None:
        raise InputError(
            "a database server needs a query: pass "
            f"{option('query', 'select item, annotator, label from ...')}"
        )
    _check_query(query)
    with _errors_reported(), _run_on_server(url, query) as (found, names):
        rows = _fetch(found, names, choose, size_limit(0, max_size))
    return rows, "database server, query"


def _check_query(query: str) -> None:
    """Refuse everything but one SELECT; the connection is read-only besides."""
    words = _QUOTED.sub(" ", query).strip().rstrip(";").strip()
    if not re.match(r"(select|with|values|from)\b", words, re.IGNORECASE):
        raise InputError(
            f"the query starts with {shorten(words.split(' ')[0]) or 'nothing'!r}: only SELECT and "
            "WITH are run"
        )
    if ";" in words:
        raise InputError("the query is several statements: pass one SELECT")


def _open(path: Path, kind: ContentKind) -> Any:
    """Return a connection that cannot write."""
    if kind == "sqlite":
        uri = f"{path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_FOR_LOCK)
        connection.execute("pragma trusted_schema = off")  # views of a stranger's file
        return connection
    if importlib.util.find_spec("duckdb") is None:
        raise InputError(f"DuckDB files need the package duckdb: {_INSTALL}")
    duckdb: Any = importlib.import_module("duckdb")
    # Views of a stranger's file must not read other files.
    return duckdb.connect(str(path), read_only=True, config={"enable_external_access": False})


@contextmanager
def _run_on_server(url: str, query: str) -> Iterator[tuple[Any, list[str]]]:
    """Run a query in a read-only transaction; return its rows, and the names of the columns."""
    scheme, _, rest = url.partition("://")
    if scheme in ("postgresql", "postgres") and importlib.util.find_spec("adbc_driver_postgresql"):
        adbc: Any = importlib.import_module("adbc_driver_postgresql.dbapi")
        with closing(adbc.connect(f"postgresql://{rest}")) as connection:
            _run(connection, "set transaction read only").close()
            with closing(_run(connection, query)) as cursor:
                yield cursor, _names(cursor)
        return
    if importlib.util.find_spec("sqlalchemy") is None:
        raise InputError(f"database servers need a driver of ADBC or SQLAlchemy: {_INSTALL}")
    sqlalchemy: Any = importlib.import_module("sqlalchemy")
    try:
        engine = sqlalchemy.create_engine(f"{_DRIVERS.get(scheme, scheme)}://{rest}")
    except ImportError as error:
        raise InputError(f"the driver {error.name} is missing: {_INSTALL}") from None
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("set transaction read only")
            streaming = connection.execution_options(stream_results=True, no_parameters=True)
            with closing(streaming.exec_driver_sql(query)) as result:
                yield result, list(result.keys())
    finally:
        engine.dispose()


def _run(connection: Any, query: str) -> Any:
    """Return a cursor over the rows of a query."""
    cursor = connection.cursor()
    try:
        cursor.execute(query)
    except BaseException:
        cursor.close()
        raise
    return cursor


def _names(cursor: Any) -> list[str]:
    """Return the names of the columns of a query."""
    return [str(column[0]) for column in cursor.description]


def _find_table(connection: Any, kind: ContentKind, choose: ChooseColumns) -> str:
    """Return the only table that has the columns of labels."""
    tables = [name for (name,) in _run(connection, _TABLES[kind]).fetchall()]
    if not tables:
        raise InputError("the database has no tables: check that it is the right file")
    suitable = [name for name in tables if _suits(connection, name, choose)]
    if len(suitable) == 1 or len(tables) == 1:
        return str((suitable or tables)[0])
    found = "several tables have" if suitable else "no table has"
    example = f"select * from {_quoted((suitable or tables)[0])}"
    raise InputError(
        f"{found} the columns of labels ({listed(suitable or tables)}): pass "
        f"{option('query', example)}"
    )


def _suits(connection: Any, table: str, choose: ChooseColumns) -> bool:
    """Return whether a table has the columns of labels; a view may not even run."""
    try:
        cursor = _run(connection, f"select * from {_quoted(table)} limit 0")
        choose(_names(cursor))
    except Exception as error:
        if isinstance(error, InputError) or _is_of_driver(error):
            return False
        raise
    return True


def _quoted(table: str | None) -> str:
    name = (table or "").replace('"', '""')
    return f'"{name}"'


def _fetch(found: Any, names: list[str], choose: ChooseColumns, limit: int) -> pa.Table:
    """Return the chosen columns of all rows; refuse those that take more memory than the limit."""
    chosen = list(dict.fromkeys(choose(names)))
    places = [names.index(name) for name in chosen]
    batches: list[pa.Table] = []
    size = 0
    while rows := found.fetchmany(_ROWS_AT_ONCE):
        columns = [_to_arrow(chosen[n], [row[at] for row in rows]) for n, at in enumerate(places)]
        batches.append(pa.table(columns, chosen))
        size += batches[-1].nbytes + VALUE_BYTES * len(rows) * len(chosen)
        if size > limit:
            refuse_size(f"the rows of the query take more than {format_size(limit)}", 4 * limit)
    if not batches:
        raise InputError("the query returns no rows: check it")
    try:
        return pa.concat_tables(batches, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"a column holds values of several types ({shorten(one_line(str(error)), 120)}): cast "
            "it in the query, such as cast(label as text)"
        ) from None


def _to_arrow(name: str, values: list[Any]) -> pa.Array:
    try:
        return pa.array([_plain(value) for value in values])
    except (pa.ArrowException, OverflowError):
        raise InputError(
            f"column {name!r} holds values of several types: cast it in the query, such as "
            f"cast({name} as text)"
        ) from None


def _plain(value: Any) -> Any:
    """Return a value that Arrow has a type for; UUIDs and the like become text."""
    if isinstance(value, Decimal):
        return float(value)
    plain = value is None or isinstance(value, bool | int | float | str | bytes | date | datetime)
    return value if plain else str(value)


def _is_of_driver(error: Exception) -> bool:
    """Return whether an exception is one of a database driver."""
    package = type(error).__module__.partition(".")[0]
    return package in {
        *("sqlite3", "duckdb", "_duckdb", "adbc_driver_manager", "sqlalchemy", "psycopg"),
        *("psycopg2", "pymysql"),
    }


@contextmanager
def _errors_reported() -> Iterator[None]:
    """Turn errors of a driver, which may hold passwords, into one line."""
    try:
        yield
    except Exception as error:
        if not _is_of_driver(error):
            raise
        # SQLAlchemy adds the query and a link to the driver's own error.
        text = shorten(one_line(str(getattr(error, "orig", None) or error)), 200)
        if "locked" in text.lower() or "conflicting lock" in text.lower():
            raise InputError(
                f"the database is locked by another program ({text}): try again when it is done"
            ) from None
        raise InputError(f"the database cannot be read: {text}") from None
