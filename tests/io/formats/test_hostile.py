"""Any file gives labels or one clear line."""

import json
import warnings

import pytest

import annotruth as at

TASK = {
    "id": 1,
    "data": {"text": "x"},
    "annotations": [
        {
            "completed_by": 2,
            "result": [{"type": "choices", "from_name": "q", "value": {"choices": ["a"]}}],
        }
    ],
}
SAMPLES = {
    "label-studio": [TASK],
    "label-studio-min": [
        {"id": 1, "q": "a", "annotator": 1, "annotation_id": 1, "lead_time": 1.0},
        {"id": 1, "q": "b", "annotator": 2, "annotation_id": 2, "lead_time": 1.0},
    ],
    "prodigy": [{"_input_hash": 1, "_task_hash": 2, "_session_id": "s", "answer": "accept", "accept": ["a"]}],
    "doccano": [{"id": 1, "text": "x", "annotations": [{"user": 1, "label": 2}]}],
    "argilla": [
        {"id": "r", "fields": {}, "responses": {"q": [{"user_id": "u", "value": "a", "status": "submitted"}]}},
        {"id": "s", "fields": {}, "responses": {"q": [{"user_id": "u", "value": "a", "status": None}]}},
    ],
    "by-item": {"1.jpg": {"a": 1, "b": 2}},
    "by-annotator": {"a": {"1.jpg": 1, "2.jpg": 2}},
    "json-table": {"item": {"0": 1}, "annotator": {"0": "a"}, "label": {"0": 2}},
    "sureal": {"ref_videos": [], "dis_videos": [{"asset_id": 1, "os": {"a": 3}}]},
    "records": [{"item": 1, "annotator": "a", "label": 2}],
}  # fmt: skip
JUNK = (
    None,
    True,
    7,
    1e308,
    10**30,
    "x",
    "",
    "\ud800",
    [],
    [[]],
    [None],
    {},
    {"a": []},
    [{"b": {}}],
)


def places(value, path=()):
    """Every place in a nested value."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()  # fmt: skip
    for key, below in inside:
        yield from places(below, (*path, key))


def replaced(value, path, junk):
    if not path:
        return junk
    made = value.copy()
    made[path[0]] = replaced(value[path[0]], path[1:], junk)
    return made


def removed(value, path):
    made = value.copy()
    if len(path) > 1:
        made[path[0]] = removed(value[path[0]], path[1:])
    else:
        del made[path[0]]
    return made


def one_line_or_labels(path, **options):
    try:
        with warnings.catch_warnings():
            # A time that is none is not used, and labels are read without it.
            warnings.filterwarnings("ignore", "column '(time|seconds)' holds no")
            labels = at.read_labels(path, **options)
    except at.InputError as error:
        said = str(error)
    else:
        said = f"{labels.n_labels} labels"
    assert said != "0 labels"
    assert "\n" not in said
    assert len(said) < len(str(path)) + 500


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_read(write, name):
    labels = at.read_labels(write(SAMPLES[name], "x.json"))
    assert at.read_labels(write(SAMPLES[name], "x.json"), input_format=name).n_labels > 0
    assert labels.read_as


@pytest.mark.parametrize("name", SAMPLES)
def test_wrong_types_anywhere_give_one_line(write, name):
    sample = SAMPLES[name]
    spoiled = [replaced(sample, path, junk) for path in places(sample) for junk in JUNK]
    spoiled += [removed(sample, path) for path in places(sample) if path]
    for number, content in enumerate(spoiled):
        # Recognised and named by turns.
        options = {"input_format": name} if number % 2 else {}
        one_line_or_labels(write(json.dumps(content), "x.json"), **options)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("indent", [None, 1])
def test_truncated_files_are_refused(refused, name, indent):
    whole = json.dumps(SAMPLES[name], indent=indent)
    for end in range(1, len(whole), max(1, len(whole) // 40)):
        refused(whole[:end], "x.json")


@pytest.mark.parametrize("name", SAMPLES)
def test_missing_ids_are_refused(refused, write, name):
    keys = {"annotator", "completed_by", "_session_id", "user", "user_id", "asset_id", "item"}
    if name == "json-table":  # in which these are columns
        keys = {"0"}
    elif name != "argilla":  # where records without an id are counted
        keys.add("id")
    for path in places(SAMPLES[name]):
        if path and path[-1] in keys:
            text = refused(replaced(SAMPLES[name], path, None), "x.json", input_format=name)
            assert "has a label but no" in text or "every row has an empty label" in text


def test_other_bad_json_is_refused(refused):
    task = json.dumps([TASK])
    assert "nested too deep" in refused(task.replace('"x"', "[" * 10**5 + "]" * 10**5), "x.json")
    assert "not JSON" in refused(task.replace('"x"', "9" * 10_000), "x.json")
    assert "UTF-8" in refused(task.encode().replace(b'"x"', b'"\xff"'), "x.json")
    assert "infinite" in refused(task.replace('"a"', "1e999"), "x.json")
    assert "no question with a label" in refused([{**TASK, "annotations": []}], "x.json")
    assert "JSON list" in refused("[]", "x.json")
    assert "is 7, which is not an object" in refused([TASK, 7], "x.json")


@pytest.mark.parametrize("line", ["true", "null", "7", '"x"', "[]"])
def test_lines_that_are_no_objects_are_refused(refused, line):
    refused(f'{{"item": 1}}\n{line}\n', "x.jsonl")
    refused(f"{line}\n{line}\n", "x.jsonl")


def test_bad_json_lines_are_refused(refused, lines):
    record = SAMPLES["prodigy"][0]
    good = lines([record])
    assert "line 2 is not JSON" in refused(good + good[:20], "x.jsonl")
    assert "line 3 is [], which is not an object" in refused(good + "\n[]\n", "x.jsonl")
    assert "(line 2) is 0xff" in refused(good.encode() + b'{"a": "\xff"}\n', "x.jsonl")
    deep = good.replace('"s"', "[" * 10**5 + "]" * 10**5)
    assert "line 2 is not JSON (nested too deeply)" in refused(good + deep, "x.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        b"HITId,WorkerId,Answer.x\n1,a,\xff\n",
        b"HITId,WorkerId,Answer.x\n1,a\n",
        b'HITId,WorkerId,Answer.x\n1,a,"b\n',
        b"HITId,WorkerId,Answer.x\n1,,b\n",
        b"INPUT:a\tOUTPUT:b\tASSIGNMENT:worker_id\n\tx\tw\n",
        b"INPUT:a\tOUTPUT:b\tASSIGNMENT:worker_id\nx\t\t\n",
        b"item,a,b\n1,1,2\n,1,1\n",
        b"item,a,b\n1,1,2\n2,1\xff,1\n",
        b"item,a,b\n1,1,2\n2,inf,1\n",
        b"1,1,2\n1,1,\xff\n1,1,2\n",
    ],
)
def test_bad_tables_are_refused(refused, content):
    refused(content, "table.txt")
