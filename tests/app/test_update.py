"""`annotruth update`."""

import json
import os
import threading

import pytest

import annotruth as at
from annotruth import updating
from annotruth.io.system import try_lock
from annotruth.models.storage import folder as storage

FIRST = "item,annotator,label\n" + "".join(
    f"{e},{s},{(e + (n == e)) % 2}\n" for e in range(6) for n, s in enumerate("uvwxyz")
)
MORE = "item,annotator,label\n2,new,1\n9,new,1\n9,u,1\n"


@pytest.fixture
def files(tmp_path, run):
    (tmp_path / "first.csv").write_text(FIRST)
    (tmp_path / "more.csv").write_text(MORE)
    words = ("fit", tmp_path / "first.csv", "--model", "gpm", "--save", tmp_path / "fit")
    code, out, _ = run(*words)
    assert code == 0
    assert f"fit saved to {tmp_path / 'fit'}" in out
    return tmp_path


def test_the_saved_fit_is_updated_in_place(run, files):
    code, out, err = run("update", files / "fit", files / "more.csv")
    assert (code, err) == (0, "")
    assert "new: 3 labels, 1 item, 1 annotator" in out
    assert f"saved in place: {files / 'fit'}; --save DIR leaves it as it is" in out
    assert at.load(files / "fit").data.n_labels == 39


def test_nobody_else_can_save_during_an_update_in_place(run, files, monkeypatch):
    update, refusals = updating.update_fit, []

    def update_beside_another(*words, **options):
        def save():
            try:
                at.load(files / "fit").save(files / "fit")
            except at.OutputError as error:
                refusals.append(str(error))

        other = threading.Thread(target=save)
        other.start()
        other.join()
        return update(*words, **options)

    monkeypatch.setattr(storage, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(updating, "update_fit", update_beside_another)
    assert run("update", files / "fit", files / "more.csv")[0] == 0
    assert len(refusals) == 1
    assert "another process is writing to it" in refusals[0]
    assert at.load(files / "fit").data.n_labels == 39


def test_save_leaves_the_fit_as_it_is_and_json_lists_the_changes(run, files):
    words = ("--save", files / "fit2", "--json", "--refit")
    code, out, err = run("update", files / "fit", files / "more.csv", *words)
    entries = json.loads(out)
    assert (code, err) == (0, "")
    assert (entries["new_labels"], entries["new_items"], entries["n_labels"]) == (3, 1, 39)
    assert entries["n_iter"] > 0
    assert at.load(files / "fit").data.n_labels == 36
    assert at.load(files / "fit2").data.n_labels == 39


def test_update_writes_what_fit_writes(run, files):
    names = {"--out": "o", "--report": "r.html", "--soft": "s.csv", "--keep": "k.csv"}
    words = [word for flag, name in names.items() for word in (flag, files / name)]
    code, out, err = run("update", files / "fit", files / "more.csv", *words)
    assert (code, err) == (0, "")
    for name in names.values():
        assert f"written to {files / name}\n" in out
    assert len((files / "o" / "labels.csv").read_text().splitlines()) == 40
    assert len((files / "s.csv").read_text().splitlines()) == 8
    assert "new,unsure" in (files / "k.csv").read_text().replace('"', "")
    page = (files / "r.html").read_text()
    assert "<h1>fit</h1>" in page
    assert 'id="since"' in page
    assert at.load(files / "fit").data.n_labels == 39


def test_the_fit_is_not_saved_when_another_output_cannot_be_written(run, files):
    (files / "closed").write_text("")
    words = ("--report", files / "closed" / "r.html")
    assert run("update", files / "fit", files / "more.csv", *words)[0] == 2
    assert at.load(files / "fit").data.n_labels == 36


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", "more.csv"),
        ("item,annotator,label\n", "there are no rows"),
        ("item,annotator,label\n2,new,7\n", "label 7 is new, and the fit has the categories 0, 1"),
        (
            "item,annotator,label\n0,x,0\n2,u,1\n",
            "labelled twice: annotator 'u' on item 2 (label 0, now 1); pass `--duplicates last`",
        ),
    ],
)
def test_invalid_labels_do_not_change_the_fit(refused, files, content, line):
    (files / "more.csv").write_text(content)
    assert line in refused("update", files / "fit", files / "more.csv")
    assert at.load(files / "fit").data.n_labels == 36


def test_a_missing_fit_is_refused_and_any_model_is_updated(run, refused, files):
    assert "no saved fit in" in refused("update", files, files / "more.csv")
    at.fit(at.load(files / "fit").data, "majority").save(files / "votes")
    assert run("update", files / "votes", files / "more.csv")[0] == 0
    assert at.load(files / "votes").data.n_labels == 39


def test_an_update_waits_for_another_process_and_gives_up_in_one_line(run, files, monkeypatch):
    monkeypatch.setattr(storage, "WAIT_SECONDS", 0.05)
    lock = try_lock(files / "fit" / ".lock")  # as another process would hold it
    assert lock is not None
    code, out, err = run("update", files / "fit", files / "more.csv")
    assert (code, out) == (2, "")
    waiting, refused = err.splitlines()
    assert waiting == f"annotruth: waiting for another process that is writing {files / 'fit'} ..."
    assert refused.endswith("another process is writing to it; try again when that has ended")
    code, _, err = run("update", files / "fit", files / "more.csv", "--quiet")
    assert code == 2
    assert err.count("\n") == 1
    os.close(lock)
    assert at.load(files / "fit").data.n_labels == 36
    assert run("update", files / "fit", files / "more.csv")[0] == 0
    assert at.load(files / "fit").data.n_labels == 39


def test_nothing_new_saves_nothing_in_place_but_writes_what_is_asked_for(run, files):
    saved = (files / "fit" / "fit.json").read_bytes()
    words = ("update", files / "fit", files / "first.csv", "--report", files / "r.html")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "36 labels were in the fit already" in out
    assert f"nothing new: {files / 'fit'} stays as it is" in out
    assert (files / "fit" / "fit.json").read_bytes() == saved
    assert (files / "r.html").exists()
    entries = json.loads(run(*words, "--save", files / "copy", "--json")[1])
    assert (entries["new_labels"], entries["repeated_labels"]) == (0, 36)
    assert at.load(files / "copy").data.n_labels == 36


def test_dropped_annotators_leave_the_fit(run, files):
    words = ("update", files / "fit", files / "more.csv", "--drop", "x,new,nobody")
    code, out, err = run(*words)
    assert (code, err) == (
        0,
        "annotruth: warning: 1 of 3 annotators to leave out has no labels (first: 'nobody')\n",
    )
    assert "2 annotators left out: x, new; 8 labels" in out
    fit = at.load(files / "fit")
    assert fit.data.annotators.to_pylist() == list("uvwyz")
    assert (fit.data.n_labels, fit.data.n_items) == (31, 7)
    assert "2 annotators left out: x, new; 8 labels" in fit.summary()
