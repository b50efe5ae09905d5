"""Rows of any table, by its class: found, counted, added, changed and removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from annotruth.serve.store.columns import COLUMNS
from annotruth.serve.store.tables import project

Row = TypeVar("Row", bound=tuple[Any, ...])


def find(
    connection: Connection,
    row: type[Row],
    *conditions: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]] | None = None,
    limit: int | None = None,
    offset: int = 0,
    **equal: Any,
) -> list[Row]:
    """Return rows with the conditions and with the values of columns, by default in order of the key."""
    table = table_of(row)
    query = select(*COLUMNS[row]).where(*conditions, *_equal(table, equal))
    ordered = query.order_by(*(table.primary_key if order is None else order))
    return rows_of(connection, row, ordered.limit(limit).offset(offset))


def rows_of(connection: Connection, row: type[Row], query: Select[Any]) -> list[Row]:
    """Return the rows of a query of all columns."""
    make: Any = row
    return [make(*each) for each in connection.execute(query)]


def find_one(connection: Connection, row: type[Row], **equal: Any) -> Row | None:
    """Return the first row with the values of columns, or None."""
    return next(iter(find(connection, row, limit=1, **equal)), None)


def count(
    connection: Connection, row: type[Any], *conditions: ColumnElement[bool], **equal: Any
) -> int:
    """Return the number of rows with the conditions and with the values of columns."""
    table = table_of(row)
    query = select(func.count()).select_from(table).where(*conditions, *_equal(table, equal))
    return connection.scalar(query) or 0


def add(connection: Connection, row: type[Row], **values: Any) -> Row:
    """Add a row and return it; what is not given has its default."""
    make: Any = row
    added = insert(table_of(row)).values(values).returning(*COLUMNS[row])
    return make(*connection.execute(added).one())  # type: ignore[no-any-return]


def add_all(connection: Connection, rows: Sequence[Any]) -> None:
    """Add rows of one class."""
    if rows:
        connection.execute(insert(table_of(type(rows[0]))), [each._asdict() for each in rows])


def put(connection: Connection, rows: Sequence[Any]) -> None:
    """Add rows of one class, or replace those with the same key."""
    if not rows:
        return
    table = table_of(type(rows[0]))
    dialect: Any = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table)
    keys = [each.name for each in table.primary_key]
    others = {each.name: statement.excluded[each.name] for each in table.c if each.name not in keys}
    replacing = statement.on_conflict_do_update(index_elements=keys, set_=others)
    connection.execute(replacing, [each._asdict() for each in rows])


def change(connection: Connection, row: type[Any], values: Mapping[str, Any], **equal: Any) -> bool:
    """Change columns of the rows with the values of others; return whether there are any."""
    table = table_of(row)
    changed = update(table).where(*_equal(table, equal)).values(values)
    return connection.execute(changed).rowcount > 0


def remove(connection: Connection, row: type[Any], **equal: Any) -> bool:
    """Remove the rows with the values of columns; return whether there were any."""
    table = table_of(row)
    return connection.execute(delete(table).where(*_equal(table, equal))).rowcount > 0


def lock_project(connection: Connection, project_id: int) -> None:
    """Wait for other transactions that have locked the project; SQLite has one writer anyway."""
    # With key_share, labels can be appended meanwhile.
    chosen = select(project.c.id).where(project.c.id == project_id)
    connection.execute(chosen.with_for_update(key_share=True))


def table_of(row: type[Any]) -> Table:
    """Return the table of a class of rows."""
    table = COLUMNS[row][0].table
    assert isinstance(table, Table)
    return table


def _equal(table: Table, equal: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in equal.items()]
