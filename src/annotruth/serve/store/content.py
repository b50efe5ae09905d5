"""What is known about items and annotators: gold labels, items' content, annotators' traits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, delete, select

from annotruth.labels.validate import check_value
from annotruth.serve.store.checks import check_text
from annotruth.serve.store.schema import gold, item_content, trait
from annotruth.serve.store.statements import upsert


def check_gold(labels: Mapping[str, str | None]) -> None:
    """Refuse gold labels that cannot be stored."""
    for item, label in labels.items():
        check_text("item", item)
        if label is not None:
            check_text("label", label)
            check_value("item", item)
            check_value("label", label)


def set_gold(connection: Connection, project_id: int, labels: Mapping[str, str | None]) -> None:
    """Set the gold labels of some items; None removes one."""
    check_gold(labels)
    removed = [item for item, label in labels.items() if label is None]
    if removed:
        of_items = (gold.c.project == project_id) & gold.c.item.in_(removed)
        connection.execute(delete(gold).where(of_items))
    _set(
        connection, gold, project_id, {i: {"label": t} for i, t in labels.items() if t is not None}
    )


def get_gold(connection: Connection, project_id: int, item: str) -> str | None:
    """Return the gold label of an item, or None."""
    of_item = (gold.c.project == project_id) & (gold.c.item == item)
    return connection.scalar(select(gold.c.label).where(of_item))


def all_gold(connection: Connection, project_id: int) -> dict[str, str]:
    """Return the gold labels by item."""
    query = select(gold.c.item, gold.c.label).where(gold.c.project == project_id)
    return dict(connection.execute(query).all())


def set_content(
    connection: Connection, project_id: int, contents: Mapping[str, Any], now: datetime
) -> None:
    """Set the content of some items, which pages show."""
    for item in contents:
        check_text("item", item)
    rows = {item: {"content": content, "added": now} for item, content in contents.items()}
    _set(connection, item_content, project_id, rows)


def get_content(connection: Connection, project_id: int, item: str) -> Any:
    """Return the content of an item, or None."""
    of_item = (item_content.c.project == project_id) & (item_content.c.item == item)
    return connection.scalar(select(item_content.c.content).where(of_item))


def items_with_content(connection: Connection, project_id: int) -> list[str]:
    """Return the items with content, with or without labels, in the order they were added."""
    query = select(item_content.c.item).where(item_content.c.project == project_id)
    return list(connection.scalars(query.order_by(item_content.c.added, item_content.c.item)))


def set_traits(
    connection: Connection, project_id: int, traits: Mapping[str, Mapping[str, Any]]
) -> None:
    """Set the traits of some annotators, such as their group or language."""
    for annotator in traits:
        check_text("annotator", annotator)
    rows = {annotator: {"traits": dict(given)} for annotator, given in traits.items()}
    _set(connection, trait, project_id, rows)


def get_traits(connection: Connection, project_id: int, annotator: str) -> dict[str, Any]:
    """Return the traits of an annotator."""
    of_annotator = (trait.c.project == project_id) & (trait.c.annotator == annotator)
    return connection.scalar(select(trait.c.traits).where(of_annotator)) or {}


def _set(
    connection: Connection, table: Table, project_id: int, rows: Mapping[str, Mapping[str, Any]]
) -> None:
    """Insert rows by item or annotator, the second column of the table, or replace them."""
    name = table.columns.keys()[1]
    values = [{"project": project_id, name: each, **row} for each, row in rows.items()]
    if values:
        connection.execute(upsert(connection, table), values)
