"""The API by a client: labels in, results out."""

import json

import pytest
from tests.waiting import wait_until


def label(n, **more):
    return {"item": f"i{n}", "annotator": "ann", "label": "owl", "event_id": str(n), **more}


def test_labels_are_accepted_once(server):
    path = "/projects/birds/labels"
    reply = server.call("POST", path, label(1), "birds-write")
    assert (reply.status, reply.body["accepted"], reply.body["repeated"]) == (200, 1, 0)
    reply = server.call("POST", path, [label(1), label(2)], "birds-write")
    assert (reply.body["accepted"], reply.body["repeated"]) == (1, 1)
    lines = [json.dumps(label(n)) for n in range(1, 5)]
    reply = server.stream(path, [*lines, ""])
    assert (reply.status, reply.body["accepted"], reply.body["repeated"]) == (200, 2, 2)
    seen = server.call("GET", f"{path}?limit=3").body
    assert [each["item"] for each in seen["labels"]] == ["i1", "i2", "i3"]
    rest = server.call("GET", f"{path}?since={seen['next']}").body
    assert [each["item"] for each in rest["labels"]] == ["i4"]
    assert rest["next"] is None


def test_numbers_and_booleans_become_text(server):
    sent = [
        {"item": 7, "annotator": 3, "label": value, "event_id": n}
        for n, value in enumerate([4, 4.0, 4.5, True, "x"])
    ]
    assert server.call("POST", "/projects/birds/labels", sent).status == 200
    seen = server.call("GET", "/projects/birds/labels").body["labels"]
    assert [each["label"] for each in seen] == ["4", "4", "4.5", "true", "x"]
    assert {(each["item"], each["annotator"]) for each in seen} == {("7", "3")}


def test_a_wrong_list_is_not_stored_at_all(server):
    path = "/projects/birds/labels"
    reply = server.call("POST", path, [label(1), {"item": "x", "annotator": "ann"}])
    assert (reply.status, reply.body) == (422, {"detail": "1: the event has no label"})
    reply = server.call(
        "POST", "/projects/birds/labels", {"item": "", "annotator": "ann", "label": "x"}
    )
    assert reply.body == {"detail": "item: give an id that is not empty"}
    reply = server.call("POST", path, [label(1), label(2, lable="owl")])
    assert reply.status == 422
    assert reply.body["detail"] == "1.lable: Extra inputs are not permitted"
    assert server.call("GET", path).body["labels"] == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"label": ["cat"]}, "label: give text, a number or true/false"),
        ({"item": {"id": 1}}, "item: give text or a whole number"),
        ({"annotator": True}, "annotator: give text or a whole number"),
        ({"item": 1.5}, "item: give text or a whole number"),
    ],
)
def test_values_of_other_types_are_refused_in_plain_words(server, changed, problem):
    label = {"item": "a", "annotator": "ann", "label": "cat"}
    reply = server.call("POST", "/projects/birds/labels", label | changed)
    assert (reply.status, reply.body) == (422, {"detail": problem})


@pytest.mark.parametrize("field", ["submitted", "started"])
@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", 0, "1999-12-31T23:59:59Z"])
def test_times_that_nobody_can_have_labelled_at_are_refused(sqlite_server, field, time):
    label = {"item": "a", "annotator": "ann", "label": "x", field: time}
    reply = sqlite_server.call("POST", "/projects/birds/labels", label)
    assert reply.status == 422
    assert "is before 2000: correct it, or leave it out" in reply.body["detail"]


def test_a_stream_says_which_line_is_wrong_and_what_was_stored(server):
    path = "/projects/birds/labels"
    lines = [json.dumps(label(1)), "", json.dumps(label(2)), '{"item": 1', json.dumps(label(3))]
    reply = server.stream(path, lines)
    assert reply.status == 422
    assert reply.body["detail"].startswith("line 4: Invalid JSON")
    assert reply.body["detail"].endswith("; stored before it: 2 labels")
    assert reply.body["accepted"] == 2
    assert len(server.call("GET", path).body["labels"]) == 2


