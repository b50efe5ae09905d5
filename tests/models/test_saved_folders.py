"""Saving over a fit, locks, old formats, and fits that were tampered with."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz.tampering import change_column, data_folder, read_entries, tampered, write_entries

import annotruth as at
from annotruth.models.storage import folder as storage
from annotruth.models.storage import locked

OLD = [("a", "x", 1), ("a", "y", 2), ("b", "x", 2), ("b", "y", 2), ("b", "z", 1)]
NEW = [*OLD, ("c", "z", 1)]


@pytest.fixture
def saved(tmp_path):
    at.fit(OLD, gold={"a": 2}).save(tmp_path / "fit")
    return tmp_path / "fit"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_other_files_stay_and_old_ones_go(saved):
    (saved / "notes.txt").write_text("mine")
    (saved / "data-mine").mkdir()
    before = read_entries(saved)["data"]
    at.fit(NEW).save(saved)
    now = read_entries(saved)["data"]
    assert now != before
    assert names(saved) == sorted([".lock", "data-mine", now, "fit.json", "notes.txt"])
    assert at.load(saved).data.n_labels == 6


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["sync_file", "sync_folder", "check_replaceable"])
def test_a_failed_save_leaves_the_old_fit(saved, monkeypatch, failure, place):
    def fail(*_):
        raise failure

    before = names(saved)
    monkeypatch.setattr(storage, place, fail)
    with pytest.raises((at.OutputError, KeyboardInterrupt)):
        at.fit(NEW).save(saved)
    assert names(saved) == before
    assert at.load(saved).data.n_labels == 5


def test_an_interruption_right_after_the_switch_leaves_the_new_fit(saved, monkeypatch):
    replace = Path.replace

    def interrupted(path, target):
        replace(path, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        at.fit(NEW).save(saved)
    monkeypatch.undo()
    assert at.load(saved).data.n_labels == 6


def test_a_failed_first_save_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left")

    monkeypatch.setattr(storage, "sync_file", full)
    with pytest.raises(at.OutputError, match="free some space"):
        at.fit(OLD).save(tmp_path / "deep" / "fit")
    assert names(tmp_path) == []


def test_leftovers_of_killed_processes_are_removed(saved):
    leftover = saved / "data-0123456789abcdef"
    leftover.mkdir()
    (leftover / "items.arrow").write_text("half")
    assert at.load(saved).data.n_labels == 5
    at.fit(NEW).save(saved)
    assert not leftover.exists()


def test_a_reader_follows_to_the_new_fit(saved, monkeypatch):
    read, saves = storage._read_files, []

    def read_late(folder, entries):
        if not saves:
            saves.append(at.fit(NEW).save(folder))  # removes the files that are read now
        return read(folder, entries)

    monkeypatch.setattr(storage, "_read_files", read_late)
    assert at.load(saved).data.n_labels == 6


def test_a_fit_in_another_format_is_refused(saved):
    manifest = saved / "fit.json"
    manifest.write_text(manifest.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(at.InputError, match=r"saved in format 1, .* fit the labels again"):
        at.load(saved)


def test_a_lock_excludes_other_threads_but_not_its_own(saved, monkeypatch):
    monkeypatch.setattr(storage, "WAIT_SECONDS", 0.05)
    waited, errors = [], []

    def save():
        try:
            with locked(saved, on_wait=lambda: waited.append(True)):
                pass
        except at.OutputError as error:
            errors.append(str(error))

    with locked(saved):
        at.fit(NEW).save(saved)
        thread = threading.Thread(target=save)
        thread.start()
        thread.join()
    assert waited == [True]
    assert "another process is writing to it; try again when that has ended" in errors[0]
    save()
    assert len(errors) == 1


def test_no_lock_is_made_in_a_folder_without_a_fit(tmp_path):
    with locked(tmp_path):
        assert names(tmp_path) == []
    with locked(tmp_path / "missing"):
        assert names(tmp_path) == []


@pytest.mark.parametrize("pattern", ["items.arrow", "labels.arrow", "parameter-*.arrow"])
def test_every_changed_byte_is_noticed(saved, pattern):
    path = min(data_folder(saved).glob(pattern))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(at.InputError, match=f"{path.name} was changed after it was saved"):
        at.load(saved)
    path.write_bytes(content[:-1])
    with pytest.raises(at.InputError, match=f"{path.name} was changed after it was saved"):
        at.load(saved)


def test_changed_entries_are_noticed(saved):
    entries = read_entries(saved)
    write_entries(saved, entries | {"n_dropped": 3}, seal=False)
    with pytest.raises(at.InputError, match="was changed after it was saved"):
        at.load(saved)
    write_entries(saved, entries | {"n_dropped": 3})
    assert at.load(saved).data.n_dropped == 3


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"surprise": 1}, "unexpected entry 'surprise'"),
        ({"model": "nonsense"}, "the entry model in fit.json is 'nonsense'"),
        ({"converged": "yes"}, "the entry converged"),
        ({"n_items": 3}, "n_items is not the number of rows"),
        ({"n_items": 2.0}, "the entry n_items"),
        ({"n_dropped": True}, "the entry n_dropped"),
        ({"n_iter": 9_999}, "n_iter is not the length of the history"),
        ({"stop_reason": "\ud800"}, "the entry stop_reason"),
        ({"frame": "os"}, "the entry frame"),
        ({"history": {"log_likelihood": [], "objective": [[1]]}}, "the entry history"),
        ({"bins": [1, 2]}, "bins do not ascend"),
        ({"settings": {"tol": [1]}}, "the entry settings"),
        ({"data": "../elsewhere"}, "names other files"),
        ({"data": None}, "the entry data"),
    ],
)
def test_wrong_entries_are_refused_in_one_line(saved, change, line):
    write_entries(saved, read_entries(saved) | change)
    with pytest.raises(at.InputError, match=line) as raised:
        at.load(saved)
    assert "\n" not in str(raised.value)


def test_missing_entries_are_refused(saved):
    entries = read_entries(saved)
    optional = {"n_repeated", "left_out", "fitted_at", "scale_reason"}
    for name in entries.keys() - {"checksum", "format", "files"} - optional:
        write_entries(saved, {key: value for key, value in entries.items() if key != name})
        with pytest.raises(at.InputError, match=f"no entry {name} in fit.json"):
            at.load(saved)


def test_deeply_nested_entries_are_refused(saved):
    text = json.dumps(read_entries(saved))
    (saved / "fit.json").write_text(text[:-1] + ', "x": ' + "[" * 50_000 + "]" * 50_000 + "}")
    with pytest.raises(at.InputError, match="cannot be read"):
        at.load(saved)


@pytest.mark.parametrize(
    ("table", "column", "values", "line"),
    [
        ("labels", "row", [0, 1, 2, 3, 3], "a row is there twice"),
        ("labels", "annotator", [0, 0, 0, 1, 1], "an annotator has no label"),
        ("labels", "annotator", [0, 1, None, 0, 1], "annotator is not of type int32"),
        ("cells", "category", [0, 1, 1, 0], "categories of an item do not ascend"),
        ("cells", "category", [0, 1, 0, 0], "categories of an item do not ascend"),
        # The first values out of range, with which kernels would read beyond the ends of arrays.
        ("labels", "annotator", [0, 1, 2, 0, 3], r"annotator has a code outside 0\.\.2"),
        ("labels", "annotator", [0, 1, 2, 0, -1], r"annotator has a code outside 0\.\.2"),
        ("cells", "category", [0, 2, 0, 1], r"category has a code outside 0\.\.1"),
        ("items", "known", [1, 2], r"known has a code outside -1\.\.1"),
        ("items", "known", [1, -2], r"known has a code outside -1\.\.1"),
        ("distribution", "category", [5, 5, 5], r"category has a code outside 0\.\.1"),
        ("items", "cells_from", [1, 2], "cells_from does not ascend"),
        ("items", "cells_from", [0, 4], "cells_from does not ascend"),
        ("items", "cells_from", [0, 0], "cells_from does not ascend"),
        ("cells", "labels_from", [0, 1, 2, 5], "labels_from does not ascend"),
        ("categories", "category", [1, 1], "a category is there twice"),
        ("distribution", "probability", [1.0, 0.5, np.nan], "not finite"),
        ("distribution", "probability", [1.0, -0.5, 0.5], r"outside 0\.\.1"),
        ("annotators", "reliability", [0.5, 2.0, 0.5], r"outside 0\.\.1"),
        ("annotators", "annotator", ["x", None, "z"], "annotator has a missing"),
    ],
)
def test_wrong_values_are_refused(saved, table, column, values, line):
    change_column(saved, table, column, values)
    with pytest.raises(at.InputError, match=line):
        at.load(saved)


def test_a_pipe_in_place_of_a_file_is_refused(saved):
    path = data_folder(saved) / "items.arrow"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(at.InputError, match=r"items.arrow was changed"):
        at.load(saved)


@pytest.mark.filterwarnings("ignore")
def test_tampered_fits_are_used_or_refused(saved, tmp_path):
    rng = np.random.default_rng(0)
    messages = []
    for number in range(150):
        what = tampered(saved, tmp_path / str(number), rng)
        try:
            fit = at.load(tmp_path / str(number))
            fit.items(), fit.annotators(), fit.labels(), fit.summary()
        except at.AnnotruthError as error:
            messages.append(f"{what}: {error}")
    assert len(messages) > 100
    assert not [message for message in messages if "\n" in message]
