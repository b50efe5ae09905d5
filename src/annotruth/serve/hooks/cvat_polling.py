"""Labels of CVAT: the tags of frames, in jobs that are completed.

A job is one person's work. Several people label the same frames in the replicas of a consensus job,
or in tasks with the same files. The job that a consensus is merged into, and jobs that are not
completed, are left out; tags in a ground-truth job are known truths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from annotruth.errors import InputError
from annotruth.io.formats.votes import category_of
from annotruth.serve.hooks.message import Fields, object_of, state_id, text_of, time_of
from annotruth.serve.hooks.polling import Polled, PolledAnnotation, reconcile
from annotruth.serve.store.annotations import AnnotationState
from annotruth.serve.store.records import LabelEvent

_COMPLETED = "completed"
_GROUND_TRUTH = "ground_truth"


class _Jobs(Protocol):
    """What is asked of CVAT."""

    def jobs(self) -> Iterator[Fields]: ...

    def labels(self) -> Mapping[int, str]: ...

    def tags(self, job: int) -> list[dict[str, Any]]: ...

    def frames(self, job: int) -> Fields: ...

    def has_job(self, job: str) -> bool: ...


def poll_cvat(client: _Jobs, known: Mapping[str, AnnotationState]) -> Polled:
    """Return what a project of CVAT has that is not known here.

    A frame that has no tag any more, in a job that was read, counts as deleted, and so do those of
    jobs that do not exist any more.
    """
    jobs = list(client.jobs())
    merged = {job.get("parent_job_id") for job in jobs}
    read = [job for job in jobs if job.get("state") == _COMPLETED and job.get("id") not in merged]
    read_ids = {str(job.get("id")) for job in read}

    def still_exists(annotation: str) -> bool:
        job = annotation.partition(":")[0]
        return job not in read_ids and client.has_job(job)

    labels = client.labels()
    found = (each for job in read for each in _annotations(client, job, labels))
    return reconcile(found, known, still_exists, "labels")


def _annotations(
    client: _Jobs, job: Fields, labels: Mapping[int, str]
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
