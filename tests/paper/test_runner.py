"""Runs of experiments: seeds and processes."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.waiting import MAX_SECONDS, wait_until

from annotruth.errors import InputError
from annotruth.paper import runner
from annotruth.paper.error_curves import EXP1B
from annotruth.paper.experiment import Experiment, ExperimentSetting

SMALL = {"items": 12, "annotators": 6}


def conditions(settings):
    return [{"place": place} for place in ("here", "there")]


def draw(condition, settings, rng, data):
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


def toy(*, runs=4, **given):
    return runner.run_experiment(TOY, TOY.resolve(given), n_runs=runs, n_workers=1)


def values(runs):
    return [run.results["gpm"]["value"] for run in runs]


def test_every_condition_has_the_given_number_of_different_runs():
    runs = toy()
    assert [(run.condition["place"], run.number) for run in runs] == [
        (place, number) for place in ("here", "there") for number in range(4)
    ]
    assert len(set(values(runs))) == 8
    assert values(toy(runs=2)) == [values(runs)[n] for n in (0, 1, 4, 5)]
    np.testing.assert_allclose(values(toy(factor=3)), 3 * np.array(values(runs)))


def test_progress_is_reported_from_start_to_end():
    reported = []
    runner.run_experiment(
        TOY,
        TOY.resolve({}),
        n_runs=1,
        n_workers=1,
        progress=lambda *counts: reported.append(counts),
    )
    assert reported == [(0, 2), (1, 2), (2, 2)]


def test_the_number_of_processes_changes_nothing():
    settings = EXP1B.resolve(SMALL)
    alone, together = (
        runner.run_experiment(EXP1B, settings, n_runs=2, n_workers=n) for n in (1, 2)
    )
    assert alone == together


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_no_process_outlives_the_command(tmp_path, number):
    words = ["reproduce", "exp1b", "--runs", "5000", "--out", tmp_path, "-q"]
    command = subprocess.Popen(
        [sys.executable, "-m", "annotruth", *map(str, words)],
        stdout=subprocess.PIPE,  # its processes hold it, too
    )
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    # A tracker of resources, and two processes or more that run the experiment.
    wait_until(lambda: len(children.read_text().split()) >= 3, "the processes")
    command.send_signal(number)
    command.communicate(timeout=MAX_SECONDS)
    assert command.returncode == -number


def test_the_seed_derives_from_experiment_condition_and_run():
    def first(*of):
        return runner.make_generator(*of).random()

    assert first("a", {"x": 1}, 0) == first("a", {"x": 1}, 0)
    others = [("b", {"x": 1}, 0), ("a", {"x": 2}, 0), ("a", {"x": 1}, 1)]
    assert len({first(*of) for of in [("a", {"x": 1}, 0), *others]}) == 4


def test_experiment_without_randomness_runs_once():
    fixed = replace(TOY, is_random=False)
    runs = runner.run_experiment(fixed, {"factor": 1}, n_runs=50, n_workers=1)
    assert len(runs) == 2


def test_zero_runs_are_refused():
    with pytest.raises(InputError, match=r"runs is 0: give a whole number from 1 to 100,000"):
        toy(runs=0)


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
