"""The content of items: columns of the input that say what the items are."""

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import annotruth as at

TABLE = pa.table(
    {
        "item": ["b", "a", "b", "a"],
        "annotator": ["x", "x", "y", "y"],
        "label": [1, 2, 2, 2],
        "text": ["second", "first", "second", "first"],
        "length": [6.0, 5.0, 6.0, 5.0],
    }
)


def content(labels, name="text"):
    return dict(
        zip(labels.items.to_pylist(), labels.covariates.items[name].to_pylist(), strict=True)
    )


@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame])
def test_content_of_a_frame_is_one_value_per_item(frame):
    labels = at.Labels.of(frame(TABLE.to_pydict()), content=["text"])
    assert content(labels) == {"a": "first", "b": "second"}
    assert not labels.covariates.labels


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_content_of_a_file(suffix, tmp_path):
    path = tmp_path / f"labels.{suffix}"
    if suffix == "csv":
        TABLE.to_pandas().to_csv(path, index=False)
    elif suffix == "parquet":
        pq.write_table(TABLE, path)
    else:
        path.write_text("\n".join(map(json.dumps, TABLE.to_pylist())))
    labels = at.read_labels(path, content=["text", "length"], covariates=["length"])
    assert content(labels) == {"a": "first", "b": "second"}
    assert [float(v) for v in content(labels, "length").values()] == [6.0, 5.0]
    assert set(labels.covariates.labels) == {"length"}


def test_of_different_values_the_first_is_taken_with_one_warning():
    rows = pa.table(
        {
            "item": ["a", "b", "a", "b", "a"],
            "annotator": ["x", "x", "y", "y", "z"],
            "label": [2, 1, 1, 1, 1],
            "text": [None, "b", "one", "b", "two"],
        }
    )
    with pytest.warns(at.AnnotruthWarning, match="^1 item has different values in column 'text'"):
        labels = at.Labels.of(rows, content=["text"])
    assert content(labels) == {"a": "one", "b": "b"}


def test_a_replaced_row_keeps_the_content_of_the_item():
    rows = pa.table(
        {"item": ["a", "a"], "annotator": ["x", "x"], "label": [1, 2], "text": ["t", "t"]}
    )
    assert content(at.Labels.of(rows, content=["text"], duplicates="last")) == {"a": "t"}


def test_items_may_be_their_own_content():
    assert content(at.Labels.of(TABLE, content=["item"]), "item") == {"a": "a", "b": "b"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["picture"], "no column 'picture' for the content (found: item, annotator, label, text"),
        (["label"], "column 'label' has another role already and cannot be the content"),
    ],
)
def test_bad_columns_are_refused(names, message):
    with pytest.raises(at.InputError) as caught:
        at.Labels.of(TABLE, content=names)
    assert message in str(caught.value)


def test_values_that_are_no_text_are_refused():
    table = TABLE.append_column("nested", pa.array([{"a": 1}] * 4))
    with pytest.raises(at.InputError, match="column 'nested' holds struct"):
        at.Labels.of(table, content=["nested"])


def test_marked_formulas_are_restored(read):
    assert content(read("item,annotator,label,text\na,x,1,'=1+1\n", content=["text"])) == {
        "a": "=1+1"
    }


def test_content_is_saved_and_survives_updates(tmp_path):
    fit = at.fit(TABLE, "majority", content=["text"])
    fit.save(tmp_path / "fit")
    fit = at.load(tmp_path / "fit")
    assert content(fit.data) == {"a": "first", "b": "second"}
    new = pa.table(
        {"item": ["c", "a"], "annotator": ["z", "z"], "label": [1, 1], "text": ["third", "x"]}
    )
    assert content(at.update(fit, new, content=["text"]).data) == {
        "a": "first", "b": "second", "c": "third",
    }  # fmt: skip
    assert content(at.update(fit, new.drop_columns("text")).data)["a"] == "first"


def test_data_of_label_studio_tasks(write):
    tasks = [
        {
            "id": number,
            "data": {"text": f"text {number}", "image": f"{number}.png"},
            "annotations": [
                {
                    "completed_by": who,
                    "result": [{"from_name": "q", "type": "choices", "value": {"choices": ["a"]}}],
                }
                for who in (1, 2)
            ],
        }
        for number in (7, 8)
    ]
    path = write("export.json", json.dumps(tasks))
    labels = at.read_labels(path, content=["text", "image"])
    assert content(labels) == {7: "text 7", 8: "text 8"}
    assert content(labels, "image")[7] == "7.png"
    with pytest.raises(
        at.InputError, match=r"no column 'audio' for the content \(found: image, text"
    ):
        at.read_labels(path, content=["audio"])


def test_inputs_of_mturk_batches(read):
    labels = read(
        "HITId,WorkerId,Input.url,Answer.label\nh,w,http://x/a.png,cat\nh,v,http://x/a.png,dog\n",
        "batch.csv",
        content=["Input.url"],
    )
    assert content(labels, "Input.url") == {"h": "http://x/a.png"}
