"""What polling finds, and the predictions that are written back."""

from datetime import UTC, datetime

import httpx2
import pytest
from tests.serve.hooks.label_studio_twin import LEGACY, PERSONAL, SETTINGS, LabelStudioTwin, choice

import annotruth as at
from annotruth.errors import InputError
from annotruth.serve.hooks.label_studio import LabelStudio, LabelStudioProject
from annotruth.serve.hooks.message import HookProject
from annotruth.serve.hooks.polling import MODEL_VERSION, find_control, reconcile, write_back
from annotruth.serve.outgoing import PlatformError, checked_url
from annotruth.serve.store.events import AnnotationState, annotation_states, append_events
from annotruth.serve.store.tables import LabelEvent

LABELS = HookProject("labels", {})
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def twin():
    return LabelStudioTwin()


def poll(twin, known=(), **settings):
    project = HookProject("labels", {**SETTINGS, **settings})
    options = {"transport": twin.transport(), "sleep": lambda _: None}
    with LabelStudio().open(project, **options) as state:
        return reconcile(state, dict(known), "labels")


def by_webhook(twin, annotation, action="ANNOTATION_CREATED"):
    return LabelStudio().read(twin.webhook(action, annotation), LABELS).events


def states(events):
    return {event.annotation: AnnotationState(event.event_id, event.deleted) for event in events}


def test_a_lost_webhook_is_found(twin):
    came = twin.annotate(1, "Positive")
    twin.annotate(1, "Negative", annotator=2)
    polled = poll(twin, states(by_webhook(twin, came)))
    assert [(event.item, event.annotator, event.label) for event in polled.events] == [
        ("1", "2", "Negative")
    ]


def test_what_a_webhook_brings_later_is_the_same_event(twin):
    annotation = twin.annotate(1, "Positive")
    assert poll(twin).events == by_webhook(twin, annotation)


def test_a_lost_edit_is_found(twin):
    annotation = twin.annotate(1, "Positive")
    known = states(by_webhook(twin, annotation))
    annotation["result"][0]["value"]["choices"] = ["Negative"]
    annotation["updated_at"] = "2026-03-01T11:30:00Z"
    polled = poll(twin, known)
    assert [event.label for event in polled.events] == ["Negative"]


def test_a_lost_deletion_is_found_once(twin):
    twin.annotate(1, "Positive")
    known = states(poll(twin).events)
    twin.tasks[1]["annotations"].clear()
    polled = poll(twin, known)
    assert [(event.annotation, event.deleted) for event in polled.events] == [("1", True)]
    assert poll(twin, known | states(polled.events)).events == []


def test_a_deleted_task_takes_its_annotations_with_it(twin):
    twin.annotate(2, "Positive")
    known = states(poll(twin).events)
    del twin.tasks[2]
    assert [event.annotation for event in poll(twin, known).events] == ["1"]


def test_pages_that_move_delete_nothing(monkeypatch):
    monkeypatch.setattr("annotruth.serve.hooks.label_studio._TASKS_AT_ONCE", 2)
    twin = LabelStudioTwin(5)
    for task in twin.tasks:
        twin.annotate(task, "Positive")
    known = states(poll(twin).events)
    twin.after_page = lambda _: twin.tasks.pop(1, None)  # task 3 moves to the page that was read
    assert poll(twin, known).events == []
    assert ("GET", "/api/annotations/3/", None) in twin.requests
    twin.after_page = None
    assert [event.annotation for event in poll(twin, known).events] == ["1"]


def test_skipped_tasks_that_were_never_known_are_no_events(twin):
    twin.annotate(1, "Positive", was_cancelled=True)
    assert poll(twin).events == []


def test_a_vote_that_was_skipped_later_is_gone(twin):
    annotation = twin.annotate(1, "Positive")
    known = states(poll(twin).events)
    annotation.update(was_cancelled=True, updated_at="2026-03-01T11:30:00Z")
    assert [(event.annotation, event.deleted) for event in poll(twin, known).events] == [
        ("1", True)
    ]


def test_known_truths_are_found(twin):
    twin.annotate(1, "Positive", ground_truth=True)
    polled = poll(twin)
    assert polled.gold == {"1": "Positive"}
    assert poll(twin, states(polled.events)).gold == {}


def test_unreadable_annotations_are_reported_and_not_deleted(twin):
    annotation = twin.annotate(1, "Positive")
    twin.annotate(2, "Negative")
    known = states(poll(twin).events)
    annotation["completed_by"] = None
    polled = poll(twin, known)
    assert polled.events == []
    assert polled.problem.startswith("1 annotation could not be read, the first because: ")
    assert "annotator" in polled.problem


