"""Webhooks of Argilla, in the shapes of its server 2.8, and of Potato, as version 2.12.1 sent them."""

import copy
import json
from datetime import UTC, datetime, timedelta

import pytest

from annotruth.errors import InputError
from annotruth.serve.hooks.message import HookMessage, HookProject, SignatureError, new_secret, sign
from annotruth.serve.hooks.text_tools import Argilla, Potato

LABELS = HookProject("labels", {})
SENTIMENT = HookProject("labels", {"question": "sentiment"})
SECRET = "potato-secret"


@pytest.fixture
def argilla(payload):
    """A function that returns what a message of Argilla says, with changes of its content."""

    def say(name, project=LABELS, change=lambda content: None):
        content = copy.deepcopy(payload("argilla", name))
        change(content)
        return Argilla().read(content, project)

    return say


@pytest.fixture
def potato(payload):
    """A function that returns what a recorded message of Potato says."""

    def say(name, project=SENTIMENT):
        return Potato().read(json.loads(payload("potato", name)["body"]), project)

    return say


def test_a_response(argilla):
    (event,) = argilla("response_created").events
    assert (event.item, event.label) == ("review-17", "positive")
    assert event.annotator.endswith("b06")
    assert event.annotation.endswith("b07")
    assert event.submitted == datetime(2026, 3, 1, 11, 59, 0, 488053, tzinfo=UTC)


def test_an_edit_a_discard_and_a_deletion_concern_the_same_annotation(argilla):
    names = ("response_created", "response_updated", "response_discarded", "response_deleted")
    events = [argilla(name).events[0] for name in names]
    assert len({event.annotation for event in events}) == 1
    assert len({event.event_id for event in events}) == 4
    assert [event.label for event in events] == ["positive", "negative", "", ""]
    assert [event.deleted for event in events] == [False, False, True, True]
    assert [event.submitted for event in events] == sorted(event.submitted for event in events)


def test_older_servers_send_the_id_of_what_was_deleted(argilla):
    assert argilla("response_deleted_id_only") == argilla("response_deleted")


def test_an_item_may_have_no_id_of_its_own(argilla, payload):
    def change(content):
        content["data"]["record"]["external_id"] = None
        content["data"]["values"]["sentiment"]["value"] = ["b", "a"]

    (event,) = argilla("response_created", change=change).events
    assert event.item == payload("argilla", "response_created")["data"]["record"]["id"]
    assert event.label == "a + b"  # several labels are one category


def test_other_datasets_are_left_out(argilla, payload):
    dataset = payload("argilla", "response_created")["data"]["record"]["dataset"]
    for wanted in (dataset["id"], dataset["name"]):
        assert argilla("response_created", HookProject("labels", {"dataset": wanted})).events
    other = argilla("response_created", HookProject("labels", {"dataset": "another"}))
    assert not other.is_known
    assert not other.events


def test_questions(argilla):
    def change(content):
        content["data"]["values"]["topic"] = {"value": "story"}

    with pytest.raises(InputError, match="several questions, sentiment, topic"):
        argilla("response_created", change=change)
    topic = HookProject("labels", {"question": "topic"})
    assert argilla("response_created", topic, change).events[0].label == "story"


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("type"),
        lambda content: content.pop("data"),
        lambda content: content.update(data=[]),
        lambda content: content["data"].pop("id"),
        lambda content: content["data"].pop("record"),
        lambda content: content["data"].pop("user"),
        lambda content: content["data"].update(values="x"),
        lambda content: content["data"]["values"].update(sentiment={"value": [{"start": 1}]}),
        lambda content: content["data"].update(updated_at="soon"),
        lambda content: content.update(timestamp="soon"),
    ],
)
def test_malformed_messages_of_argilla(argilla, change):
    with pytest.raises(InputError):
        argilla("response_created", change=change)


def test_comparisons_are_refused(argilla):
    with pytest.raises(InputError, match="use a project of labels"):
        argilla("response_created", HookProject("comparisons", {}))


def test_signatures_and_replays(payload, received):
    secret, body = new_secret(), json.dumps(payload("argilla", "response_created")).encode()
    headers = sign(secret, "msg_1", received, body)
    Argilla().verify(secret, HookMessage(headers, body, received))
    with pytest.raises(SignatureError, match="differs by more than"):
        Argilla().verify(secret, HookMessage(headers, body, received + timedelta(minutes=6)))
    with pytest.raises(SignatureError, match="wrong or missing"):
        Argilla().verify(new_secret(), HookMessage(headers, body, received))


def test_an_annotation_and_its_edit(potato):
    (event,) = potato("annotation_created").events
    assert (event.item, event.annotator, event.label) == ("i1", "ann", "Positive")
    assert event.submitted == datetime(2026, 11, 16, 13, 46, 18, 235227, tzinfo=UTC)
    (edit,) = potato("annotation_updated").events
    assert (edit.item, edit.annotator, edit.label) == ("i1", "ann", "Negative")
    assert edit.event_id != event.event_id
    assert edit.annotation is event.annotation is None  # that of the user on the instance


def test_the_option_is_in_the_name(potato):
    assert potato("annotation_created_ticked").events[0].label == "Negative"


def test_several_options_are_one_category(potato):
    topics = HookProject("labels", {"question": "topics"})
    assert potato("annotation_created", topics).events[0].label == "music + story"


def test_a_question_without_an_answer(potato):
    (event,) = potato("annotation_updated", HookProject("labels", {"question": "topics"})).events
    assert event.deleted


def test_the_only_question(potato):
    assert potato("annotation_updated", HookProject("labels", {})).events[0].label == "Negative"
    with pytest.raises(InputError, match="several questions, sentiment, topics"):
        potato("annotation_created", HookProject("labels", {}))


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


def test_other_messages_are_unknown(argilla, potato):
    assert not argilla("record_completed").is_known
    for name in ("task_completed", "user_phase_completed"):
        assert not potato(name).is_known


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
def test_malformed_messages_of_potato(content):
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
