"""The state of all annotations of a source, to compare with what the source says."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, func, select

from annotruth.serve.store.schema import event


class AnnotationState(NamedTuple):
    """The latest event of an annotation, and whether it is a deletion.

    Examples
    --------
    >>> AnnotationState("e1", False).deleted
    False
    """

    event_id: str
    deleted: bool


def annotation_states(
    connection: Connection, project_id: int, source: str
) -> dict[str, AnnotationState]:
    """Return the state of every annotation that a source has sent."""
    latest_first = (event.c.submitted.desc(), event.c.seq.desc())
    place = func.row_number().over(partition_by=event.c.annotation, order_by=latest_first)
    ranked = (
        select(event.c.annotation, event.c.event_id, event.c.deleted, place.label("place"))
        .where(event.c.project == project_id, event.c.source == source)
        .subquery()
    )
    query = select(ranked.c.annotation, ranked.c.event_id, ranked.c.deleted)
    rows = connection.execute(query.where(ranked.c.place == 1))
    return {annotation: AnnotationState(*state) for annotation, *state in rows}
