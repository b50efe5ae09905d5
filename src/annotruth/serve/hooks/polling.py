"""Polling: what a platform says now, compared with what is known of it.

It finds the annotations that webhooks have lost: missing, changed and deleted ones. Labels have the
ids that the webhooks' events would have had, so that nothing counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from annotruth.errors import InputError, counted
from annotruth.io.formats.label_studio import annotations_of
from annotruth.serve.hooks.label_studio import annotation_event, known_truth
from annotruth.serve.hooks.message import Fields, HookProject, event_id, says_the_same
from annotruth.serve.store.annotations import AnnotationState
from annotruth.serve.store.checks import check_event
from annotruth.serve.store.content import check_gold
from annotruth.serve.store.records import LabelEvent, ProjectKind

_MAX_DELETIONS = 1_000  # that are looked up one by one in a poll; more are found by the next ones


class PolledAnnotation(NamedTuple):
    """An annotation as a platform has it now: its event, and a known truth if it is one.

    ``event`` is None where it cannot be read; ``problem`` says why.

    Examples
    --------
    >>> PolledAnnotation("7", None, problem="the message has no label").problem
    'the message has no label'
    """

    annotation: str
    event: LabelEvent | None
    gold: Mapping[str, str] = {}
    problem: str = ""


class Polled(NamedTuple):
    """What polling found.

    Attributes
    ----------
    events
        The events that were missing here.
    gold
        Known truths among them, by item.
    n_missing, n_changed, n_deleted
        How many annotations were not known here, changed meanwhile, or deleted.
    problem
        What was wrong with annotations that could not be read; an empty text if all could.

    Examples
    --------
    >>> Polled([], {}, n_missing=2, n_changed=0, n_deleted=1, problem="").summary
    '2 missing, 0 changed, 1 deleted'
    """

    events: list[LabelEvent]
    gold: dict[str, str]
    n_missing: int
    n_changed: int
    n_deleted: int
    problem: str

    @property
    def summary(self) -> str:
        """The counts in words."""
        return f"{self.n_missing:,} missing, {self.n_changed:,} changed, {self.n_deleted:,} deleted"


class _Tasks(Protocol):
    """What is asked of Label Studio."""

    def tasks(self) -> Iterator[Fields]: ...

    def has_annotation(self, number: str) -> bool: ...


def poll_label_studio(
    client: _Tasks, project: HookProject, known: Mapping[str, AnnotationState]
) -> Polled:
    """Return what a project of Label Studio has that is not known here.

    ``known`` must have been read before: an annotation that arrives during the poll is then neither
    missing nor deleted. An annotation counts as deleted only if Label Studio says so when asked for
    it, because pages move while they are read.
    """
    found = _annotations(client.tasks(), project)
    return reconcile(found, known, client.has_annotation, project.kind)


def reconcile(
    found: Iterable[PolledAnnotation],
    known: Mapping[str, AnnotationState],
    still_exists: Callable[[str], bool],
    kind: ProjectKind,
) -> Polled:
    """Return the events that lead from what is known to what was found.

    An annotation that cannot be stored is left out as one that cannot be read is, so that the
    others are stored.
    """
    events: list[LabelEvent] = []
    gold: dict[str, str] = {}
    problems: list[str] = []
    seen: set[str] = set()
    n_missing = 0
    for each in (_checked(one, kind) for one in found):
        seen.add(each.annotation)
        state = known.get(each.annotation)
        if each.event is None:
            problems.append(each.problem)
        elif state is None or not says_the_same(state.event_id, each.event.event_id):
            if state is None and each.event.deleted and not each.gold:
                continue  # skipped, and never known
            n_missing += state is None
            events.append(each.event)
            gold |= each.gold
    n_given = len(events)
    events += _deletions(known, seen, still_exists)
    return Polled(
        events,
        gold,
        n_missing=n_missing,
        n_changed=n_given - n_missing,
        n_deleted=len(events) - n_given,
        problem=_problem(problems),
    )


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


def _problem(problems: list[str]) -> str:
    if not problems:
        return ""
    annotations = counted(len(problems), "annotation")
    return f"{annotations} could not be read, the first because: {problems[0]}"


def _annotations(tasks: Iterable[Fields], project: HookProject) -> Iterator[PolledAnnotation]:
    for task in tasks:
        for annotation in annotations_of(dict(task)):
            number = str(annotation.get("id"))
            try:
                event = annotation_event(task, annotation, project)
                gold = known_truth(task, annotation, project)
            except InputError as error:
                yield PolledAnnotation(number, None, problem=str(error))
            else:
                yield PolledAnnotation(number, event, gold)
