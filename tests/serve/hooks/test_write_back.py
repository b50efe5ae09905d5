"""Predictions that are written back to Label Studio."""

import pytest
from tests.serve.hooks.label_studio_twin import SETTINGS, LabelStudioTwin, choice

import annotruth as at
from annotruth.errors import InputError
from annotruth.serve.hooks.label_studio import LabelStudioProject
from annotruth.serve.hooks.polling import MODEL_VERSION, find_control, write_back


@pytest.fixture
def twin():
    return LabelStudioTwin()


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
    assert write(twin, fit).summary == "3 added, 0 changed, 0 unchanged"
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
    assert write(twin, fit).summary == "0 added, 0 changed, 3 unchanged"
    assert {method for method, _, _ in twin.requests} == {"GET"}
    twin.tasks[1]["predictions"][0]["score"] = 0.5
    twin.tasks[2]["predictions"][0]["result"] = choice("Positive")
    twin.tasks[3]["predictions"][0]["score"] += 0.001  # too little to matter
    assert write(twin, fit).summary == "0 added, 2 changed, 1 unchanged"
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
    assert write(twin, fit).n_added == 2
    assert scores(twin)[1][0][0] == {"choices": ["Negative"]}
    assert scores(twin)[2] == []


def test_refused_predictions_are_counted(twin, fit):
    twin.labels = ["Positive"]
    assert write(twin, fit).summary == "2 added, 0 changed, 0 unchanged, 1 refused"


def test_predictions_go_in_batches(fit, monkeypatch):
    monkeypatch.setattr("annotruth.serve.hooks.polling._AT_ONCE", 2)
    twin = LabelStudioTwin()
    assert write(twin, fit).n_added == 3
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
