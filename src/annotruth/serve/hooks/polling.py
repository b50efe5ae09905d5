"""Polling: what a platform says now, compared with what is known of it; and predictions for it.

It finds the annotations that webhooks have lost: missing, changed and deleted ones. Labels have the
ids that the webhooks' events would have had, so that nothing counts twice. Predictions are each task's
label in a project of Label Studio, with its confidence as the score, by which the Data Manager sorts tasks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from annotruth.errors import AnnotruthError, InputError, counted, listed
from annotruth.io.formats.label_studio import item_of
from annotruth.io.tasks import ControlType, LabelControl, make_predictions
from annotruth.models.storage.folder import load_fit
from annotruth.observations.scale import Scale
from annotruth.serve.hooks.label_studio import LabelStudioProject
from annotruth.serve.hooks.message import (
    Fields,
    HookProject,
    PlatformState,
    PolledAnnotation,
    event_id,
    says_the_same,
    time_of,
)
from annotruth.serve.hooks.platforms import PLATFORMS, can_poll
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import (
    AnnotationState,
    annotation_states,
    append_events,
    check_event,
)
from annotruth.serve.store.projects import (
    check_gold,
    keep_contact,
    latest_snapshot,
    list_projects,
    set_gold,
    snapshots_folder,
)
from annotruth.serve.store.rows import find, utc_now
from annotruth.serve.store.tables import LabelEvent, PlatformConnection, Project, ProjectKind

MODEL_VERSION = "annotruth"
"""The name under which Label Studio shows the predictions."""
_AT_ONCE = 500
_SCORE_STEP = 0.005  # a smaller change of the confidence is not sent
_TYPES: Mapping[str, ControlType] = {"choices": "choices", "rating": "rating", "number": "number"}

POLL_EVERY = timedelta(minutes=10)
"""How often a platform is polled, unless one of its messages asks for it."""
PREDICT_EVERY = timedelta(minutes=1)
"""How often predictions are written back at most; less often where that takes long."""
POLLED, REQUESTED, PREDICT_AFTER, VERSION = "polled", "requested", "predict_after", "predicted"
"""Entries of a connection's cursor: times of polling, and the snapshot that was written back."""
_REST = 20  # predictions are written back in this part of the time at most
_LOGGER = logging.getLogger(__name__)
_MAX_DELETIONS = 1_000  # that are looked up one by one in a poll; more are found by the next ones


def write_back(
    client: LabelStudioProject, items: pa.Table, scale: Scale, *, question: str | None = None
) -> int:
    """Write predictions to Label Studio, for the items that are tasks there; return those refused.

    Where the project shows the predictions of no model, it shows these from now on. Otherwise the
    Data Manager has no score of them. ``question`` is the tag that takes the labels; by default the
    only one.
    """
    settings = client.project()
    control = find_control(settings, question)
    tasks = _tasks_by_item(client.tasks())
    new: list[dict[str, Any]] = []
    n_written = 0
    names = map(str, items["item"].to_pylist())
    predictions = make_predictions(items, scale, version=MODEL_VERSION, control=control)
    for name, prediction in zip(names, predictions, strict=True):
        for task, before in tasks.get(name, ()):
            if not before:
                new.append({"task": task, **prediction})
                continue
            n_written += 1
            if not _is_near(before[0], prediction):
                client.patch(f"/api/predictions/{before[0]['id']}/", prediction)
            for repeated in before[1:]:  # of an attempt whose answer was lost
                client.delete(f"/api/predictions/{repeated['id']}/")
    starts = range(0, len(new), _AT_ONCE)
    n_added = sum(client.add_predictions(new[start : start + _AT_ONCE]) for start in starts)
    if not settings.get("model_version") and n_added + n_written:
        # The Data Manager then shows the scores of these predictions.
        client.patch(f"/api/projects/{client.number}/", {"model_version": MODEL_VERSION})
    return len(new) - n_added


