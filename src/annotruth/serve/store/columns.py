"""Columns of the tables: the types of times and texts, and a table made of a class of rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    exc,
)
from sqlalchemy.schema import SchemaItem

from annotruth.errors import InputError, shown

MAX_ID_LENGTH = 512
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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
