"""What a person should label now."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from annotruth.serve.store.content import get_content
from annotruth.serve.store.schema import utc_now
from annotruth.serve.web.api.parameters import Context, Writer, make_router
from annotruth.serve.web.results import row_of

router = make_router("queue")

Person = Annotated[str, Query(min_length=1, max_length=512)]


@router.get("/projects/{project}/next")
def next_(context: Context, access: Writer, annotator: Person) -> dict[str, Any]:
    """Return the item that this annotator should label now, and reserve it for them.

    The item is reserved until ``expires``; whoever asks again before gets the same one. ``advice``
    is the verdict on the annotator: it is for you to decide whether to ask them.
    """
    project = access.project
    given = context.queue.next_task(project, annotator, utc_now())
    loaded = context.snapshots.get(project.id)
    person = None if loaded is None else row_of(loaded, "annotators", annotator)
    advice = None if person is None else {name: person.get(name) for name in _ADVICE}
    if given is None:
        return {"item": None, "reason": "no item needs a label by this annotator", "advice": advice}
    task = given.task
    items = [each for each in task if each]
    with context.database.connect() as connection:
        content = [get_content(connection, project.id, each) for each in items]
    ends: dict[str, Any] = {"expires": given.expires, "advice": advice}
    if task.other_item:
        pair = {"left": task.item, "right": task.other_item}
        return {**pair, "left_content": content[0], "right_content": content[1], **ends}
    return {"item": task.item, "content": content[0], **ends}


_ADVICE = ("verdict", "ask", "reason")