def test_all_pages_are_read(monkeypatch):
    monkeypatch.setattr("annotruth.serve.hooks.label_studio._TASKS_AT_ONCE", 2)
    for n_tasks in (0, 1, 2, 4, 5):
        twin = LabelStudioTwin(n_tasks)
        for task in twin.tasks:
            twin.annotate(task, "Positive")
        assert len(poll(twin).events) == n_tasks


def test_personal_access_tokens_are_exchanged_and_renewed(twin):
    twin.annotate(1, "Positive")
    with LabelStudioProject({**SETTINGS, "token": PERSONAL}, transport=twin.transport()) as client:
        assert len(list(client.tasks())) == 3
        twin.access_tokens.append("eyJ.eyJ.later")  # the first one expires
        assert len(list(client.tasks())) == 3
        assert len(list(client.tasks())) == 3
    assert [path for _, path, _ in twin.requests].count("/api/token/refresh/") == 2


@pytest.mark.parametrize("token", ["wrong", "eyJ.eyJ.wrong"])
def test_wrong_tokens(twin, token):
    with pytest.raises(
        PlatformError, match=r"refuses the (personal access )?token \(401\)"
    ) as caught:
        poll(twin, token=token)
    assert token not in str(caught.value)


def test_a_busy_platform_is_asked_again(twin):
    twin.annotate(1, "Positive")
    twin.failures = [httpx2.Response(503), httpx2.Response(429)]
    assert len(poll(twin).events) == 1


def test_a_platform_that_stays_busy():
    waits = []
    client = LabelStudioProject(
        SETTINGS,
        transport=httpx2.MockTransport(lambda _: httpx2.Response(503)),
        sleep=waits.append,
    )
    with pytest.raises(PlatformError, match=r"Label Studio at .* answers 503: is it up"):
        list(client.tasks())
    assert waits == [1.0, 4.0, 15.0]


def refuse(_):
    raise httpx2.ConnectError("no route")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (refuse, r"does not answer \(ConnectError\): is it up"),
        (lambda _: httpx2.Response(404, json={"detail": "No Project"}), r"\(404\): No Project"),
        (lambda _: httpx2.Response(302, headers={"location": "/login"}), r"redirects \(302\)"),
        (lambda _: httpx2.Response(200, text="<html>"), "is not JSON: is the address"),
        (lambda _: httpx2.Response(200, json=[]), "no list of tasks"),
        (lambda _: httpx2.Response(200, json={"tasks": [1]}), "no list of tasks"),
    ],
)
def test_what_is_no_label_studio(answer, message):
    client = LabelStudioProject(
        SETTINGS, transport=httpx2.MockTransport(answer), sleep=lambda _: None
    )
    with pytest.raises(PlatformError, match=message) as caught:
        list(client.tasks())
    assert LEGACY not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "https://", "https://x:y", "https://u:p@x", "https://x?a=1", "x"]
)
def test_addresses_that_are_none(url):
    with pytest.raises(ValueError, match="is not the address of a platform"):
        checked_url(url)
    assert checked_url("https://x.org/ls/") == "https://x.org/ls"


def test_states_of_annotations(database, project):
    early, late = NOW.replace(hour=1), NOW.replace(hour=2)
    events = [
        LabelEvent("a", "ann", "x", event_id="1", annotation="1", submitted=late),
        LabelEvent("a", "ann", "y", event_id="2", annotation="1", submitted=early),
        LabelEvent("b", "ann", "x", event_id="3", annotation="2", submitted=early),
        LabelEvent(event_id="4", annotation="2", deleted=True, submitted=late),
    ]
    with database.begin() as connection:
        append_events(connection, project.id, "label-studio:1", events, NOW)
        append_events(connection, project.id, "label-studio:2", events[1:2], NOW)
        found = annotation_states(connection, project.id, "label-studio:1")
    assert found == {"1": AnnotationState("1", False), "2": AnnotationState("4", True)}


@pytest.fixture(scope="module")
def fit():
    """A fit of three tasks; the third is disputed."""
    rows = [("1", name, "Positive") for name in "abc"]
    rows += [("2", name, "Negative") for name in "abc"]
    rows += [("3", "a", "Positive"), ("3", "b", "Negative"), ("3", "c", "Positive")]
    return at.fit(rows, "majority")