def find_control(settings: Fields, question: str | None) -> LabelControl:
    """Return the tag of a project that takes the labels, from its labelling interface."""
    tags = settings.get("parsed_label_config")
    controls = {
        name: LabelControl(
            name=name, to_name=tag["to_name"][0], type=_TYPES[str(tag["type"]).lower()]
        )
        for name, tag in (tags if isinstance(tags, dict) else {}).items()
        if isinstance(tag, dict) and str(tag.get("type")).lower() in _TYPES and tag.get("to_name")
    }
    if question is not None and question in controls:
        return controls[question]
    if question is None and len(controls) == 1:
        return next(iter(controls.values()))
    wanted = "one tag" if question is None else f"a tag {question!r}"
    raise InputError(
        f"the labelling interface needs {wanted} of type Choices, Rating or Number (found: "
        f"{listed(controls)}): set the question of the connection"
    )


def _tasks_by_item(tasks: Iterable[Fields]) -> dict[str, list[tuple[int, list[Fields]]]]:
    """Return tasks by item, each with the predictions that were written to it before."""
    found: dict[str, list[tuple[int, list[Fields]]]] = {}
    for task in tasks:
        predictions = task.get("predictions")
        ours: list[Fields] = [
            each
            for each in (predictions if isinstance(predictions, list) else ())
            if isinstance(each, dict) and each.get("model_version") == MODEL_VERSION
        ]
        found.setdefault(str(item_of(dict(task))), []).append((task["id"], ours))
    return found


def _is_near(before: Fields, prediction: Fields) -> bool:
    old, new = before.get("score"), prediction["score"]
    is_number = isinstance(old, int | float) and isinstance(new, int | float)
    is_same = abs(old - new) < _SCORE_STEP if is_number else old is new
    return is_same and _value(before) == _value(prediction)


def _value(prediction: Fields) -> Any:
    """Return the value of a prediction's result; Label Studio may add further entries to it."""
    result = prediction.get("result")
    first = result[0] if isinstance(result, list) and result else {}
    return (first.get("from_name"), first.get("value")) if isinstance(first, dict) else None


class Polled(NamedTuple):
    """What polling found: events that were missing here, with known truths by item."""

    events: list[LabelEvent]
    gold: dict[str, str]
    problem: str  # of annotations that could not be read; empty if all could


def poll_due(
    database: Database, data_dir: Path, now: datetime | None = None, **options: Any
) -> None:
    """Poll the connections whose turn it is, and write predictions back where there are new ones.

    The options are those of `PlatformClient`, such as ``allow_private``.
    """
    now = utc_now() if now is None else now
    with database.connect() as connection:
        projects = {each.id: each for each in list_projects(connection)}
        connections = [
            each for each in find(connection, PlatformConnection) if can_poll(each.settings)
        ]
    for each in connections:
        project = projects[each.project]
        if is_poll_due(each.cursor, now):
            poll_connection(database, each, project, now, **options)
        if each.settings.get("predictions") and project.kind == "labels":
            _predict_if_due(database, data_dir, each, now, **options)


def is_poll_due(cursor: Fields, now: datetime) -> bool:
    """Return whether a poll was requested since the last one began, or that is long ago."""
    polled, requested = time_of(cursor.get(POLLED)), time_of(cursor.get(REQUESTED))
    if polled is None:
        return True
    return now - polled >= POLL_EVERY or (requested is not None and requested >= polled)


def poll_connection(
    database: Database,
    polled: PlatformConnection,
    project: Project,
    now: datetime,
    **options: Any,
) -> Polled | None:
    """Append what a platform has that is not known here; None if the platform cannot be read.

    What went wrong is kept as the last error of the connection.
    """
    # Read before the platform is: what arrives meanwhile is then not taken for deleted.
    with database.connect() as connection:
        known = annotation_states(connection, project.id, polled.source)
    began = {POLLED: now.isoformat()}
    try:
        hook_project = HookProject(project.kind, polled.settings)
        with PLATFORMS[polled.kind].open(hook_project, **options) as state:
            found = reconcile(state, known, project.kind)
    except Exception as error:  # noqa: BLE001 (whatever it is must not stop other connections)
        problem = _problem(polled, error)
        with database.begin() as connection:
            keep_contact(connection, polled.id, now, error=problem, cursor=began)
        return None
    with database.begin() as connection:
        append_events(connection, project.id, polled.source, found.events, utc_now())
        set_gold(connection, project.id, found.gold)
        keep_contact(connection, polled.id, now, error=found.problem, cursor=began)
    if found.events:
        _LOGGER.info("connection %d was polled: %d events", polled.id, len(found.events))
    return found


