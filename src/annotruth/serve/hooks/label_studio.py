"""Label Studio: its webhooks, and its API as far as polling and predictions need it.

Label Studio signs nothing and sends nothing again. The secret is in a header of the webhook's
settings, and polling finds what was lost.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx2

from annotruth.errors import InputError, shown
from annotruth.io.formats.label_studio import (
    annotations_of,
    annotator_of,
    comparison_of,
    item_of,
    label_of,
)
from annotruth.serve.hooks.message import (
    API,
    Fields,
    HookEvents,
    HookMessage,
    HookProject,
    Platform,
    PlatformState,
    PolledAnnotation,
    event_id,
    object_of,
    outcome_of,
    start_of,
    state_id,
    text_of,
    time_of,
    verify_secret,
)
from annotruth.serve.outgoing import PlatformClient, PlatformError, token_auth
from annotruth.serve.store.tables import LabelEvent

_TITLE = "Label Studio"
_TASKS_AT_ONCE = 100
_REFRESH = "/api/token/refresh/"

SECRET_HEADER = "X-Annotruth-Secret"
"""The header of Label Studio's webhook that holds the secret."""
_GIVEN = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")


class AccessTokenAuth(httpx2.Auth):
    """Authentication by a personal access token.

    It is exchanged for an access token, which Label Studio accepts for some minutes; after a 401, for
    a new one.
    """

    requires_response_body = True

    def __init__(self, token: str, url: str) -> None:
        self._token = token
        self._url = url.rstrip("/")
        self._access = ""

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the access token to a request, and get a new one if there is none that is accepted."""
        for _ in range(2):
            if not self._access:
                content = {"refresh": self._token}
                answer = yield httpx2.Request("POST", self._url + _REFRESH, json=content)
                self._access = _access_token(answer)
            request.headers["Authorization"] = f"Bearer {self._access}"
            response = yield request
            if response.status_code != 401:
                return
            self._access = ""


def _access_token(answer: httpx2.Response) -> str:
    try:
        content = answer.json() if answer.status_code == 200 else None
    except ValueError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("access"), str):
        raise PlatformError(
            f"{_TITLE} refuses the personal access token ({answer.status_code}): give the "
            "connection a valid one"
        )
    return str(content["access"])


class LabelStudioProject(PlatformClient):
    """A project of Label Studio: ``url``, ``project`` (a number) and ``token`` of the settings.

    The token is a legacy token or a personal access token.
    """

    def __init__(self, settings: Fields, **options: Any) -> None:
        url, token = str(settings["url"]), str(settings["token"])
        is_personal = token.count(".") == 2  # a JSON web token
        auth = AccessTokenAuth(token, url) if is_personal else token_auth(f"Token {token}")
        self.number = int(settings["project"])
        super().__init__(_TITLE, url, auth, **options)

    def tasks(self) -> Iterator[dict[str, Any]]:
        """Return all tasks, with annotations and predictions, page by page in order of their ids.

        Tasks that are deleted meanwhile move the pages, so that a task may be missed.
        """
        page, n_read = 1, 0
        while True:
            asked = {"project": self.number, "page": page, "page_size": _TASKS_AT_ONCE}
            content = self.get("/api/tasks", **asked, fields="all")
            tasks = content.get("tasks") if isinstance(content, dict) else None
            if not isinstance(tasks, list) or not all(isinstance(each, dict) for each in tasks):
                raise PlatformError(f"{_TITLE} returned no list of tasks ({shown(content)})")
            yield from tasks
            n_read += len(tasks)
            if not tasks or n_read >= content.get("total", 0):
                return
            page += 1

    def project(self) -> dict[str, Any]:
        """Return the settings of the project."""
        content = self.get(f"/api/projects/{self.number}/")
        if not isinstance(content, dict):
            raise PlatformError(f"{_TITLE} returned no project ({shown(content)})")
        return content

    def add_predictions(self, predictions: Sequence[Fields]) -> int:
        """Add predictions, and return how many Label Studio took; it leaves out invalid ones."""
        path = f"/api/projects/{self.number}/import/predictions"
        content = self.post(path, list(predictions))
        created = content.get("created") if isinstance(content, dict) else None
        return created if isinstance(created, int) else len(predictions)


class _Answer(NamedTuple):
    """Who said what: the items, the annotator, and the label, empty for none."""

    item: str
    other_item: str
    annotator: str
    label: str


class LabelStudio(Platform):
    """Label Studio."""

    title, action = "Label Studio", "action"
    settings = ("question", "left", "right", *API, "predictions")
    actions = (*_GIVEN, "ANNOTATIONS_DELETED", "TASKS_DELETED")

    def verify(self, secret: str, message: HookMessage) -> None:
        """Refuse a message without the secret."""
        verify_secret(message.header(SECRET_HEADER), secret)

    def events(self, action: str, payload: Fields, project: HookProject) -> HookEvents:
        """Return what a message of Label Studio says.

        The deletion of a task names neither its annotations nor its item, so the project is polled.
        """
        if action in _GIVEN:
            found = [read_annotation(*each, project) for each in _pairs(payload)]
            gold = {item: label for each in found for item, label in each.gold.items()}
            return HookEvents([each.event for each in found if each.event], gold)
        if action == "ANNOTATIONS_DELETED":
            return HookEvents([_deletion(each) for each in _deleted(payload.get("annotations"))])
        return HookEvents([], needs_poll=True)

    @contextmanager
    def open(self, project: HookProject, **options: Any) -> Iterator[PlatformState]:
        """Return the annotations of a project of Label Studio.

        One that is not among them counts as deleted only if Label Studio says so when asked for it,
        because pages move while they are read.
        """
        with LabelStudioProject(project.settings, **options) as client:
            yield PlatformState(
                _annotations(client.tasks(), project),
                lambda annotation: client.exists(f"/api/annotations/{annotation}/"),
            )


def _deletion(annotation: Fields) -> LabelEvent:
    number = text_of(annotation.get("id"), "id of the annotation")
    return LabelEvent(annotation=number, event_id=event_id(number, "deleted"), deleted=True)


def read_annotation(task: Fields, annotation: Fields, project: HookProject) -> PolledAnnotation:
    """Return the event of an annotation's present state, whether a message or an export has it.

    The id depends on the state alone: found by polling after a message came, it is the same event.
    An annotation that was skipped, has no label, or became a known truth counts as deleted.
    """
    number = text_of(annotation.get("id"), "id of the annotation")
    submitted = time_of(annotation.get("updated_at") or annotation.get("created_at"))
    answer = _answer(task, annotation, project)
    is_skipped = annotation.get("was_cancelled") or annotation.get("skipped")
    is_gold = bool(annotation.get("ground_truth")) and project.kind == "labels"
    has_label = bool(answer.label) and not is_skipped
    is_vote = has_label and not is_gold
    event = LabelEvent(
        item=answer.item,
        annotator=answer.annotator,
        label=answer.label if is_vote else "",
        event_id=state_id(number, submitted, is_vote, *answer),
        annotation=number,
        other_item=answer.other_item,
        started=start_of(submitted, annotation.get("lead_time")),
        submitted=submitted,
        deleted=not is_vote,
    )
    gold = {answer.item: answer.label} if has_label and is_gold else {}
    return PolledAnnotation(str(annotation.get("id")), event, gold)


def _pairs(payload: Fields) -> Iterator[tuple[Fields, Fields]]:
    """Return the annotations of a message with their tasks; there may be several of both."""
    what = "id of the task"
    tasks = {text_of(task.get("id"), what): task for task in _several(payload.get("task"), "task")}
    for annotation in _several(payload.get("annotation"), "annotation"):
        task = tasks.get(text_of(annotation.get("task"), what))
        if task is None:
            raise InputError(
                "the message has no task of the annotation: switch on 'Send payload' in the "
                "settings of the webhook"
            )
        yield task, annotation


def _several(value: Any, what: str) -> Iterable[dict[str, Any]]:
    values = value if isinstance(value, list) else [value]
    return [object_of(one, what) for one in values]


def _deleted(annotations: Any) -> Iterable[dict[str, Any]]:
    if not isinstance(annotations, list):
        raise InputError("the message has no list of annotations that were deleted")
    return _several(annotations, "annotation")


def _answer(task: Fields, annotation: Fields, project: HookProject) -> _Answer:
    task, annotation = dict(task), dict(annotation)
    annotator = text_of(annotator_of(annotation.get("completed_by")), "annotator (completed_by)")
    if project.kind == "comparisons":
        one, other, winner = comparison_of(task, annotation, project.question, project.sides)
        left, right = text_of(one, "left item"), text_of(other, "right item")
        outcome = "" if winner is None else outcome_of(winner, left, right)
        return _Answer(left, right, annotator, outcome)
    item, label = text_of(item_of(task), "item"), label_of(annotation, project.question)
    return _Answer(item, "", annotator, "" if label is None else text_of(label, "label"))


def _annotations(tasks: Iterable[Fields], project: HookProject) -> Iterator[PolledAnnotation]:
    for task in tasks:
        for annotation in annotations_of(dict(task)):
            try:
                yield read_annotation(task, annotation, project)
            except InputError as error:
                yield PolledAnnotation(str(annotation.get("id")), None, problem=str(error))