def write(twin, fit, items=None, **options):
    with LabelStudioProject(SETTINGS, transport=twin.transport(), sleep=lambda _: None) as client:
        table = fit.item_table() if items is None else items
        return write_back(client, table, fit.data.scale, **options)


def scores(twin):
    return {
        number: [(each["result"][0]["value"], each["score"]) for each in task["predictions"]]
        for number, task in twin.tasks.items()
    }


def test_every_task_gets_its_label_and_confidence(twin, fit):
    assert write(twin, fit) == 0
    confidence = dict(zip(["1", "2", "3"], fit.item_table()["confidence"].to_pylist(), strict=True))
    assert scores(twin) == {
        1: [({"choices": ["Positive"]}, confidence["1"])],
        2: [({"choices": ["Negative"]}, confidence["2"])],
        3: [({"choices": ["Positive"]}, confidence["3"])],
    }
    assert confidence["3"] < confidence["1"]
    (prediction,) = twin.tasks[1]["predictions"]
    assert prediction["model_version"] == MODEL_VERSION
    assert prediction["result"][0]["to_name"] == "text"


def test_the_data_manager_shows_the_scores(twin, fit):
    write(twin, fit)
    assert twin.model_version == MODEL_VERSION


def test_the_model_that_a_project_shows_is_left_alone(twin, fit):
    twin.model_version = "bert"
    write(twin, fit)
    assert twin.model_version == "bert"


def test_only_changes_are_sent(twin, fit):
    write(twin, fit)
    before = scores(twin)
    twin.requests.clear()
    assert write(twin, fit) == 0
    assert {method for method, _, _ in twin.requests} == {"GET"}
    twin.tasks[1]["predictions"][0]["score"] = 0.5
    twin.tasks[2]["predictions"][0]["result"] = choice("Positive")
    twin.tasks[3]["predictions"][0]["score"] += 0.001  # too little to matter
    write(twin, fit)
    assert [method for method, _, _ in twin.requests].count("PATCH") == 2
    assert scores(twin)[1] == before[1]
    assert scores(twin)[2] == before[2]


def test_predictions_of_others_are_left_alone(twin, fit):
    other = {"id": 900, "model_version": "bert", "score": 0.1, "result": choice("Negative")}
    twin.tasks[1]["predictions"].append(dict(other))
    write(twin, fit)
    assert twin.tasks[1]["predictions"][0] == other
    assert len(twin.tasks[1]["predictions"]) == 2


def test_predictions_that_were_added_twice_are_cleaned_up(twin, fit):
    write(twin, fit)
    twin.tasks[2]["predictions"].append({**twin.tasks[2]["predictions"][0], "id": 901})
    write(twin, fit)
    assert len(twin.tasks[2]["predictions"]) == 1


def test_items_that_annotruth_made_tasks_for(twin, fit):
    twin.tasks[1]["data"]["annotruth_item"] = "2"
    twin.tasks[2]["data"]["annotruth_item"] = "unknown"
    write(twin, fit)
    assert len(scores(twin)[1]) == len(scores(twin)[3]) == 1
    assert scores(twin)[1][0][0] == {"choices": ["Negative"]}
    assert scores(twin)[2] == []


def test_refused_predictions_are_counted(twin, fit):
    twin.labels = ["Positive"]
    assert write(twin, fit) == 1


def test_predictions_go_in_batches(fit, monkeypatch):
    monkeypatch.setattr("annotruth.serve.hooks.polling._AT_ONCE", 2)
    twin = LabelStudioTwin()
    assert write(twin, fit) == 0
    sizes = [len(content) for method, _, content in twin.requests if method == "POST"]
    assert sizes == [2, 1]


TAGS = {
    "label": {"type": "Choices", "to_name": ["text"]},
    "stars": {"type": "Rating", "to_name": ["text"]},
    "box": {"type": "RectangleLabels", "to_name": ["image"]},
}


def test_the_tag_that_takes_the_labels():
    found = find_control({"parsed_label_config": TAGS}, "stars")
    assert (found.name, found.to_name, found.type) == ("stars", "text", "rating")
    only = {"parsed_label_config": {"box": TAGS["box"], "label": TAGS["label"]}}
    assert find_control(only, None).name == "label"
    for settings, question in (
        ({"parsed_label_config": TAGS}, None),
        ({"parsed_label_config": TAGS}, "box"),
        ({}, None),
    ):
        with pytest.raises(InputError, match="set the question of the connection"):
            find_control(settings, question)