def _problem(of: PlatformConnection, error: Exception) -> str:
    """Log what went wrong with a connection, and return it in one line."""
    if isinstance(error, AnnotruthError):
        _LOGGER.warning("connection %d: %s", of.id, error)
        return str(error)
    _LOGGER.error("connection %d failed", of.id, exc_info=error)
    return f"the answer was not understood ({type(error).__name__}: {error}): see the worker's log"


def _predict_if_due(
    database: Database, data_dir: Path, to: PlatformConnection, now: datetime, **options: Any
) -> None:
    with database.connect() as connection:
        latest = latest_snapshot(connection, to.project)
    after = time_of(to.cursor.get(PREDICT_AFTER))
    is_early = after is not None and now < after
    if latest is None or is_early or latest.version == to.cursor.get(VERSION):
        return
    cursor: dict[str, Any] = {}
    error, began = "", time.monotonic()
    try:
        fit = load_fit(snapshots_folder(data_dir) / latest.folder)
        if fit.kind == "labels":
            with LabelStudioProject(to.settings, **options) as client:
                question = to.settings.get("question")
                refused = write_back(client, fit.item_table(), fit.data.scale, question=question)
            error = f"predictions: {refused:,} refused" if refused else ""
        cursor[VERSION] = latest.version
    except Exception as problem:  # noqa: BLE001 (as above)
        error = f"predictions: {_problem(to, problem)}"
    rest = timedelta(seconds=_REST * (time.monotonic() - began))
    cursor[PREDICT_AFTER] = (now + max(PREDICT_EVERY, rest)).isoformat()
    with database.begin() as connection:
        keep_contact(connection, to.id, now, error=error, cursor=cursor)


def reconcile(
    state: PlatformState, known: Mapping[str, AnnotationState], kind: ProjectKind
) -> Polled:
    """Return the events that lead from what is known to what was found.

    ``known`` must have been read before: an annotation that arrives during the poll is then neither
    missing nor deleted. An annotation that cannot be stored is left out as one that cannot be read
    is, so that the others are stored.
    """
    events: list[LabelEvent] = []
    gold: dict[str, str] = {}
    problems: list[str] = []
    seen: set[str] = set()
    for each in (_checked(one, kind) for one in state.annotations):
        seen.add(each.annotation)
        before = known.get(each.annotation)
        if each.event is None:
            problems.append(each.problem)
        elif before is None or not says_the_same(before.event_id, each.event.event_id):
            if before is None and each.event.deleted and not each.gold:
                continue  # skipped, and never known
            events.append(each.event)
            gold |= each.gold
    events += _deletions(known, seen, state.still_exists)
    summary = ""
    if problems:
        annotations = counted(len(problems), "annotation")
        summary = f"{annotations} could not be read, the first because: {problems[0]}"
    return Polled(events, gold, summary)


def _checked(found: PolledAnnotation, kind: ProjectKind) -> PolledAnnotation:
    """Return an annotation, without its event if that cannot be stored."""
    try:
        if found.event is not None:
            check_event(found.event, kind)
            check_gold(found.gold)
    except InputError as error:
        return PolledAnnotation(found.annotation, None, problem=str(error))
    return found


def _deletions(
    known: Mapping[str, AnnotationState], seen: set[str], still_exists: Callable[[str], bool]
) -> list[LabelEvent]:
    gone = [name for name, state in known.items() if not state.deleted and name not in seen]
    return [
        # The id has the state that ends: a frame whose tag came back can lose it once more.
        LabelEvent(
            annotation=name,
            event_id=event_id(name, "deleted", known[name].event_id),
            deleted=True,
        )
        for name in gone[:_MAX_DELETIONS]
        if not still_exists(name)
    ]
