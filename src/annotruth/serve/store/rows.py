"""Tables made of classes of rows, and rows of any table: found, counted, added, changed and removed.

A row is a `NamedTuple`; each of its fields is a column, of the type of its annotation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    TypeDecorator,
    delete,
    exc,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import SchemaItem

from annotruth.errors import InputError, shown

MAX_ID_LENGTH = 512
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Row = TypeVar("Row", bound=tuple[Any, ...])


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def to_microseconds(time: datetime) -> int:
    """Return a time as the number of microseconds since 1970, as the tables store it."""
    return (time - _EPOCH) // _MICROSECOND


def from_microseconds(number: int) -> datetime:
    """Return the time, in UTC, of a number of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=number)


def check_text(what: str, value: str, max_length: int | None = MAX_ID_LENGTH) -> None:
    """Refuse text that is too long or that a database cannot store."""
    if "\0" in value:
        raise InputError(f"the {what} {shown(value)} contains a zero character")
    try:
        n_bytes = len(value.encode())
    except UnicodeEncodeError:
        raise InputError(f"the {what} {shown(value)} is not valid Unicode") from None
    # PostgreSQL's index of an item and an annotator has room for 2,700 bytes.
    if max_length is not None and (len(value) > max_length or n_bytes > 2 * max_length):
        raise InputError(
            f"the {what} {shown(value)} is longer than {max_length:,} characters, or than "
            f"{2 * max_length:,} bytes"
        )


class UtcTime(TypeDecorator[datetime]):
    """A time with its zone, stored as microseconds since 1970: both databases order these alike."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect | None) -> int | None:
        """Return the number to store."""
        return None if value is None else to_microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect | None) -> datetime | None:
        """Return the time of a stored number."""
        return None if value is None else from_microseconds(value)


class PlainText(TypeDecorator[str]):
    """Text that both databases can store and compare: valid Unicode without the zero character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect | None) -> str | None:
        """Return the text, or refuse it."""
        if value is not None:
            try:
                check_text("text", value, None)
            except InputError as error:
                raise _UnsuitableTextError(str(error)) from None
        return value


class _UnsuitableTextError(InputError, exc.DontWrapMixin):
    """An `InputError` that SQLAlchemy raises as it is."""


metadata = MetaData()
COLUMNS: dict[type, list[Column[Any]]] = {}
"""The columns of each class of rows, in the order of its fields."""

SEQ = BigInteger().with_variant(Integer, "sqlite")
"""The type of numbers of rows; SQLite numbers rows only by its own type."""

_TYPES: Mapping[Any, Any] = {
    int: Integer,
    float: Float,
    bool: Boolean,
    str: PlainText,
    Literal: PlainText,
    datetime: UtcTime,
    dict: JSON,
    list: JSON,
    Mapping: JSON,
}


def make_table(
    row: type,
    name: str,
    *items: SchemaItem,
    key: tuple[str, ...] = ("id",),
    types: Mapping[str, Any] | None = None,
    **options: Any,
) -> Table:
    """Return the table of a class of rows: a column per field, of the type of its annotation."""
    columns = [
        _column(field, hint, field in key, (types or {}).get(field), row)
        for field, hint in get_type_hints(row).items()
    ]
    COLUMNS[row] = columns
    return Table(name, metadata, *columns, *items, **options)


def _column(name: str, hint: Any, is_key: bool, type_: Any, row: Any) -> Column[Any]:
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kind = next(each for each in options if each is not NoneType)
    default = row._field_defaults.get(name)
    return Column(
        name,
        type_ or _TYPES[get_origin(kind) or kind],
        *([ForeignKey("project.id")] if name == "project" else []),
        primary_key=is_key,
        nullable=NoneType in options,
        **({} if default is None else {"default": default}),
    )


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


def latest(
    connection: Connection,
    row: type[Row],
    *conditions: ColumnElement[bool],
    limit: int | None = None,
    offset: int = 0,
    **equal: Any,
) -> list[Row]:
    """Return rows as `find` does, in descending order of the key."""
    keys: Any = [each.desc() for each in table_of(row).primary_key]
    return find(connection, row, *conditions, order=keys, limit=limit, offset=offset, **equal)


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


def table_of(row: type[Any]) -> Table:
    """Return the table of a class of rows."""
    table = COLUMNS[row][0].table
    assert isinstance(table, Table)
    return table


def _equal(table: Table, equal: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in equal.items()]
