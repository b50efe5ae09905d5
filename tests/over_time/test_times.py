"""Columns of times: recognised, parsed, refused; and what is said where they say nothing."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.engines.memory import MemoryEngine, MemorySession
from annotruth.errors import AnnotruthWarning, InputError
from annotruth.observations.covariates import parse_times

ROWS = {"item": ["a", "a", "b", "b"], "annotator": ["x", "y"] * 2, "label": [1, 2, 2, 2]}


def read(**columns):
    return at.Labels.of(pa.table(ROWS | columns))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-05-03T10:00:00Z", "2024-05-03T12:30:00+02:00"], ["03 10:00", "03 10:30"]),
        (["2024-05-03 10:00:00", None], ["03 10:00", None]),
        (["2024-05-03 10:00:00 UTC", "2024-05-03T12:00:00+02:00"], ["03 10:00", "03 10:00"]),
        (["Fri May 03 10:00:00 PDT 2024", "NA"], ["03 10:00", None]),
        (["5/3/2024 10:00", "5/13/2024 9:30"], ["03 10:00", "13 09:30"]),
        (["13/5/2024 10:00", "3/5/2024 9:30"], ["13 10:00", "03 09:30"]),
        (["1714730400", "1714732200"], ["03 10:00", "03 10:30"]),
        ([1714730400000, 1714732200000], ["03 10:00", "03 10:30"]),
    ],
)
def test_times_are_parsed(values, expected):
    parsed = parse_times("time", "time", pa.array(values), first_row=0, given=True)
    found = [None if one is None else f"{one:%d %H:%M}" for one in parsed.to_pylist()]
    assert found == expected


def test_other_numbers_stay_numbers():
    parsed = parse_times("time", "time", pa.array(["3", "1.5"]), first_row=0, given=True)
    assert parsed.to_pylist() == [3.0, 1.5]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("created_at", "time"),
        ("Timestamp", "time"),
        ("position", "order"),
        ("lead_time", "seconds"),
        ("response_time", "seconds"),
    ],
)
def test_columns_are_recognised_by_usual_names(name, role):
    covariates = read(**{name: [4, 3, 2, 1]}).covariates.labels
    assert list(covariates) == [role]
    assert sorted(covariates[role].to_pylist()) == [1.0, 2.0, 3.0, 4.0]


def test_milliseconds_become_seconds_and_negative_ones_are_missing():
    covariates = read(milliseconds=[1500, -1, 20, 40]).covariates.labels
    assert covariates["seconds"].to_pylist() == [1.5, None, 0.02, 0.04]


def test_other_names_are_given_by_columns(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label,when\na,x,1,2024-05-03\nb,x,2,2024-05-04\n")
    assert "time" in at.read_labels(path, columns={"time": "when"}).covariates.labels
    assert not at.read_labels(path).covariates
    with pytest.raises(InputError, match="no column 'then' for the times"):
        at.read_labels(path, columns={"time": "then"})
    with pytest.raises(InputError, match="the roles are item, annotator, label, time, order, sec"):
        at.read_labels(path, columns={"clock": "when"})


def test_a_time_that_does_not_parse_is_refused_with_its_row(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "item,annotator,label,time\na,x,1,2024-05-03\nb,x,,never\nb,x,2,\nb,y,2,tomorrow\n"
    )
    with pytest.raises(InputError, match=r"time is 'never' in row 2 of column 'time'.*correct it"):
        at.read_labels(path)


def test_a_column_without_any_time_is_not_used():
    with pytest.warns(AnnotruthWarning, match=r"holds no order of labels \(order is 'first' in"):
        labels = read(order=["first", "second", "first", "second"])
    assert not labels.covariates
    with pytest.raises(InputError, match="'first' in row 1"):
        at.Labels.of(
            pa.table(ROWS | {"order": ["first", "second", "third", "fourth"]}),
            columns={"order": "order"},
        )


@pytest.mark.parametrize("role", ["time", "order", "seconds"])
@pytest.mark.parametrize("missing", ["", "NA", None])
def test_an_empty_column_is_one_warning(role, missing):
    expected = f"column '{role}' holds no {role} of labels .every value is missing. and is not used"
    with pytest.warns(AnnotruthWarning, match=expected) as said:
        labels = read(**{role: pa.array([missing] * 4, pa.string())})
    assert len(said) == 1
    assert not labels.covariates


def test_times_that_are_all_the_same_are_one_line_of_the_summary():
    numbers = [n for n in range(30) for _ in "xyz"]
    rows = {"item": numbers, "annotator": list("xyz") * 30, "label": [n % 3 for n in numbers]}
    fit = at.fit(pa.table(rows | {"time": ["2024-05-03"] * 90}))
    lines = [line for line in fit.summary().splitlines() if "over time" in line]
    assert lines == [
        "over time: the time is the same for all labels of an annotator: nothing to say"
    ]
    assert len(fit.over_time()) == 0
    assert fit.item_table().equals(at.fit(pa.table(rows)).item_table())


def test_labels_without_a_time_are_counted():
    made = at.simulate.changing(n_items=60, n_annotators=10, seed=0)
    data = made.labels
    table = data.to_arrow()
    order = data.in_row_order(data.covariates.labels["order"].to_numpy()).astype(object)
    order[:30] = None
    fit = at.fit(table.append_column("order", [pa.array(order)]))
    assert "30 labels without one" in fit.summary()
    assert fit.over_time()["n_labels"].to_numpy().sum() == data.n_labels - 30


def test_other_models_say_that_they_do_not_use_times():
    made = at.simulate.changing(n_items=40, n_annotators=8, ordinal=False, seed=0)
    fit = at.fit(made.labels, "dawid-skene")
    assert "over time: dawid-skene does not use times" in fit.summary()
    assert len(fit.changes_over_time()) == 0
    with pytest.raises(InputError, match="no results on over time: fit labels with a column time"):
        at.fit([("a", "x", 1), ("a", "y", 1)]).over_time()


def test_on_disk_and_on_spark_times_are_refused_by_name_before_reading(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label,when\na,x,1,3\nb,x,2,4\nb,y,2,5\n")
    with pytest.raises(InputError, match="labels on disk do not carry their time: leave time out"):
        at.fit(path, columns={"time": "when"}, memory="1GB")
    path.write_text("item,annotator,label,time,order\na,x,1,3,1\nb,x,2,4,2\nb,y,2,never,1\n")
    expected = r"columns 'time', 'order' are not used: labels on disk \(memory\) do not carry"
    with pytest.warns(AnnotruthWarning, match=expected):
        assert not at.fit(path, memory="1GB").further  # the columns are not read


def test_an_engine_without_the_kernels_over_time_computes_them_in_memory(monkeypatch):
    made = at.simulate.changing(n_items=60, n_annotators=10, seed=0)
    expected = at.fit(made.labels)
    engine = MemoryEngine()
    engine.capabilities = replace(MemoryEngine.capabilities, over_time=False)
    run, ran = MemorySession.run_over_annotators, []

    def refuse(self, kernel, *arguments, **arrays):
        ran.append(kernel)
        assert self.engine_number == 0 or "over_time" not in kernel
        return run(self, kernel, *arguments, **arrays)

    def open_numbered(self, data, opened=MemoryEngine.open):
        session = opened(self, data)
        session.engine_number = int(self is engine)
        return session

    monkeypatch.setattr(MemoryEngine, "open", open_numbered)
    monkeypatch.setattr(MemorySession, "run_over_annotators", refuse)
    fit = at.fit(made.labels, engine=engine)
    assert any("over_time" in kernel for kernel in ran)
    assert fit.further_table("over_time", "over_time").equals(
        expected.further_table("over_time", "over_time")
    )


def test_label_studio_and_prodigy_exports_have_times(tmp_path):
    def annotation(who, choice, hour, seconds):
        result = [{"type": "choices", "from_name": "q", "value": {"choices": [choice]}}]
        made = f"2024-05-03T{hour:02}:00:00Z"
        return {"completed_by": who, "result": result, "created_at": made, "lead_time": seconds}

    tasks = [
        {"id": n, "data": {}, "annotations": [annotation(1, "a", n, 2.5), annotation(2, "b", n, 4)]}
        for n in range(3)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    covariates = at.read_labels(path).covariates.labels
    assert sorted(covariates["seconds"].to_pylist()) == [2.5, 2.5, 2.5, 4.0, 4.0, 4.0]
    assert {f"{one:%H}" for one in covariates["time"].to_pylist()} == {"00", "01", "02"}
    lines = [
        {"_input_hash": n, "_task_hash": n, "answer": "accept", "accept": ["a"], "options": [],
         "_annotator_id": who, "_timestamp": 1714730400 + n}
        for n in range(3) for who in "xy"
    ]  # fmt: skip
    path = tmp_path / "prodigy.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert at.read_labels(path).covariates.labels["time"].null_count == 0


def test_argilla_responses_have_times(tmp_path):
    """Both shapes of responses; the time is that of the last change, else of the first answer."""
    path = tmp_path / "records.json"
    made = {"inserted_at": "2024-05-03T10:00:00", "updated_at": "2024-05-03T12:00:00.123456"}
    only = {"inserted_at": "2024-05-03T11:00:00"}
    listed = [
        {"user_id": who, "status": "submitted", "values": {"q": {"value": "a"}}, **times}
        for who, times in (("x", made), ("y", only), ("z", {}))
    ]
    by_question = [{"user_id": "x", "value": "a", **made}, {"user_id": "y", "value": "b", **only}]
    for responses, expected in (
        (listed, ["12:00", "11:00", None]),
        ({"q": by_question}, ["12:00", "11:00"]),
    ):
        path.write_text(json.dumps([{"id": 1, "fields": {}, "responses": responses}]))
        labels = at.read_labels(path)
        times = labels.covariates.labels["time"].to_pylist()
        assert [None if one is None else f"{one:%H:%M}" for one in times] == expected


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        (
            {"session_start": 1714730000.0, "session_end": 1714730400.0, "total_time_ms": 45500},
            {"time": ["10:00"], "seconds": [45.5]},
        ),
        ({"session_start": 1714730400.0, "session_end": None}, {"time": ["10:00"]}),
        ({"total_time_ms": "many"}, {}),
        ("none", {}),
        (None, {}),
    ],
)
def test_potato_lines_have_times(tmp_path, behavior, expected):
    line = {"id": 1, "label_annotations": {"q": {"a": "true"}}, "behavioral_data": behavior}
    path = tmp_path / "ann" / "annotated_instances.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(line) + "\n")
    found = {
        role: [f"{one:%H:%M}" if role == "time" else one for one in column.to_pylist()]
        for role, column in at.read_labels(path).covariates.labels.items()
    }
    assert found == expected


def test_mturk_and_toloka_tables_have_times(tmp_path):
    path = tmp_path / "batch.csv"
    path.write_text(
        "HITId,WorkerId,SubmitTime,WorkTimeInSeconds,Answer.q\n"
        "h1,w1,Fri May 03 10:00:00 PDT 2024,12,a\nh1,w2,Fri May 03 11:00:00 PDT 2024,8,b\n"
    )
    covariates = at.read_labels(path).covariates.labels
    assert covariates["seconds"].to_pylist() == [12.0, 8.0]
    assert [f"{one:%H}" for one in covariates["time"].to_pylist()] == ["10", "11"]
    path.write_text(
        "INPUT:x,OUTPUT:q,ASSIGNMENT:worker_id,ASSIGNMENT:submitted\n"
        "i1,a,w1,2024-05-03T10:00:00\ni1,b,w2,2024-05-03T11:00:00\n"
    )
    assert len(at.read_labels(path).covariates.labels["time"]) == 2


def test_orders_of_equal_times_are_by_the_column_order():
    table = pa.table(
        {
            "item": np.arange(6),
            "annotator": ["x"] * 6,
            "label": [1, 2] * 3,
            "time": ["2024-05-03"] * 3 + ["2024-05-02"] * 3,
            "order": [3, 2, 1, 6, 5, 4],
        }
    )
    from contextlib import closing

    from annotruth.analyses.over_time.sequences import read_clock
    from annotruth.engines import get_engine

    labels = at.Labels.of(table)
    with closing(get_engine("memory").open(labels)) as session:
        clock = read_clock(session, labels)
    assert labels.row[clock.order].tolist() == [5, 4, 3, 2, 1, 0]
    assert clock.is_date
