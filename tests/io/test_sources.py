"""Labels from several files, folders, patterns and standard input."""

import io
import os
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.io.conftest import refused_source as refused

import annotruth as at
from annotruth.io.readers import read_labels

HEADER = "item,annotator,label\n"
DAYS = ("1,ann,x\n1,bob,x\n", "2,ann,y\n2,bob,x\n", "3,ann,y\n")


@pytest.fixture
def days(tmp_path, monkeypatch) -> list[str]:
    """Three files of labels in the current folder, and one of all labels outside it."""
    (tmp_path / "all.csv").write_text(HEADER + "".join(DAYS))
    (tmp_path / "days").mkdir()
    monkeypatch.chdir(tmp_path / "days")
    names = [f"day-{number}.csv" for number in range(3)]
    for name, rows in zip(names, DAYS, strict=True):
        Path(name).write_text(HEADER + rows)
    return names


@pytest.mark.parametrize("memory", [None, "100MB"])
@pytest.mark.parametrize(
    "source", [["day-0.csv", Path("day-1.csv"), "day-2.csv"], "day-*.csv", "."]
)
def test_several_files_are_the_labels_of_one(days, source, memory):
    several = read_labels(source, memory=memory)
    assert several.same_as(read_labels("../all.csv"))
    assert several.read_as == "3 files"


def test_fit_takes_a_list_or_a_pattern(days):
    expected = at.fit("../all.csv", "gpm").items()
    assert at.fit(days, "gpm").items().equals(expected)
    assert at.fit("day-?.csv", "gpm").items().equals(expected)
    assert at.compare(days, ["majority"]).data.n_labels == 5


def test_files_come_in_the_order_they_are_named(days):
    assert read_labels(days[::-1]).items.to_pylist() == [3, 2, 1]


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet", ".jsonl"])
def test_several_files_of_every_kind(tmp_path, formats, compressions, table, suffix):
    kind, _, compression = suffix.removeprefix(".").partition(".")
    for name, part in (("a", table.slice(0, 2)), ("b", table.slice(2))):
        content = compressions[compression and f".{compression}"](formats[kind](part))
        (tmp_path / f"{name}{suffix}").write_bytes(content)
    labels = read_labels(tmp_path, covariates=["seconds"], content=["item"])
    assert labels.n_labels == 4
    assert labels.covariates.labels["seconds"].to_pylist() == [1.5] * 4
    assert labels.covariates.items["item"].to_pylist() == labels.items.to_pylist()


def test_types_of_numbers_are_reconciled_and_others_refused(tmp_path):
    for name, label in (("a", [1, 2]), ("b", [2.5, 1.0]), ("c", ["x", "y"])):
        table = pa.table({"item": [1, 2], "annotator": [name, name], "label": label})
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
    both = read_labels([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert both.scale.categories.to_pylist() == [1, 2, 2.5]
    message = refused(tmp_path)
    assert message.startswith(f"{tmp_path / 'c.parquet'}: column 'label' is string")


def test_platform_exports_are_combined(tmp_path):
    for day, name in enumerate(("one", "two")):
        text = f"HITId,WorkerId,Answer.animal\nh{day},ann,cat\nh{day},bob,dog\n"
        (tmp_path / f"{name}.csv").write_text(text)
    labels = read_labels(tmp_path)
    assert labels.n_items == 2
    assert labels.read_as.startswith("2 files, each MTurk batch results")


def test_duplicates_across_files_follow_the_same_rules(days):
    Path("day-3.csv").write_text(HEADER + "1,ann,y\n")
    assert refused("day-*.csv").startswith("day-0.csv and 3 more files: ")
    assert read_labels("day-*.csv", duplicates="keep").n_labels == 6
    assert read_labels("day-*.csv", duplicates="last").n_labels == 5


@pytest.mark.parametrize("memory", [None, "100MB"])
def test_a_file_that_differs_is_named(days, memory):
    Path("day-1.csv").write_text("item,worker,label\n1,ann,x\n")
    message = refused(days, memory=memory)
    assert message.startswith("day-1.csv: the columns are item, worker, label, and those of day-0")
    pa.parquet.write_table(pa.table({"item": [1], "annotator": [1], "label": [1]}), "x.parquet")
    assert refused(["day-0.csv", "x.parquet"], memory=memory).startswith("x.parquet: this is ")


@pytest.mark.parametrize("memory", [None, "100MB"])
def test_rows_at_fault_count_in_their_file(days, memory):
    Path("day-1.csv").write_text(HEADER + "4,ann,x\n,bob,x\n")
    assert refused(days, memory=memory).startswith("day-1.csv: row 2 ")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("week-*.csv", "week-*.csv: no file matches this pattern"),
        ("day-0.csv/day-1.csv", "day-0.csv/day-1.csv: no such file: check the path"),
        (["day-0.csv", "nowhere.csv"], "nowhere.csv: no such file"),
        (["day-0.csv", "./day-0.csv"], "./day-0.csv is read twice: name it once"),
        (["day-*.csv", "day-0.csv"], "day-0.csv is read twice"),
    ],
)
def test_sources_at_fault_are_reported(days, source, message):
    assert refused(source).startswith(message)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (None, "of type NoneType"),
        (b"day-0.csv", "of type bytes"),
        (["day-0.csv", 5], "of type int"),
        ([None], "of type NoneType"),
        ([], "an empty list"),
        (pa.table({"item": ["a"]}), "of type Table"),
    ],
)
def test_what_is_no_path_is_refused(source, what):
    message = f"the source is {what}: give the path of a file, or a list of paths; frames and"
    assert refused(source).startswith(message)
    with pytest.raises(at.InputError, match=rf"{message} lists of rows are for annotruth\.rank"):
        at.read_comparisons(source)


