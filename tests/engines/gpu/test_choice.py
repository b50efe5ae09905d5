"""The engine "auto", and what is said where no card can be used."""

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from tests.engines.gpu.host_device import COMPILER, HostDevice
from typer.testing import CliRunner

import annotruth as at
from annotruth.app.cli import app
from annotruth.engines import registry
from annotruth.engines.gpu import GPUEngine
from annotruth.engines.gpu.device import errors_in_one_line
from annotruth.errors import InputError
from annotruth.models.em import ProgressReporter

LABELS = [(f"item {e}", f"annotator {s}", (e + s) % 2) for e in range(20) for s in range(3)]


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""

    __module__ = "cupy_backends.cuda.api.runtime"


class CompileException(Exception):  # noqa: N818 - CuPy's name
    """As CuPy's."""

    __module__ = "cupy.cuda.compiler"


class OutOfMemoryError(MemoryError):
    """As CuPy's."""

    __module__ = "cupy.cuda.memory"


@pytest.fixture
def fake_cupy(monkeypatch):
    """Return a function that installs a CuPy that finds some cards, or raises an error."""

    def install(found):
        def count():
            if isinstance(found, Exception):
                raise found
            return found

        cupy = ModuleType("cupy")
        runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
        cupy.cuda = SimpleNamespace(runtime=runtime)
        cupy.__spec__ = SimpleNamespace()
        monkeypatch.setitem(sys.modules, "cupy", cupy)

    return install


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (0, "finds no NVIDIA card: choose engine='memory'"),
        (
            CUDARuntimeError("cudaErrorNoDevice: no device"),
            "finds no NVIDIA card .cudaErrorNoDevice",
        ),
        (CUDARuntimeError("cudaErrorInsufficientDriver: too old"), "no NVIDIA driver that is new"),
    ],
)
def test_without_a_card_one_line_says_what_is_missing(fake_cupy, found, message):
    fake_cupy(found)
    with pytest.raises(InputError, match=message):
        at.fit(LABELS, "gpm", engine="gpu")


def test_a_cupy_that_does_not_load_is_named(monkeypatch):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "cupy":
                raise ImportError("libfoo.so is missing\nand more")

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    with pytest.raises(InputError, match=r"does not load \(libfoo.so is missing\)"):
        at.fit(LABELS, "gpm", engine="gpu")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OutOfMemoryError("Out of memory allocating 8 bytes"), "memory of the card"),
        (CUDARuntimeError("cudaErrorMemoryAllocation: out of memory"), "memory of the card"),
        (CUDARuntimeError("cudaErrorIllegalAddress: bad"), "the card failed .cudaErrorIllegal"),
        (CompileException("\n\nnvrtc: error: invalid value\nmore"), "compile the kernels .nvrtc"),
        (RuntimeError("CuPy failed to load libnvrtc.so.13"), "finds no CUDA libraries"),
    ],
)
def test_errors_of_the_card_are_one_line(error, message):
    with pytest.raises(InputError, match=message) as raised, errors_in_one_line():
        raise error
    assert len(str(raised.value).splitlines()) == 1
    with pytest.raises(ZeroDivisionError), errors_in_one_line():
        raise ZeroDivisionError


@pytest.mark.skipif(COMPILER is None, reason="g++ is missing")
def test_memory_that_is_full_in_the_middle_of_a_fit_is_one_line(monkeypatch):
    device = HostDevice()
    run, n_runs = device.run, iter(range(5))

    def fail(*arguments, **options):
        if next(n_runs, None) is None:
            raise OutOfMemoryError("Out of memory allocating 8 bytes")
        run(*arguments, **options)

    monkeypatch.setattr(device, "run", fail)
    with pytest.raises(InputError, match="memory of the card"):
        at.fit(LABELS, "gpm", engine=GPUEngine(device))


def test_the_command_line_says_what_is_missing(fake_cupy, tmp_path):
    fake_cupy(0)
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\na,x,1\na,y,2\n")
    result = CliRunner().invoke(app, ["fit", str(path), "--model", "gpm", "--engine", "gpu"])
    assert isinstance(result.exception, InputError)
    assert "finds no NVIDIA card" in str(result.exception)
    automatic = CliRunner().invoke(app, ["fit", str(path), "--model", "gpm", "--engine", "auto"])
    assert automatic.exit_code == 0


@pytest.fixture
def card(monkeypatch):
    """Let "gpu" be an engine on a device that is there, and one label enough for it."""
    if COMPILER is None:
        pytest.skip("g++ is missing")
    monkeypatch.setattr(registry, "find_spec", lambda name: name)
    monkeypatch.setattr(registry, "GPU_LABELS", 1)
    monkeypatch.setattr("annotruth.engines.gpu.engine.CUDADevice", HostDevice)


def test_auto_takes_the_card_where_it_can(card):
    fit = at.fit(LABELS, "gpm", engine="auto")
    assert fit.settings["engine"] == "auto (gpu)"
    np.testing.assert_array_equal(fit.reliability, at.fit(LABELS, "gpm", engine="gpu").reliability)
    assert not GPUEngine().can_fit("glad", at.Labels.of(LABELS))
    again = at.fit(LABELS, warm_start=fit)
    assert again.settings["engine"] == "auto (gpu)"


def test_auto_takes_the_card_for_the_default_model_where_it_can(card, monkeypatch):
    labels = at.Labels.of(LABELS)
    assert at.fit(labels, engine="auto").settings["engine"] == "auto (gpu)"
    assert GPUEngine().can_fit("robust-gpm", labels)
    monkeypatch.setattr(HostDevice, "free_bytes", lambda device: 1000)
    assert not GPUEngine().can_fit("robust-gpm", labels)
    monkeypatch.undo()
    weighted = replace(labels, annotator_weight=np.full(labels.n_annotators, 0.5))
    assert not GPUEngine().can_fit("robust-gpm", weighted)
    many = at.Labels.of([(e, s, f"class {(e + s) % 65}") for e in range(65) for s in range(3)])
    assert not GPUEngine().can_fit("robust-gpm", many)
    assert at.fit(many, engine="auto").settings["engine"] == "auto (memory)"


def test_auto_takes_memory_for_few_labels_or_without_a_card(card, monkeypatch):
    monkeypatch.setattr(registry, "GPU_LABELS", len(LABELS) + 1)
    assert at.fit(LABELS, "gpm", engine="auto").settings["engine"] == "auto (memory)"
    monkeypatch.setattr(registry, "GPU_LABELS", 1)

    def no_cards():
        raise InputError("there is none")

    monkeypatch.setattr("annotruth.engines.gpu.engine.CUDADevice", no_cards)
    assert at.fit(LABELS, "gpm", engine="auto").settings["engine"] == "auto (memory)"
    with pytest.raises(InputError, match="choose memory, reference, spark, gpu, auto"):
        at.fit(LABELS, "gpm", engine="fast")


def test_progress_names_the_engine_that_was_chosen():
    stages = []

    class Reporter(ProgressReporter):
        def start(self, stage, *, done=0, total=0):
            stages.append(stage)

    at.fit(LABELS, "gpm", engine="auto", progress=Reporter())
    assert "fitting gpm with the engine memory" in stages
