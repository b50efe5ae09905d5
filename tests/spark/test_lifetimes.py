"""How long the files of fits remain."""

import gc
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from frame_uses import USES, count_rows

import annotruth as at
from annotruth.engines.spark import storage as storage_module
from annotruth.engines.spark.storage import make_folder, make_sibling, remove_folder


@pytest.mark.filterwarnings("ignore:.*copy keyword is deprecated")  # toPandas, with pandas 3
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_frames_outlive_their_fit(use, frame, make_engine):
    assert len(use(frame, make_engine(2))) == count_rows(frame.toArrow())[use.__name__]


def fit_quickly(frame, engine):
    return at.fit(frame, "gpm", engine=engine, tol=10.0)


def test_files_are_removed_with_a_fit_of_which_no_frame_was_taken(frame, make_engine, storage):
    fit = fit_quickly(frame, make_engine(2))
    assert list(storage.iterdir())
    del fit
    gc.collect()
    assert not list(storage.iterdir())
    with fit_quickly(frame, make_engine(2)):
        pass
    assert not list(storage.iterdir())


def test_close_removes_files_and_later_tables_are_refused(frame, make_engine, storage):
    fit = fit_quickly(frame, make_engine(2))
    fit.items()
    with fit:
        pass
    assert list(storage.iterdir())
    fit.close()
    fit.close()
    assert not list(storage.iterdir())
    assert fit.summary()
    with pytest.raises(at.AnnotruthError, match="this fit was closed, which removed its tables"):
        fit.items()


def test_the_folder_of_a_process_is_removed_with_the_last_folder_in_it(tmp_path):
    one = make_folder(str(tmp_path), private=True)
    other = make_sibling(one)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    remove_folder(one)
    assert not one.local_path.exists()
    assert other.local_path.is_dir()
    remove_folder(other)
    remove_folder(other)
    assert not list(tmp_path.iterdir())


MAKE_FOLDER = "import os, sys, time; from annotruth.engines.spark.storage import make_folder; "
MAKE_FOLDER += "folder = make_folder(sys.argv[1]); folder.write('some', {'x': ['y']}); "


def start(code, storage):
    """Start a process that makes a folder in the storage, then runs the code."""
    return subprocess.Popen(
        [sys.executable, "-c", MAKE_FOLDER + code, str(storage)], stdout=subprocess.PIPE, text=True
    )


def test_folders_of_killed_processes_are_removed_and_those_of_others_are_not(tmp_path):
    running = start("print(folder.uri, flush=True); time.sleep(600)", tmp_path)
    try:
        in_use = running.stdout.readline().strip()
        # Only now: to make a folder removes those of processes that are dead by then.
        killed = start("os.kill(os.getpid(), 9)", tmp_path)
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
        assert len(list(tmp_path.iterdir())) == 2
        folder = make_folder(str(tmp_path))
        assert len(list(tmp_path.iterdir())) == 2
        assert list(Path(in_use).iterdir())
        remove_folder(folder)
    finally:
        running.kill()
        running.communicate()
    remove_folder(make_folder(str(tmp_path)))
    assert not list(tmp_path.iterdir())


def test_folders_are_removed_at_the_end_of_the_program_but_not_of_its_forks(tmp_path):
    code = "os.fork() or sys.exit(); os.wait(); print(os.listdir(folder.uri))"
    ended = start(code, tmp_path)
    assert ended.communicate()[0].startswith("['some-")
    assert not list(tmp_path.iterdir())


def test_folders_of_other_machines_and_links_are_left_alone(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    storage = tmp_path / "storage"
    storage.mkdir()
    name = make_folder(str(storage)).local_path.parent.name
    (storage / f"{name[:-4]}0000").symlink_to(elsewhere)
    killed = start("os.kill(os.getpid(), 9)", storage)
    killed.communicate()
    monkeypatch.setattr(storage_module, "_process_folders", {})
    monkeypatch.setattr(storage_module.platform, "node", lambda: "another")
    make_folder(str(storage))
    assert len(list(storage.iterdir())) == 4