def test_folders_at_fault_are_reported(days, tmp_path):
    Path("sub.csv").mkdir()
    assert "several kinds of files (.csv, folders)" in refused(".")
    assert read_labels("*.csv").n_labels == 5  # folders among the matches are left out
    assert refused("s*.csv") == "s*.csv: only folders match this pattern: check the path"
    Path("sub.csv").rmdir()
    Path("notes.txt").write_text("x")
    assert "such as './*.csv'" in refused("./")
    Path("mixed/sub").mkdir(parents=True)
    Path("mixed/README").write_text("x")
    assert "several kinds of files (files without a suffix, folders)" in refused("mixed")
    at.fit(days, "majority").save(tmp_path / "fit")
    assert "this is a saved fit: name it alone" in refused([days[0], tmp_path / "fit"])


def test_marks_of_spark_and_hidden_files_are_left_out(days):
    Path("_SUCCESS").write_text("")
    Path(".part.crc").write_text("crc")
    assert read_labels(".").n_labels == 5


def test_a_name_with_the_marks_of_a_pattern_is_a_file(days):
    Path("day-0.csv").rename("day[1].csv")
    assert read_labels("day[1].csv").n_labels == 2


def test_a_file_that_disappears_is_named(days, monkeypatch):
    from annotruth.io import readers

    parse = readers.parse_opened

    def parse_and_remove(*arguments):
        Path("day-2.csv").unlink(missing_ok=True)
        return parse(*arguments)

    monkeypatch.setattr(readers, "parse_opened", parse_and_remove)
    assert refused("day-*.csv") == "day-2.csv: no such file: check the path"


def test_a_named_pipe_among_files(days):
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_text, args=(HEADER + "9,ann,x\n",))
    writer.start()
    labels = read_labels(["day-0.csv", "pipe"])
    writer.join()
    assert labels.items.to_pylist() == [1, 9]


def test_thousands_of_files(tmp_path):
    for number in range(2000):
        (tmp_path / f"{number}.csv").write_text(f"{HEADER}{number},ann,x\n")
    assert read_labels(tmp_path).n_items == 2000


def pipe_in(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_standard_input_is_recognised_by_its_bytes(monkeypatch, formats, compressions, table, kind):
    for compression in ("", ".gz"):
        pipe_in(monkeypatch, compressions[compression](formats[kind](table)))
        assert read_labels("-").n_labels == 4


def test_standard_input_at_fault(monkeypatch):
    pipe_in(monkeypatch, b"")
    assert refused("-") == "standard input: the file is empty"
    pipe_in(monkeypatch, HEADER.encode() * 2000)
    assert "the standard input holds more than 10.0 kB" in refused("-", max_size="10kB")
    pipe_in(monkeypatch, b"")
    assert refused(["-", "-"]) == "standard input is read twice: name it once"
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert "nothing is piped into it" in refused("-")


def test_commands_take_several_files(run, days, tmp_path, monkeypatch):
    code, out, _ = run("fit", *days[:2], "--save", tmp_path / "fit", "--report", "r.html")
    assert (code, "read as: 2 files" in out) == (0, True)
    assert "day-0.csv and 1 more file" in Path("r.html").read_text()
    assert run("update", tmp_path / "fit", "day-2.csv", "day-1.csv")[0] == 0
    assert at.load(tmp_path / "fit").data.n_labels == 5
    for command in (["next"], ["plan", "--target", "accuracy=0.9"], ["compare"], ["report"]):
        assert run(command[0], *days, *command[1:], "--quiet")[::2] == (0, "")
    pipe_in(monkeypatch, (HEADER + DAYS[0]).encode())
    assert run("fit", "-", "--quiet", "--report", "stdin.html")[0] == 0
    assert "standard input" in Path("stdin.html").read_text()


@pytest.mark.parametrize("source", ["day-*.csv", "."])
def test_outputs_do_not_replace_inputs(run, days, source):
    code, _, err = run("fit", source, "--keep", "day-1.csv", "--force")
    assert (code, "is also the input LABELS" in err) == (2, True)
