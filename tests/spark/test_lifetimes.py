"""How long the files of fits remain."""

import gc
import subprocess
import sys

import pytest
from frame_uses import USES, count_rows

import annotruth as at
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


def test_folders_are_for_this_user_only_and_removed_once(tmp_path):
    one = make_folder(str(tmp_path), private=True)
    other = make_sibling(one)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o700}
    remove_folder(one)
    assert [*tmp_path.iterdir()] == [other.local_path]
    remove_folder(other)
    remove_folder(other)
    assert not list(tmp_path.iterdir())


PROGRAM = """
import os, sys
from annotruth.engines.spark.storage import make_folder
folder = make_folder(sys.argv[1])
folder.write("some", {"x": ["y"]})
os.fork() or sys.exit()
os.wait()
print(os.listdir(folder.uri))
"""


def test_folders_are_removed_at_the_end_of_the_program_but_not_of_its_forks(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert ended.stdout.startswith("['some-")
    assert not list(tmp_path.iterdir())
