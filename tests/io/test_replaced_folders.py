"""The files of an existing folder are replaced all at once, and everything else in it stays."""

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest

from annotruth.io import atomic, system
from annotruth.io.atomic import atomic_write, atomic_write_folder


def write(folder: Path, text: str) -> None:
    with atomic_write_folder(folder) as temporary:
        for name in ("a.csv", "b.csv", "c.csv"):
            (temporary / name).write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


NEW = {"a.csv": "new", "b.csv": "new", "c.csv": "new"}
OLD = {"a.csv": "old", "b.csv": "old", "c.csv": "old"}
MINE = {"mine/deep.txt": "mine", "notes.txt": "mine"}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "out"
    write(folder, "old")
    (folder / "notes.txt").write_text("mine")
    (folder / "mine").mkdir()
    (folder / "mine" / "deep.txt").write_text("mine")
    (folder / "link").symlink_to("nowhere")
    return folder


@pytest.fixture
def no_exchange(monkeypatch):
    def fail(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(system, "exchange_folders", fail)


def check_new(folder: Path) -> None:
    assert contents(folder) == NEW | MINE
    assert names(folder) == ["a.csv", "b.csv", "c.csv", "link", "mine", "notes.txt"]
    assert (folder / "link").readlink() == Path("nowhere")
    assert not (folder / "mine").is_symlink()
    assert names(folder.parent) == ["out"]


def test_everything_else_in_the_folder_stays(folder):
    folder.chmod(0o750)
    before, notes = folder.stat(), (folder / "notes.txt").stat()
    write(folder, "new")
    check_new(folder)
    after = folder.stat()
    assert (after.st_ino, stat.S_IMODE(after.st_mode)) == (before.st_ino, 0o750)
    assert (folder / "notes.txt").stat().st_ino == notes.st_ino


def test_the_current_folder_stays_the_current_one(folder, monkeypatch):
    monkeypatch.chdir(folder)
    write(Path(), "new")
    assert Path("a.csv").read_text() == "new"
    check_new(folder)


class Killed(BaseException):
    """Ends a write where a kill would, without any clean-up."""


@pytest.fixture
def killed(monkeypatch):
    """Return a function that writes and is killed at the nth call of a function."""

    def run(folder: Path, name: str, number: int, *, after: bool = False) -> None:
        module = system if name == "exchange_folders" else atomic
        original, calls = getattr(module, name), []

        def count(*arguments):
            calls.append(name)
            if len(calls) == number and not after:
                raise Killed
            result = original(*arguments)
            if len(calls) == number:
                raise Killed
            return result

        with monkeypatch.context() as patched:
            patched.setattr(module, name, count)
            patched.setattr(atomic, "_finish", lambda _, lock: os.close(lock))
            with pytest.raises(Killed):
                write(folder, "new")

    return run


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("_add_other_files", 1, OLD),
        ("exchange_folders", 1, OLD),
        ("_carry_files", 1, NEW),
        ("exchange_folders", 2, NEW),
        ("_carry_files", 2, NEW),
    ],
)
def test_a_killed_write_is_completed_or_undone(folder, killed, name, number, expected, after):
    if name == "exchange_folders" and number == 1 and after:
        expected = NEW
    killed(folder, name, number, after=after)
    seen = contents(folder)
    seen.pop(".annotruth-temporary", None)
    assert {name: text for name, text in seen.items() if "/" not in name} == expected | {
        "notes.txt": "mine"
    }
    assert (folder / "mine" / "deep.txt").read_text() == "mine"
    with atomic_write(folder.parent / "other.txt") as temporary:  # any write to the same place
        temporary.write_text("x")
    (folder.parent / "other.txt").unlink()
    assert contents(folder) == expected | MINE
    assert names(folder.parent) == ["out"]
    write(folder, "new")
    check_new(folder)


def test_files_that_others_create_meanwhile_stay(folder, monkeypatch):
    exchange, calls = system.exchange_folders, []

    def others_write(one, other):
        exchange(one, other)
        calls.append(other)
        if len(calls) == 1:
            (folder / "theirs.txt").write_text("theirs")
            (folder / "theirs").mkdir()

    monkeypatch.setattr(system, "exchange_folders", others_write)
    write(folder, "new")
    assert contents(folder) == NEW | MINE | {"theirs.txt": "theirs"}
    assert (folder / "theirs").is_dir()


def test_a_folder_whose_workspace_somebody_removed_is_usable(folder, killed):
    killed(folder, "_carry_files", 1)
    (left,) = folder.parent.glob(".annotruth-*")
    shutil.rmtree(left)
    write(folder, "newer")
    assert (folder / "a.csv").read_text() == "newer"
    assert not (folder / ".annotruth-temporary").exists()


@pytest.mark.usefixtures("no_exchange")
def test_files_are_renamed_where_folders_cannot_be_exchanged(folder):
    inode = folder.stat().st_ino
    write(folder, "new")
    check_new(folder)
    assert folder.stat().st_ino == inode


@pytest.mark.usefixtures("no_exchange")
def test_the_next_write_completes_renames(folder, monkeypatch):
    replace = Path.replace

    def fail_at_b(path, target):
        if Path(target).name == "b.csv":
            raise OSError(errno.EIO, "Input/output error")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail_at_b)
    with pytest.raises(OSError, match="Input/output error"):
        write(folder, "new")
    assert (folder / "a.csv").read_text() == "new"
    assert (folder / "b.csv").read_text() == "old"
    monkeypatch.setattr(Path, "replace", replace)
    atomic.remove_leftovers(folder)
    check_new(folder)


def test_a_folder_in_a_folder_that_is_read_only(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != folder.parent)
    write(folder, "new")
    check_new(folder)


def test_a_workspace_in_use_is_no_leftover(tmp_path):
    with atomic_write(tmp_path / "one.txt") as temporary:
        temporary.write_text("one")
        with atomic_write(tmp_path / "two.txt") as other:
            other.write_text("two")
        assert temporary.exists()
    assert names(tmp_path) == ["one.txt", "two.txt"]


def test_the_mode_of_a_replaced_file_stays(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
