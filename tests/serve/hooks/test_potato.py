"""Potato's webhooks, as version 2.12.1 sent them, with their signatures."""

import json
from datetime import UTC, datetime

import pytest

from annotruth.errors import InputError
from annotruth.serve.hooks.message import HookMessage, HookProject, SignatureError
from annotruth.serve.hooks.text_tools import Potato

SENTIMENT = HookProject("labels", {"question": "sentiment"})
SECRET = "potato-secret"


@pytest.fixture
def message(payload):
    """A function that returns what a recorded message says."""

    def say(name, project=SENTIMENT):
        return Potato().read(json.loads(payload("potato", name)["body"]), project)

    return say


def test_an_annotation_and_its_edit(message):
    (event,) = message("annotation_created").events
    assert (event.item, event.annotator, event.label) == ("i1", "ann", "Positive")
    assert event.submitted == datetime(2026, 11, 16, 13, 46, 18, 235227, tzinfo=UTC)
    (edit,) = message("annotation_updated").events
    assert (edit.item, edit.annotator, edit.label) == ("i1", "ann", "Negative")
    assert edit.event_id != event.event_id
    assert edit.annotation is event.annotation is None  # that of the user on the instance


def test_the_option_is_in_the_name(message):
    assert message("annotation_created_ticked").events[0].label == "Negative"


def test_several_options_are_one_category(message):
    topics = HookProject("labels", {"question": "topics"})
    assert message("annotation_created", topics).events[0].label == "music + story"


def test_a_question_without_an_answer(message):
    (event,) = message("annotation_updated", HookProject("labels", {"question": "topics"})).events
    assert event.deleted


def test_the_only_question(message):
    assert message("annotation_updated", HookProject("labels", {})).events[0].label == "Negative"
    with pytest.raises(InputError, match="several questions, sentiment, topics"):
        message("annotation_created", HookProject("labels", {}))


@pytest.mark.parametrize(
    ("annotations", "label"),
    [
        ({"scale": "4", "scale:::4": "4"}, "4"),
        ({"scale": 0.25}, "0.25"),
        ({"a:b": "x:y", "a:b:::x:y": "x:y"}, "x:y"),
        ({"topic": "true", "topic:::a": "true", "topic:::b": "false", "topic:::c": None}, "a"),
        ({}, ""),
        ({"topic:::a": "false"}, ""),
    ],
)
def test_kinds_of_questions(annotations, label):
    question = {"a:b": "a:b"}.get(next(iter(annotations), ""))
    project = HookProject("labels", {} if question is None else {"question": question})
    data = {"user_id": "ann", "instance_id": 7, "annotations": annotations}
    content = {"event": "annotation.created", "timestamp": "2026-01-01T00:00:00Z", "data": data}
    (event,) = Potato().read(content, project).events
    assert (event.item, event.label, event.deleted) == ("7", label, not label)


@pytest.mark.parametrize("name", ["task_completed", "user_phase_completed"])
def test_other_messages_are_unknown(message, name):
    assert not message(name).is_known


@pytest.mark.parametrize(
    "content",
    [
        7,
        {},
        {"event": 1},
        {"event": "annotation.created"},
        {"event": "annotation.created", "data": {}},
        {"event": "annotation.created", "data": {"user_id": "a", "instance_id": "b"}},
        {
            "event": "annotation.created",
            "data": {"user_id": ["a"], "instance_id": "b", "annotations": {"q": "1"}},
        },
        {
            "event": "annotation.created",
            "data": {"user_id": "a", "instance_id": "b", "annotations": {"sentiment": {"x": 1}}},
        },
    ],
)
def test_malformed_messages(content):
    with pytest.raises(InputError):
        Potato().read(content, SENTIMENT)


@pytest.mark.parametrize("name", ["annotation_created", "annotation_updated", "task_completed"])
def test_recorded_signatures(payload, name):
    recorded = payload("potato", name)
    time = datetime.fromtimestamp(int(recorded["headers"]["webhook-timestamp"]), UTC)
    body = recorded["body"].encode()
    Potato().verify(SECRET, HookMessage(recorded["headers"], body, time))
    with pytest.raises(SignatureError, match="wrong or missing"):
        Potato().verify("another", HookMessage(recorded["headers"], body, time))
    with pytest.raises(SignatureError, match="wrong or missing"):
        Potato().verify(SECRET, HookMessage(recorded["headers"], body + b" ", time))
    with pytest.raises(SignatureError, match="differs by more than"):
        Potato().verify(SECRET, HookMessage(recorded["headers"], body, time.replace(year=2027)))