def test_edits_and_deletions(server):
    path = "/projects/birds/labels"
    server.call("POST", path, [label(1), label(1, event_id="2", label="hawk")])
    found = server.call("GET", "/projects/birds/items/i1").body
    assert [each["label"] for each in found["labels"]] == ["hawk"]
    gone = {"item": "i1", "annotator": "ann", "deleted": True}
    assert server.call("POST", path, gone).status == 200
    assert server.call("GET", "/projects/birds/items/i1").status == 404


def test_labels_must_be_of_the_categories_and_the_kind(server):
    reply = server.call("POST", "/projects/cats/labels", label(1))
    assert reply.status == 422
    assert reply.body["detail"] == "label 'owl' is none of the project's categories: yes, no"
    assert server.call("POST", "/projects/cats/labels", label(1, label="yes")).status == 200
    reply = server.call("POST", "/projects/films/labels", label(1))
    assert (reply.status, "use .../comparisons" in reply.body["detail"]) == (409, True)


def test_comparisons(server):
    vote = {"left": "a", "right": "b", "annotator": "ann", "outcome": "left"}
    path = "/projects/films/comparisons"
    assert server.call("POST", path, [vote, {**vote, "outcome": "tie"}]).body["accepted"] == 2
    seen = server.call("GET", path).body["comparisons"]
    assert [(each["left"], each["right"], each["outcome"]) for each in seen] == [
        ("a", "b", "left"),
        ("a", "b", "tie"),
    ]
    assert server.call("POST", path, {**vote, "outcome": "up"}).status == 422


def test_a_comparison_of_an_item_with_itself_is_refused(server):
    path = "/projects/films/comparisons"
    vote = {"left": "a", "right": "b", "annotator": "ann", "outcome": "left"}
    problem = (
        "item 'a' is compared with itself: leave the comparison out, or correct one of its items"
    )
    reply = server.call("POST", path, {**vote, "right": "a"})
    assert (reply.status, reply.body["detail"]) == (422, problem)
    reply = server.call("POST", path, [vote, {**vote, "right": "a"}])
    assert (reply.status, reply.body["detail"]) == (422, f"1: {problem}")
    reply = server.stream(path, [json.dumps(vote), json.dumps({**vote, "right": "a"})])
    detail = f"line 2: {problem}; stored before it: 1 comparison"
    assert (reply.status, reply.body["detail"]) == (422, detail)


def test_projects_are_created_and_changed(server):
    made = server.call("POST", "/projects", {"name": "owls", "settings": {"labels_per_item": 2}})
    assert made.status == 201
    assert server.call("POST", "/projects", {"name": "owls"}).status == 409
    reply = server.call("POST", "/projects", {"name": "Owls!"})
    assert reply.status == 422
    assert "must have 1 to 60 lower-case letters, digits and -" in reply.body["detail"]
    names = [each["name"] for each in server.call("GET", "/projects").body]
    assert names == ["birds", "films", "cats", "owls"]
    own = [each["name"] for each in server.call("GET", "/projects", token="birds-read").body]
    assert own == ["birds"]
    changed = server.call("PATCH", "/projects/owls", {"model": "gpm", "labels_per_item": None})
    assert changed.body["settings"] == {"model": "gpm"}
    wrong = server.call("PATCH", "/projects/owls", {"model": "nope"})
    assert wrong.status == 422
    assert wrong.body["detail"].startswith("unknown model 'nope': choose one of majority, mean,")
    state = server.call("GET", "/projects/owls").body
    assert (state["settings"], state["version"]) == ({"model": "gpm"}, None)
    actions = [each["action"] for each in server.call("GET", "/projects/owls/audit").body]
    assert actions == ["settings changed", "project created"]


