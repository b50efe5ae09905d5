"""Runs of experiments: seeds, processes, resuming."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.waiting import MAX_SECONDS, wait_until

from annotruth.errors import InputError, OutputError
from annotruth.paper import runner
from annotruth.paper.error_curves import EXP1B
from annotruth.paper.experiment import Experiment, ExperimentSetting

SMALL = {"items": 12, "annotators": 6}
executed = []


def conditions(settings):
    return [{"place": place} for place in ("here", "there")]


def draw(condition, settings, rng, data):
    executed.append(condition["place"])
    return {"gpm": {"value": settings["factor"] * rng.random()}}


TOY = Experiment(
    name="toy",
    title="Toy",
    description="",
    settings={"factor": ExperimentSetting(1, "any number")},
    conditions=conditions,
    run=draw,
    models={"gpm": "GPM"},
)


@pytest.fixture(autouse=True)
def _nothing_executed():
    executed.clear()


def toy(folder, *, runs=4, **given):
    settings = TOY.resolve(given)
    return runner.run_experiment(TOY, settings, n_runs=runs, folder=folder, n_workers=1)


def values(runs):
    return [run.results["gpm"]["value"] for run in runs]


def test_every_condition_has_the_given_number_of_different_runs(tmp_path):
    runs = toy(tmp_path)
    assert [(run.condition["place"], run.number) for run in runs] == [
        (place, number) for place in ("here", "there") for number in range(4)
    ]
    assert len(set(values(runs))) == 8


def test_repeating_the_command_runs_nothing(tmp_path):
    first = toy(tmp_path)
    executed.clear()
    assert values(toy(tmp_path)) == values(first)
    assert executed == []


def test_interrupted_runs_resume(tmp_path):
    first = toy(tmp_path)
    path = tmp_path / "toy" / "runs.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 8
    path.write_text("".join(lines[::2]))
    executed.clear()
    assert values(toy(tmp_path)) == values(first)
    assert len(executed) == 4
    assert len(path.read_text().splitlines()) == 8


@pytest.mark.parametrize(
    ("damaged", "again"),
    [
        (lambda log: log[:-20], "there"),
        (lambda log: log[:-1], "there"),
        (lambda log: log.replace(b'"run": 1', b'"run\xff": 1', 1), "here"),
    ],
    ids=["a line cut short", "a last line without its end", "a line that is no text"],
)
def test_a_damaged_line_is_run_again(tmp_path, damaged, again):
    first = toy(tmp_path)
    path = tmp_path / "toy" / "runs.jsonl"
    path.write_bytes(damaged(path.read_bytes()))
    executed.clear()
    assert values(toy(tmp_path)) == values(first)
    assert executed == [again]
    assert sorted(json.loads(line)["run"] for line in path.read_text().splitlines()) == [
        number for number in range(4) for _ in "ab"
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_is_named_with_the_file(tmp_path):
    path = tmp_path / "toy" / "runs.jsonl"
    path.parent.mkdir()
    path.symlink_to("/dev/full")
    with pytest.raises(OutputError, match=f"cannot write {path}: No space left on device; choose"):
        toy(tmp_path)


def test_more_runs_add_to_existing_ones(tmp_path):
    few = toy(tmp_path, runs=2)
    executed.clear()
    more = toy(tmp_path, runs=4)
    assert executed == ["here", "here", "there", "there"]
    assert values(more)[:2] == values(few)[:2]


def test_other_settings_start_over(tmp_path):
    first = toy(tmp_path)
    executed.clear()
    second = toy(tmp_path, factor=3)
    assert len(executed) == 8
    np.testing.assert_allclose(values(second), 3 * np.array(values(first)))
    assert len((tmp_path / "toy" / "runs.jsonl").read_text().splitlines()) == 8


def test_progress_is_reported_from_start_to_end(tmp_path):
    toy(tmp_path, runs=1)
    reported = []
    runner.run_experiment(
        TOY,
        TOY.resolve({}),
        n_runs=2,
        folder=tmp_path,
        n_workers=1,
        progress=lambda *counts: reported.append(counts),
    )
    assert reported == [(2, 4), (3, 4), (4, 4)]


def test_the_number_of_processes_changes_nothing(tmp_path):
    settings = EXP1B.resolve(SMALL)
    alone, together = (
        runner.run_experiment(EXP1B, settings, n_runs=2, folder=tmp_path / str(n), n_workers=n)
        for n in (1, 2)
    )
    assert alone == together


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_no_process_outlives_the_command(tmp_path, number):
    words = ["reproduce", "exp1b", "--runs", "5000", "--out", tmp_path, "-q"]
    command = subprocess.Popen(
        [sys.executable, "-m", "annotruth", *map(str, words)],
        stdout=subprocess.PIPE,  # its processes hold it, too
    )
    log = tmp_path / "exp1b" / "runs.jsonl"
    wait_until(lambda: log.exists() or command.poll() is not None, "the first run")
    command.send_signal(number)
    command.communicate(timeout=MAX_SECONDS)
    assert command.returncode == -number


def test_the_seed_derives_from_experiment_condition_and_run():
    def first(*of):
        return runner.make_generator(*of).random()

    assert first("a", {"x": 1}, 0) == first("a", {"x": 1}, 0)
    others = [("b", {"x": 1}, 0), ("a", {"x": 2}, 0), ("a", {"x": 1}, 1)]
    assert len({first(*of) for of in [("a", {"x": 1}, 0), *others]}) == 4


def test_experiment_without_randomness_runs_once(tmp_path):
    from dataclasses import replace

    fixed = replace(TOY, is_random=False)
    runs = runner.run_experiment(fixed, {"factor": 1}, n_runs=50, folder=tmp_path, n_workers=1)
    assert len(runs) == 2


def test_zero_runs_are_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"runs \(`--runs`\) is 0: give a whole number from 1 to 100,000"
    ):
        toy(tmp_path, runs=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"speed": 1}, "toy has no setting 'speed': it has factor"),
        ({"factor": "fast"}, "factor is 'fast': give a number"),
        ({"factor": 1.5}, "factor is 1.5: give a whole number"),
        ({"factor": -1}, "factor is -1: give a number from 0"),
        ({"factor": True}, "factor is True: give a number"),
    ],
)
def test_unknown_settings_and_values_are_refused(given, text):
    with pytest.raises(InputError, match=text):
        TOY.resolve(given)


def test_unknown_choices_are_refused():
    with pytest.raises(InputError, match="mixing is 'both': choose label, annotator"):
        EXP1B.resolve({"mixing": "both"})
