"""Writes are complete or leave nothing behind."""

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from annotruth.errors import OutputError
from annotruth.io import system
from annotruth.io.atomic import atomic_write, atomic_write_folder


def all_paths(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def write_file(path: Path, failure: BaseException | None = None) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        if failure:
            raise failure


def write_folder(
    folder: Path, failure: BaseException | None = None, names: tuple[str, ...] = ("a.csv", "b.csv")
) -> None:
    with atomic_write_folder(folder) as temporary:
        for name in names:
            (temporary / name).write_text("new")
        if failure:
            raise failure


WRITERS = pytest.mark.parametrize("write", [write_file, write_folder])


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "deep" / "er" / "report.html"
    with atomic_write(path) as temporary:
        temporary.write_text("old")
        assert not path.exists()
        assert temporary.parent.parent == path.parent
        assert temporary.suffix == ".html"
    with atomic_write(path) as temporary, atomic_write(path) as other:
        assert temporary != other
        temporary.write_text("new")
        other.write_text("other")
        assert path.read_text() == "old"
    assert path.read_text() == "new"  # the inner one ends first, the outer one last
    assert all_paths(path.parent) == ["report.html"]


@pytest.mark.parametrize(("write", "name"), [(write_file, "out"), (write_folder, "a.csv")])
def test_content_reaches_the_disk_before_a_file_takes_its_place(tmp_path, monkeypatch, write, name):
    sync, synced = system.sync_file, []

    def sync_file(path):
        assert not (tmp_path / "out").exists()
        synced.append((path.name, path.read_text()))
        sync(path)

    monkeypatch.setattr(system, "sync_file", sync_file)
    write(tmp_path / "out")
    assert (name, "new") in synced


@WRITERS
def test_leftovers_of_killed_processes_are_removed(tmp_path, write):
    leftover = tmp_path / ".annotruth-0123456789abcdef"
    (leftover / "new").mkdir(parents=True)
    (leftover / "new" / "a.csv").write_text("half of it")
    (tmp_path / ".annotruth-mine").mkdir()
    write(tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".annotruth-mine", "out"]


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt()])
def test_a_failing_writer_leaves_nothing(tmp_path, failure):
    (tmp_path / "old").write_text("old")
    for write, path in ((write_file, "a/b/c"), (write_file, "old"), (write_folder, "d/e")):
        with pytest.raises(type(failure)):
            write(tmp_path / path, failure)
    with pytest.raises(type(failure)):
        write_folder(tmp_path, failure, names=("old", "more"))
    assert all_paths(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_folders_that_others_use_are_not_removed(tmp_path):
    message = "No such file"  # the block writes nothing
    with pytest.raises(OutputError, match=message), atomic_write(tmp_path / "a" / "b" / "x"):
        (tmp_path / "a" / "theirs").write_text("kept")
    assert all_paths(tmp_path) == ["a", "a/theirs"]


def test_a_new_folder_appears_with_all_its_files(tmp_path):
    folder = tmp_path / "results" / "fit"
    with atomic_write_folder(folder) as temporary:
        (temporary / "items.csv").write_text("1")
        (temporary / "fit.json").write_text("{}")
        assert not folder.exists()
        with atomic_write_folder(folder) as other:
            (other / "items.csv").write_text("2")
    assert (folder / "items.csv").read_text() == "1"
    assert all_paths(tmp_path) == ["results", "results/fit", "results/fit/fit.json",
                                    "results/fit/items.csv"]  # fmt: skip
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode)


def test_no_file_is_replaced_when_one_cannot_be(tmp_path):
    (tmp_path / "a.csv").write_text("old")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(OutputError, match="a folder of that name exists") as caught:
        write_folder(tmp_path)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "a.csv").read_text() == "old"
    assert all_paths(tmp_path) == ["a.csv", "b.csv"]


@WRITERS
def test_a_path_under_a_regular_file(tmp_path, write):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match=r"cannot write .*file/x: .*choose another path"):
        write(tmp_path / "file" / "x")
    assert all_paths(tmp_path) == ["file"]


def test_a_file_in_place_of_a_folder_and_a_folder_in_place_of_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match=r"/file: .*a file is in the place of a folder"):
        write_folder(tmp_path / "file")
    with pytest.raises(OutputError, match="a folder of that name exists"):
        write_file(tmp_path)
    assert all_paths(tmp_path) == ["file"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_or_device_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="not a regular file"):
        write_file(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("code", "step"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EACCES, "a place that you may write to"),
        (errno.EROFS, "a place that you may write to"),
        (errno.ENAMETOOLONG, "shorter path"),
        (errno.EIO, "choose another path"),
    ],
)
@WRITERS
def test_errors_of_the_system_are_one_line(tmp_path, write, code, step):
    with pytest.raises(OutputError, match=step) as caught:
        write(tmp_path / "a" / "x", OSError(code, "it is\nso"))
    assert str(caught.value).startswith(f"cannot write {tmp_path / 'a' / 'x'}: it is so; ")
    assert all_paths(tmp_path) == []


def test_a_full_disk_at_the_rename(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match="No space left"):
        write_file(tmp_path / "x")
    assert all_paths(tmp_path) == []


def test_an_output_error_of_the_block_is_not_changed(tmp_path):
    with pytest.raises(OutputError, match=r"^mine$"):
        write_folder(tmp_path, OutputError("mine"))


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_write(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("write", [atomic_write, atomic_write_folder])
def test_a_link_to_itself_is_not_replaced(tmp_path, write):
    (tmp_path / "link").symlink_to("link")
    text = "Too many levels of symbolic links; the link leads to itself"
    with pytest.raises(OutputError, match=text), write(tmp_path / "link") as temporary:
        raise AssertionError(f"{temporary} may be written")
    assert (tmp_path / "link").is_symlink()


def test_many_writers_leave_one_complete_file(tmp_path):
    path = tmp_path / "x.csv"

    def write(number: int) -> None:
        with atomic_write(path) as temporary:
            temporary.write_text(str(number) * 10_000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    text = path.read_text()
    assert text == text[0] * 10_000
    assert all_paths(tmp_path) == ["x.csv"]
