"""The description of the API is complete: a client can be made from it, and it states the bounds."""

import json
import re
from urllib.parse import quote, urlencode

import pytest

REFERENCE = "#/components/schemas/"


class SchemaClient:
    """Calls operations by their names, and knows nothing but the description of the API."""

    def __init__(self, server, token):
        self._server, self._token = server, token
        self.schema = server.send("GET", "/openapi.json").body
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, operations in self.schema["paths"].items()
            for method, operation in operations.items()
        }

    def named(self, start):
        """Return the name of the operation that a function has."""
        (name,) = (name for name in self.operations if name.startswith(start))
        return name

    def __call__(self, name, body=None, **values):
        method, path, operation = self.operations[name]
        query = {}
        for parameter in operation["parameters"]:
            value = values.pop(parameter["name"], None)
            if value is None:
                assert not parameter["required"], f"{name} needs {parameter['name']}"
            elif parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", quote(str(value), safe=""))
            else:
                query[parameter["name"]] = value
        assert not values, f"{name} has no {sorted(values)}"
        assert "{" not in path, path
        headers = {}
        for need in operation.get("security", self.schema["security"]):
            scheme = self.schema["components"]["securitySchemes"][next(iter(need))]
            assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
            headers["Authorization"] = f"Bearer {self._token}"
        content = None
        if body is not None:
            headers["Content-Type"] = next(iter(operation["requestBody"]["content"]))
            content = json.dumps(body).encode()
        address = f"{path}?{urlencode(query)}" if query else path
        reply = self._server.send(method, address, content, headers)
        assert str(reply.status) in operation["responses"], (name, reply)
        return reply


@pytest.fixture
def client(server):
    return SchemaClient(server, server.tokens["admin"])


def test_a_client_made_from_the_schema_posts_and_reads_labels(client):
    sent = [
        {"item": "a", "annotator": "ann", "label": "owl"},
        {"item": 7, "annotator": 1, "label": 2},
    ]
    post, read = client.named("post_labels_"), client.named("get_labels_")
    assert client(post, sent, project="birds").body["accepted"] == 2
    assert client(post, sent[0], project="birds").body["accepted"] == 1
    found = client(read, project="birds", limit=2).body
    assert [each["label"] for each in found["labels"]] == ["owl", "2"]
    rest = client(read, project="birds", since=found["next"]).body
    assert [each["item"] for each in rest["labels"]] == ["a"]
    assert client(client.named("item_"), project="birds", item="a").body["labels"]
    assert client(post, sent, project="films").status == 409
    assert client(read, project="none").status == 404


def test_every_path_parameter_and_reference_of_the_schema_exists(client):
    schema = client.schema
    for name, (_, path, operation) in client.operations.items():
        described = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert described == re.findall(r"{(\w+)}", path), name
    names = re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema))
    assert names
    for name in names:
        assert name.removeprefix(REFERENCE) in schema["components"]["schemas"], name
    for name, (_, _, operation) in client.operations.items():
        assert {"401", "422", "429", "503"} <= operation["responses"].keys(), name
    for path in ("/api/v1/projects/{project}/labels", "/api/v1/projects/{project}/tokens"):
        assert "requestBody" in schema["paths"][path]["post"]


def test_integers_beyond_their_bounds_are_refused_and_others_answered(client):
    given = {"project": "birds", "annotator": "ann", "token_id": "x", "item": "a", "number": 1}
    bounded = set()
    for name, (method, _, operation) in client.operations.items():
        for parameter in operation["parameters"]:
            schema = parameter["schema"]
            if schema.get("type") != "integer" or method == "POST":
                continue
            needed = {
                each["name"]: given.get(each["name"], 0)
                for each in operation["parameters"]
                if each["required"]
            }
            at_most, place = schema["maximum"], parameter["name"]
            for value in (schema["minimum"], at_most, 2**31 - 1, 2**31, 2**63 - 1, 2**63):
                reply = client(name, **needed | {place: value})
                assert (reply.status == 422) == (value > at_most), (name, place, value, reply)
                assert reply.status < 500
            bounded.add(place)
    assert bounded == {"since", "cursor", "limit", "number"}
