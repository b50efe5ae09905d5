"""Label Studio's webhooks, as version 1.23.2 sent them."""

import copy
from datetime import UTC, datetime, timedelta

import pytest

from annotruth.errors import InputError
from annotruth.serve.hooks.label_studio import LabelStudio
from annotruth.serve.hooks.message import HookMessage, HookProject, SignatureError

LABELS = HookProject("labels", {})


@pytest.fixture
def message(payload):
    """A function that returns what a recorded message says."""

    def say(name, project=LABELS):
        return LabelStudio().read(payload("label_studio", name), project)

    return say


def test_an_annotation(message):
    (event,) = message("annotation_created").events
    submitted = datetime(2026, 11, 16, 13, 24, 29, 753725, tzinfo=UTC)
    assert (event.item, event.annotator, event.label) == ("1", "1", "Positive")
    assert (event.annotation, event.deleted) == ("1", False)
    assert event.submitted == submitted
    assert event.started == submitted - timedelta(seconds=3.25)


def test_an_edit_is_another_event_of_the_same_annotation(message):
    (first,) = message("annotation_created").events
    (edit,) = message("annotation_updated").events
    assert edit.label == "Negative"
    assert edit.annotation == first.annotation
    assert edit.submitted > first.submitted
    assert edit.event_id != first.event_id


def test_ground_truth_is_no_vote_but_a_known_truth(message):
    said = message("annotation_ground_truth")
    assert said.gold == {"item-7": "Positive"}
    assert [(event.annotation, event.deleted) for event in said.events] == [("3", True)]


def test_several_annotations_in_one_message(message):
    events = message("annotations_created").events
    assert [(event.item, event.label) for event in events] == [
        ("1", "Positive"),
        ("item-7", "Positive"),
    ]


@pytest.mark.parametrize(
    ("name", "question", "said"),
    [
        ("annotation_created_for_item", None, {"item": "item-7", "deleted": False}),
        ("annotations_deleted", None, {"annotation": "2", "deleted": True, "submitted": None}),
        ("annotation_skipped", None, {"annotation": "4", "deleted": True}),
        ("rating", None, {"label": "4"}),
        ("rating", "why", {"deleted": True}),
        ("taxonomy", "tax", {"label": "A / B + C"}),
        ("taxonomy", "tone", {"label": "x"}),
    ],
)
def test_what_messages_say(message, name, question, said):
    project = HookProject("labels", {} if question is None else {"question": question})
    (event,) = message(name, project).events
    assert {key: getattr(event, key) for key in said} == said
    assert message(name, project).events == [event]  # the same message again is the same event


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("taxonomy", r"several questions, tax, tone: choose one"),
        ("boxes", r"regions of 'box' .* are not classes"),
    ],
)
def test_what_is_no_label_is_refused(message, name, problem):
    with pytest.raises(InputError, match=problem):
        message(name)


@pytest.mark.parametrize(
    "settings", [{}, {"left": "text1", "right": "text2", "question": "better"}]
)
def test_a_comparison(message, settings):
    (event,) = message("pairwise", HookProject("comparisons", settings)).events
    assert (event.item, event.other_item) == ("first answer", "second answer")
    assert (event.label, event.annotation) == ("left", "6")


def test_sides_of_a_comparison_may_be_swapped(message):
    swapped = HookProject("comparisons", {"left": "text2", "right": "text1"})
    (event,) = message("pairwise", swapped).events
    assert (event.item, event.other_item) == ("second answer", "first answer")


@pytest.mark.parametrize("name", ["tasks_deleted", "tasks_created", "project_updated"])
def test_other_messages_have_no_events(message, name):
    said = message(name)
    assert not said.events
    assert said.needs_poll == said.is_known == (name == "tasks_deleted")


BAD = {
    "not an object": lambda _: [],
    "no action": lambda content: content.pop("action"),
    "an action that is no text": lambda content: content.update(action=[1]),
    "no annotation": lambda content: content.pop("annotation"),
    "an annotation that is none": lambda content: content.update(annotation="x"),
    "no task": lambda content: content.pop("task"),
    "another task": lambda content: content["annotation"].update(task=99),
    "a task number that is none": lambda content: content["annotation"].update(task=[1]),
    "no id": lambda content: content["annotation"].pop("id"),
    "an id that is none": lambda content: content["annotation"].update(id={"a": 1}),
    "no annotator": lambda content: content["annotation"].pop("completed_by"),
    "a nested annotator": lambda content: content["annotation"].update(completed_by={}),
    "a result that is none": lambda content: content["annotation"].update(result="x"),
    "a nested label": lambda content: content["annotation"]["result"][0].update(
        value={"choices": [{"a": 1}]}
    ),
    "a time that is none": lambda content: content["annotation"].update(updated_at="yesterday"),
    "a time of another type": lambda content: content["annotation"].update(updated_at=17),
    "a time out of range": lambda content: content["annotation"].update(
        updated_at="0001-01-01T00:00:00+14:00"
    ),
    "a huge number as id": lambda content: content["annotation"].update(id=10**5000),
    "an infinite label": lambda content: content["annotation"]["result"][0].update(
        type="number", value={"number": float("inf")}
    ),
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
def test_malformed_messages(payload, change):
    content = copy.deepcopy(payload("label_studio", "annotation_created"))
    changed = change(content)
    with pytest.raises(InputError) as caught:
        LabelStudio().read(
            changed if isinstance(changed, list) and not changed else content, LABELS
        )
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("seconds", [None, "7", -1, True, 1e300, float("nan")])
def test_odd_times_of_work_are_left_out(payload, seconds):
    content = copy.deepcopy(payload("label_studio", "annotation_created"))
    content["annotation"]["lead_time"] = seconds
    (event,) = LabelStudio().read(content, LABELS).events
    assert event.started is None


def test_the_secret_is_in_a_header(received):
    LabelStudio().verify("s3cret", HookMessage({"x-annotruth-secret": "s3cret"}, b"", received))
    for headers in ({}, {"x-annotruth-secret": "S3cret"}, {"authorization": "s3cret"}):
        with pytest.raises(SignatureError):
            LabelStudio().verify("s3cret", HookMessage(headers, b"", received))
