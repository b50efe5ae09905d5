"""Potato's tables, and files of tools that mark parts of a text or an image."""

import json

import pytest

import annotruth as at
from annotruth.io.readers import read_labels

NAMES = "user\tinstance_id\tdisplayed_text\tsentiment:::good\tsentiment:::bad\tspans:::sure\n"
ROWS = "ann\t1\tHello\ttrue\t\t[]\nbob\t1\tHello\t\ttrue\t[{'start': 0}]\nbob\t2\tBye\t\t\t[]\n"


@pytest.fixture
def read(write):
    return lambda text, name="instances.tsv", **options: read_labels(write(text, name), **options)


def test_options_that_were_ticked_are_labels(read):
    labels = read(NAMES + ROWS)
    assert (labels.n_labels, labels.n_dropped, labels.n_annotators) == (2, 1, 2)
    assert labels.scale.categories.to_pylist() == ["bad", "good"]
    assert labels.read_as == (
        "Potato annotations (3 annotations, question sentiment, spans of spans left out)"
    )


def test_values_are_labels_and_one_of_several_questions_is_chosen(read):
    rating = NAMES.replace("spans:::sure", "stars:::value")
    rows = ROWS.replace("[]", "4").replace("[{'start': 0}]", "5")
    with pytest.raises(at.InputError, match=r"sentiment \(good, bad\), stars \(4, 5, 4\): choose"):
        read(rating + rows)
    labels = read(rating + rows, question="stars")
    assert labels.n_labels == 3
    assert labels.scale.categories.to_pylist() == [4, 5]


def test_files_in_folders_of_users(tmp_path):
    for user, option in {"ann": "good", "bob": "bad"}.items():
        record = {"id": 1, "label_annotations": {"sentiment": {option: "true"}}}
        (tmp_path / user).mkdir()
        (tmp_path / user / "annotated_instances.jsonl").write_text(json.dumps(record) + "\n")
    labels = read_labels(f"{tmp_path}/*/annotated_instances.jsonl")
    assert labels.annotators.to_pylist() == ["ann", "bob"]
    assert labels.n_labels == 2
    assert read_labels(tmp_path / "bob" / "annotated_instances.jsonl").n_labels == 1


def test_a_box_that_is_ticked_may_hold_its_own_name(read):
    text = "user\tinstance_id\tagree:::Yes\nann\t1\tagree:::Yes\nbob\t1\t\n"
    assert read(text).scale.categories.to_pylist() == ["Yes"]


def test_spans_alone_are_refused(read):
    text = "user\tinstance_id\tspans:::sure\nann\t1\t[]\nbob\t1\t[{'start': 0}]\n"
    with pytest.raises(at.InputError, match=r"the regions of 'spans' \(spans\) are not classes"):
        read(text)


@pytest.mark.parametrize(
    ("tool", "name", "text"),
    [
        ("LabelMe", "1.json", json.dumps({"flags": {}, "shapes": [], "imagePath": "1.jpg"})),
        ("COCO", "1.json", json.dumps({"images": [], "annotations": [], "categories": []})),
        ("brat", "1.ann", "T1\tEntity 70 117\tCongenital\nT2\tEntity 206 210;214 217\tvaso\n"),
        ("INCEpTION", "1.tsv", " # POS | Value\n#id=1\n#text=Is.\n1-1\tIs\t_\t\n1-2\t.\t_\t\n"),
        ("INCEpTION", "2.tsv", "#FORMAT=WebAnno TSV 3.3\n\n#Text=Is.\n1-1\t0-2\tIs\t_\t\n"),
    ],
)
def test_files_of_regions_are_refused_by_the_name_of_the_tool(read, tool, name, text):
    with pytest.raises(at.InputError, match=f"this is a file of {tool}.* item, annotator, label"):
        read(text, name)
