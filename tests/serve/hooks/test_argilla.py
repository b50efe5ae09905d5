"""Argilla's webhooks, in the shapes of its server 2.8."""

import copy
import json
from datetime import UTC, datetime, timedelta

import pytest

from annotruth.errors import InputError
from annotruth.serve.hooks.message import HookMessage, HookProject, SignatureError, new_secret, sign
from annotruth.serve.hooks.text_tools import Argilla

LABELS = HookProject("labels", {})


@pytest.fixture
def message(payload):
    """A function that returns what a message says."""

    def say(name, project=LABELS):
        return Argilla().read(payload("argilla", name), project)

    return say


def test_a_response(message):
    (event,) = message("response_created").events
    assert (event.item, event.label) == ("review-17", "positive")
    assert event.annotator.endswith("b06")
    assert event.annotation.endswith("b07")
    assert event.submitted == datetime(2026, 3, 1, 11, 59, 0, 488053, tzinfo=UTC)


def test_an_edit_a_discard_and_a_deletion_concern_the_same_annotation(message):
    names = ("response_created", "response_updated", "response_discarded", "response_deleted")
    events = [message(name).events[0] for name in names]
    assert len({event.annotation for event in events}) == 1
    assert len({event.event_id for event in events}) == 4
    assert [event.label for event in events] == ["positive", "negative", "", ""]
    assert [event.deleted for event in events] == [False, False, True, True]
    assert [event.submitted for event in events] == sorted(event.submitted for event in events)


def test_older_servers_send_the_id_of_what_was_deleted(message):
    assert message("response_deleted_id_only") == message("response_deleted")


def test_without_an_id_of_its_own(payload):
    content = copy.deepcopy(payload("argilla", "response_created"))
    content["data"]["record"]["external_id"] = None
    (event,) = Argilla().read(content, LABELS).events
    assert event.item == content["data"]["record"]["id"]


def test_several_labels_are_one_category(payload):
    content = copy.deepcopy(payload("argilla", "response_created"))
    content["data"]["values"]["sentiment"]["value"] = ["b", "a"]
    assert Argilla().read(content, LABELS).events[0].label == "a + b"


def test_other_datasets_are_left_out(message, payload):
    dataset = payload("argilla", "response_created")["data"]["record"]["dataset"]
    for wanted in (dataset["id"], dataset["name"]):
        assert message("response_created", HookProject("labels", {"dataset": wanted})).events
    other = message("response_created", HookProject("labels", {"dataset": "another"}))
    assert not other.is_known
    assert not other.events


def test_records_and_datasets_are_unknown(message):
    assert not message("record_completed").is_known


def test_questions(payload):
    content = copy.deepcopy(payload("argilla", "response_created"))
    content["data"]["values"]["topic"] = {"value": "story"}
    with pytest.raises(InputError, match="several questions, sentiment, topic"):
        Argilla().read(content, LABELS)
    topic = HookProject("labels", {"question": "topic"})
    assert Argilla().read(content, topic).events[0].label == "story"


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
def test_malformed_messages(payload, change):
    content = copy.deepcopy(payload("argilla", "response_created"))
    change(content)
    with pytest.raises(InputError):
        Argilla().read(content, LABELS)


def test_comparisons_are_refused(message):
    with pytest.raises(InputError, match="use a project of labels"):
        message("response_created", HookProject("comparisons", {}))


def test_signatures_and_replays(payload, received):
    secret, body = new_secret(), json.dumps(payload("argilla", "response_created")).encode()
    headers = sign(secret, "msg_1", received, body)
    Argilla().verify(secret, HookMessage(headers, body, received))
    with pytest.raises(SignatureError, match="differs by more than"):
        Argilla().verify(secret, HookMessage(headers, body, received + timedelta(minutes=6)))
    with pytest.raises(SignatureError, match="wrong or missing"):
        Argilla().verify(new_secret(), HookMessage(headers, body, received))
