"""CVAT: webhooks say which job changed, and the labels are read by polling: tags of frames.

Webhooks are signed by HMAC-SHA256 (``X-Signature-256``), without a time. A job is one person's work.
Several people label the same frames in the replicas of a consensus job, or in tasks with the same
files. The job that a consensus is merged into, and jobs that are not completed, are left out; tags in
a ground-truth job are known truths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from annotruth.errors import InputError, shown
from annotruth.io.formats.votes import category_of
from annotruth.serve.hooks.message import (
    API,
    Fields,
    HookEvents,
    HookMessage,
    HookProject,
    Platform,
    PlatformState,
    PolledAnnotation,
    object_of,
    state_id,
    text_of,
    time_of,
    verify_hex,
)
from annotruth.serve.outgoing import PlatformClient, PlatformError, token_auth
from annotruth.serve.store.tables import LabelEvent

SIGNATURE_HEADER = "X-Signature-256"
"""The header that holds the signature."""
_AT_ONCE = 100
_LEGACY_TOKEN = re.compile("[0-9a-f]{40}")
_COMPLETED = "completed"
_GROUND_TRUTH = "ground_truth"


class Cvat(Platform):
    """CVAT."""

    title, settings, only_labels = "CVAT", API, "tags"
    actions = ("create:job", "update:job", "delete:job", "update:task", "delete:task")

    def verify(self, secret: str, message: HookMessage) -> None:
        """Refuse a message with a wrong signature."""
        verify_hex(secret, message.header(SIGNATURE_HEADER), message.body)

    def events(self, action: str, payload: Fields, project: HookProject) -> HookEvents:
        """Return that the project must be polled, since a job or task changed."""
        return HookEvents([], needs_poll=True)

    @contextmanager
    def open(self, project: HookProject, **options: Any) -> Iterator[PlatformState]:
        """Return the tags of a project of CVAT.

        A frame that has no tag any more, in a job that was read, counts as deleted, and so do those
        of jobs that do not exist any more.
        """
        self.refuse_comparisons(project)
        with CvatProject(project.settings, **options) as client:
            jobs = list(client.jobs())
            merged = {job.get("parent_job_id") for job in jobs}
            read = [j for j in jobs if j.get("state") == _COMPLETED and j.get("id") not in merged]
            read_ids = {str(job.get("id")) for job in read}

            def still_exists(annotation: str) -> bool:
                job = annotation.partition(":")[0]
                return job not in read_ids and client.exists(f"/api/jobs/{job}")

            labels = client.labels()
            found = (each for job in read for each in _annotations(client, job, labels))
            yield PlatformState(found, still_exists)


class CvatProject(PlatformClient):
    """A project of CVAT: ``url``, ``project`` (a number) and ``token`` of a connection's settings.

    The token is a personal access token or an API key.
    """

    def __init__(self, settings: Fields, **options: Any) -> None:
        token = str(settings["token"])
        scheme = "Token" if _LEGACY_TOKEN.fullmatch(token) else "Bearer"
        auth = token_auth(f"{scheme} {token}")
        self._number = int(settings["project"])
        super().__init__("CVAT", str(settings["url"]), auth, **options)

    def jobs(self) -> Iterator[dict[str, Any]]:
        """Return all jobs."""
        return self._pages("/api/jobs", project_id=self._number, sort="id")

    def labels(self) -> dict[int, str]:
        """Return the names of the project's labels by their ids."""
        pages = self._pages("/api/labels", project_id=self._number)
        return {each["id"]: str(each["name"]) for each in pages if "id" in each and "name" in each}

    def tags(self, job: int) -> list[dict[str, Any]]:
        """Return the tags of a job's frames."""
        content = self.get(f"/api/jobs/{job}/annotations")
        return _list(content.get("tags") if isinstance(content, dict) else None)

    def frames(self, job: int) -> dict[str, Any]:
        """Return what the frames of a job are."""
        content = self.get(f"/api/jobs/{job}/data/meta")
        return content if isinstance(content, dict) else {}

    def _pages(self, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        page = 1
        while True:
            content = self.get(path, page=page, page_size=_AT_ONCE, **parameters)
            if not isinstance(content, dict):
                raise PlatformError(f"CVAT returned no list ({shown(content)})")
            yield from _list(content.get("results"))
            if not content.get("next"):
                return
            page += 1


def _list(values: Any) -> list[dict[str, Any]]:
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise PlatformError(f"CVAT returned no list ({shown(values)})")
    return values


def _annotations(
    client: CvatProject, job: Fields, labels: Mapping[int, str]
) -> Iterator[PolledAnnotation]:
    """Return one annotation per frame with tags; several tags are one category."""
    tags: dict[int, list[str | None]] = {}
    for tag in client.tags(job["id"]):
        tags.setdefault(tag["frame"], []).append(labels.get(tag["label_id"]))
    if not tags:
        return
    meta = client.frames(job["id"])
    for frame, names in tags.items():
        annotation = f"{job['id']}:{frame}"
        try:
            yield _annotation(job, annotation, item_of_frame(job, meta, frame), names)
        except InputError as error:
            yield PolledAnnotation(annotation, None, problem=str(error))


def _annotation(
    job: Fields, annotation: str, item: str, names: list[str | None]
) -> PolledAnnotation:
    label = text_of(category_of(names), "label")
    submitted = time_of(job.get("updated_date"))
    is_gold = job.get("type") == _GROUND_TRUTH
    annotator = "" if is_gold else _annotator(job)
    event = LabelEvent(
        item=item,
        annotator=annotator,
        label="" if is_gold else label,
        event_id=state_id(annotation, submitted, is_gold, item, annotator, label),
        annotation=annotation,
        submitted=submitted,
        deleted=is_gold,
    )
    return PolledAnnotation(annotation, event, {item: label} if is_gold else {})


def _annotator(job: Fields) -> str:
    if job.get("assignee") is None:
        raise InputError(f"job {job['id']} has no assignee: assign it to the person who did it")
    return text_of(object_of(job["assignee"], "assignee").get("username"), "username")


def item_of_frame(job: Fields, meta: Fields, frame: int) -> str:
    """Return the item of a frame: its file, for a video with its number."""
    files = meta.get("frames")
    if not isinstance(files, list) or not files:
        return f"{job.get('task_id')}#{frame}"
    numbers = meta.get("included_frames")
    if not isinstance(numbers, list):
        numbers = list(range(job["start_frame"], job["stop_frame"] + 1))
    if len(files) == 1 and len(numbers) > 1:
        return f"{_name(files[0])}#{frame}"
    if len(files) != len(numbers) or frame not in numbers:
        raise InputError(f"frame {frame} of job {job['id']} is none of its files")
    return _name(files[numbers.index(frame)])


def _name(file: Any) -> str:
    return text_of(object_of(file, "file").get("name"), "name of the file")
