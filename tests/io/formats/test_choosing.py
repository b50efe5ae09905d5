"""Recognising the format of a file, and choosing another."""

import json

import pytest

import annotruth as at
from annotruth.io import formats
from annotruth.io.formats import INPUT_FORMATS


def test_an_unknown_format_names_the_known_ones(refused):
    text = refused("item,annotator,label\n1,a,2\n", "l.csv", input_format="xml")
    assert text == "unknown input format 'xml': `annotruth fit --help-all` lists all"
    text = refused("item,annotator,label\n1,a,2\n", "l.csv", input_format="wied")
    assert text.endswith("did you mean wide?")


@pytest.mark.parametrize("name", [name for name in INPUT_FORMATS if name != "long"])
def test_every_format_refuses_a_file_of_another_format(refused, name):
    refused('{"a": [1]}\n', "l.jsonl", input_format=name)
    refused("[]", "l.json", input_format=name)
    if name != "mace":  # for which any table is a matrix
        refused("item,note\n1,a\n", "l.csv", input_format=name)


def test_a_long_table_is_never_recognised_as_another_format(monkeypatch, write, lines):
    """Its reading asks no other format, and so costs what it did."""

    def asked(*_):
        raise AssertionError("a format was asked")

    monkeypatch.setattr(formats, "_named", asked)
    rows = [{"item": 1, "annotator": "a", "label": 2}, {"item": 1, "annotator": "b", "label": 2}]
    csv = "item,annotator,label\n1,a,2\n1,b,2\n"
    for path in (write(csv, "l.csv"), write(lines(rows), "l.jsonl")):
        assert at.read_labels(path).n_labels == 2


def test_the_long_format_can_be_required(refused, write):
    wide = "item,a,b\n1,1,2\n2,1,1\n"
    assert at.read_labels(write(wide, "w.csv")).n_annotators == 2
    assert "no column for the annotator" in refused(wide, "w.csv", input_format="long")


def test_formats_and_queries_are_for_files():
    for option in ({"input_format": "wide"}, {"query": "x"}):
        with pytest.raises(at.InputError, match="is for files"):
            at.fit([(1, "a", 1)], **option)


def test_the_recognised_format_is_saved_with_a_fit(tmp_path, write):
    fit = at.fit(write("item,a,b\n1,1,2\n2,1,1\n", "w.csv"))
    fit.save(tmp_path / "fit")
    assert at.load(tmp_path / "fit").summary() == fit.summary()
    assert (
        '"read_as": "matrix of items by annotators' in (tmp_path / "fit" / "fit.json").read_text()
    )


def test_what_was_taken_for_what_is_said(write):
    content = "sample_id,rater_id,score,seconds\n1,a,2,9\n1,b,2,9\n"
    for name, text in (("l.csv", content), ("l.tsv", content.replace(",", "\t"))):
        labels = at.read_labels(write(text, name))
        assert labels.read_as == "item = sample_id, annotator = rater_id, label = score"
    record = {"sample_id": 1, "rater_id": "a", "score": 2}
    for name, text in (("l.jsonl", json.dumps(record)), ("l.json", json.dumps([record]))):
        assert (
            "item = sample_id, annotator = rater_id, label = score"
            in at.read_labels(write(text, name)).read_as
        )
    named = {"item": "sample_id", "annotator": "rater_id", "label": "score"}
    assert at.read_labels(write(content, "l.csv"), columns=named).read_as == ""


@pytest.mark.parametrize(
    "names",
    [
        "annotation_id,annotator,id,lead_time,sentiment,text",
        "_unit_id,_worker_id,user,text,sentiment",
        "HITId,WorkerId,user,text,Answer.x,rating",
        "classification_id,user_name,workflow_id,annotations,user,text,score,subject_ids",
        "classification_id,user_id,workflow_id,task,subject_id,extractor,score",
    ],
)
def test_exports_of_platforms_are_no_long_tables(refused, names):
    row = ",".join("1" for _ in names.split(","))
    text = refused(f"{names}\n{row}\n", "l.csv", memory="1GB")
    assert "a platform's export" in text
    assert "columns={'item': 'NAME', 'annotator': 'NAME', 'label': 'NAME'}" in text
