"""Recorded messages with parts replaced at random: read, or refused in one line, never a crash."""

import copy
import json
import random

import pytest
from tests.serve.hooks.conftest import PAYLOADS

from annotruth.errors import InputError
from annotruth.serve.hooks.message import HookProject
from annotruth.serve.hooks.platforms import PLATFORMS
from annotruth.serve.store.events import check_event

ODD = [
    *(None, True, False, 0, -1, 7, 10**30, 1e308, float("nan"), float("inf"), ""),
    *("x", "\0", "\ud800", "a" * 20_000, "'; drop table event; --", "<script>", "١٢"),
    *([], {}, [None], [[]], [{}], {"a": {"b": []}}, ["x", "y"], {"": ""}, {"id": None}),
    *("2026-01-01", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"),
]
GENERIC = [
    {
        "item": "a",
        "annotator": "ann",
        "label": "x",
        "event_id": "e",
        "annotation": "n",
        "started": "2026-01-01T00:00:00Z",
        "submitted": "2026-01-01T00:00:01Z",
        "deleted": False,
    },
    {"left": "a", "right": "b", "annotator": "ann", "outcome": "left", "deleted": False},
]
N_CHANGES = 150


def messages(kind):
    if kind == "generic":
        return GENERIC
    folder = PAYLOADS / kind.replace("-", "_")
    contents = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return [json.loads(each["body"]) if "body" in each else each for each in contents]


def places(content, path=()):
    """Return the paths of all parts of a message."""
    found = [path]
    parts = content.items() if isinstance(content, dict) else enumerate(content)
    for key, part in parts:
        inner = isinstance(part, dict | list)
        found += places(part, (*path, key)) if inner else [(*path, key)]
    return found


def changed(content, path, value):
    if not path:
        return value
    result = copy.deepcopy(content)
    part = result
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return result


@pytest.mark.parametrize("project_kind", ["labels", "comparisons"])
@pytest.mark.parametrize("kind", PLATFORMS)
def test_changed_messages(kind, project_kind):
    chance = random.Random(f"{kind} {project_kind}")
    settings = [{}, {"question": "sentiment"}, {"question": "sentiment", "dataset": "reviews"}]
    n_read, lines = 0, []
    for content in messages(kind):
        for path in chance.choices(places(content), k=N_CHANGES // len(messages(kind)) + 1):
            hostile = changed(content, path, chance.choice(ODD))
            project = HookProject(project_kind, chance.choice(settings))
            try:
                said = PLATFORMS[kind].read(hostile, project)
                for event in said.events:
                    check_event(event, project_kind)
            except InputError as error:
                lines.append(str(error))
            else:
                n_read += 1
                for event in said.events:
                    assert event.submitted is None or event.submitted.tzinfo is not None
    assert n_read or project_kind == "comparisons"
    assert lines
    assert not any("\n" in line for line in lines)