def test_content_gold_and_traits(server):
    items = [{"item": "i1", "content": {"text": "<b>owl</b>"}}, {"item": "i/2", "content": {}}]
    assert server.call("POST", "/projects/birds/items", items).body == {"stored": 2}
    assert server.call("POST", "/projects/birds/gold", {"item": "i1", "label": "owl"}).status == 200
    found = server.call("GET", "/projects/birds/items/i1").body
    assert (found["content"], found["gold"]) == ({"text": "<b>owl</b>"}, "owl")
    assert server.call("GET", "/projects/birds/items/i%2F2").status == 200
    traits = {"annotator": "ann", "traits": {"team": "night"}}
    assert server.call("POST", "/projects/birds/annotators", traits).status == 200
    assert server.call("GET", "/projects/birds/annotators/ann").body["traits"] == {"team": "night"}
    twice = [{"item": "i1", "label": "a"}, {"item": "i1", "label": "b"}]
    assert server.call("POST", "/projects/birds/gold", twice).status == 422


def test_tokens_are_made_used_and_revoked(server):
    sent = {"name": "ci", "scope": "write", "expires": "2999-01-01T00:00:00Z"}
    made = server.call("POST", "/projects/birds/tokens", sent, "birds-admin")
    assert made.status == 201
    text, token_id = made.body["token"], made.body["id"]
    assert server.call("POST", "/projects/birds/labels", label(1), text).status == 200
    shown = server.call("GET", "/projects/birds/tokens").body
    assert text not in json.dumps(shown)
    assert text.split("_", 2)[2] not in json.dumps(shown)
    gone = server.call("DELETE", f"/projects/birds/tokens/{token_id}", token="birds-admin")
    assert gone.status == 204
    assert server.call("POST", "/projects/birds/labels", label(2), text).status == 401
    other = server.tokens["cats-admin"].split("_")[1]
    path = f"/projects/birds/tokens/{other}"
    assert server.call("DELETE", path, token="birds-admin").status == 404
    past = {**sent, "expires": "2001-01-01T00:00:00Z"}
    assert server.call("POST", "/projects/birds/tokens", past).status == 422


def test_webhooks_show_no_secrets(server):
    made = server.call("POST", "/projects/birds/webhooks", {"url": "https://example.org/hook"})
    assert (made.status, made.body["secret"][:6]) == (201, "whsec_")
    shown = server.call("GET", "/projects/birds/webhooks").body
    public = {k: v for k, v in made.body.items() if k != "secret"}
    assert shown == [{**public, "last_delivery": None}]
    assert server.call("DELETE", f"/projects/cats/webhooks/{made.body['id']}").status == 404
    assert server.call("DELETE", f"/projects/birds/webhooks/{made.body['id']}").status == 204


def test_health_metrics_and_documentation(sqlite_server):
    assert sqlite_server.send("GET", "/healthz").body == {"status": "ok"}
    sqlite_server.call("POST", "/projects/birds/labels", label(1))
    headers = {"Authorization": f"Bearer {sqlite_server.tokens['reader']}"}

    def metrics():
        return sqlite_server.send("GET", "/metrics", headers=headers).body

    route = 'route="/api/v1/projects/{project}/labels"'
    wait_until(lambda: route in metrics(), "a request that is counted after its response")
    assert 'annotruth_labels_total{outcome="accepted"} 1.0' in metrics()
    assert "i1" not in metrics()
    schema = sqlite_server.send("GET", "/openapi.json").body
    assert "/api/v1/projects/{project}/next" in schema["paths"]


def test_connections_show_no_secrets(server):
    made = server.call("POST", "/projects/birds/connections", {"kind": "generic"})
    assert made.status == 201
    (shown,) = server.call("GET", "/projects/birds/connections").body
    assert (shown["hook"], "secret" in shown) == (f"/hooks/{made.body['id']}", False)
    path = f"/projects/birds/connections/{made.body['id']}"
    assert server.call("DELETE", path).status == 204


def test_a_platform_may_have_its_own_secret(server):
    settings = {"url": "https://labels.example.org", "project": 3, "token": "platform-token"}
    sent = {"kind": "label-studio", "settings": settings, "secret": "0123456789abcdef"}
    made = server.call("POST", "/projects/birds/connections", sent)
    assert made.body["secret"] == "0123456789abcdef"
    assert made.body["settings"]["token"] == "***"
    for wrong in ({"secret": "short"}, {"secret": "0123456789abcd\n\n"}, {"settings": {"x": 1}}):
        assert server.call("POST", "/projects/birds/connections", sent | wrong).status == 422
