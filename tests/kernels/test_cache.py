"""The cache of compiled kernels: complete, fast, and never stale."""

import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numba
import numpy as np
import pytest

import annotruth
from annotruth.kernels import compiled as cache
from annotruth.kernels.simd import simd8

FIT = """
import json
import annotruth as at
from annotruth.kernels import gpm

labels = [(i, s, (i * s + s) % 3) for i in range(9) for s in range(5)]
fit = at.GPM(max_iter=1000).fit(labels).result_
stats = [kernel.stats for kernel in vars(gpm).values() if hasattr(kernel, "stats")]
hits, misses = (
    sum(n for of_kernel in of_kernels for n in of_kernel.values())
    for of_kernels in ([s.cache_hits for s in stats], [s.cache_misses for s in stats])
)
print(json.dumps([fit.log_likelihood, hits, misses]))
"""


def run_fit(folder):
    """Fit GPM with the package in a folder; return the log-likelihood, cache hits and misses."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", FIT]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_editing_a_helper_changes_the_result_with_a_warm_cache(tmp_path):
    without_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(annotruth.__file__).parent, tmp_path / "annotruth", ignore=without_caches)
    helper = tmp_path / "annotruth" / "kernels" / "simd" / "simd8.py"
    source = helper.read_text()
    edited = source.replace("return total\n", "return 7.0 * total\n")
    assert edited != source

    before, hits, misses = run_fit(tmp_path)
    assert hits == 0
    assert misses > 0

    helper.write_text(edited)
    changed, _, misses = run_fit(tmp_path)
    assert abs(changed - before) > 0.1
    assert misses > 0

    # With the first source the first cache is found again: nothing is compiled.
    helper.write_text(source)
    after, hits, misses = run_fit(tmp_path)
    assert after == before
    assert hits > 0
    assert misses == 0


@pytest.fixture
def package(tmp_path):
    """A folder with two modules."""
    (tmp_path / "simd").mkdir()
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "simd" / "b.py").write_text("y = 1\n")
    return tmp_path


def test_the_stamp_covers_the_content_and_names_of_all_files(package):
    first = cache.source_stamp(package, {})
    path = package / "simd" / "b.py"
    times = path.stat()
    path.write_text("y = 2\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = cache.source_stamp(package, {})
    path.rename(path.with_name("c.py"))
    third = cache.source_stamp(package, {})
    (package / "notes.txt").write_text("not a source")
    assert len({first, second, third}) == 3
    assert cache.source_stamp(package, {}) == third


@pytest.mark.parametrize("name", ["annotruth", "llvmlite", "numba", "numpy"])
def test_the_stamp_covers_versions(package, name):
    now = cache.versions()
    other = {**now, name: now[name] + ".1"}
    assert cache.source_stamp(package, now) != cache.source_stamp(package, other)


def test_there_is_no_stamp_without_sources(tmp_path):
    assert cache.source_stamp(tmp_path, {}) is None
    assert cache.source_stamp(tmp_path / "package.zip" / "kernels", {}) is None


def test_kernels_are_cached_under_the_stamp():
    stamp = cache.source_stamp(cache.KERNELS, cache.versions())
    assert Path(simd8.sum_by_cell.stats.cache_path).name == f"annotruth-{stamp[:16]}"


def test_functions_of_other_packages_are_not_cached():
    @cache.compiled
    def double(x):
        return 2 * x

    assert double(3) == 6
    assert double.stats.cache_path is None


def copy_of(kernel):
    """Compile a kernel again, from its Python function."""
    return cache.compiled(kernel.py_func)


def sums_by(kernel):
    out = np.empty(2)
    kernel(np.array([0, 3, 4]), 0, 2, np.arange(16.0), out)
    return out.tolist()


def without_cache_classes(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.core.caching", types.ModuleType("caching"))


def without_a_folder_to_write(monkeypatch):
    def refuse(self):
        raise OSError("read-only file system")

    monkeypatch.setattr("numba.core.caching._CacheLocator.ensure_cache_path", refuse)


def without_sources(monkeypatch):
    monkeypatch.setattr(cache, "_process_stamp", lambda: None)


def with_the_stamp_kept_elsewhere(monkeypatch):
    monkeypatch.setattr("numba.core.caching.Cache.__init__", lambda self, function: self.enable())


@pytest.mark.parametrize(
    "change",
    [
        without_cache_classes,
        without_a_folder_to_write,
        without_sources,
        with_the_stamp_kept_elsewhere,
    ],
)
def test_kernels_work_without_a_cache(monkeypatch, change):
    cache._cache_class.cache_clear()
    change(monkeypatch)
    kernel = copy_of(simd8.sum_by_cell)
    monkeypatch.undo()
    cache._cache_class.cache_clear()
    assert kernel.stats.cache_path is None
    assert sums_by(kernel) == [3.0, 3.0]


def cached_in(folder, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    return copy_of(simd8.sum_by_cell)


def test_a_full_disk_does_not_fail_a_kernel(tmp_path, monkeypatch):
    def fail(self, key, data):
        raise OSError("no space left on device")

    kernel = cached_in(tmp_path, monkeypatch)
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", fail)
    assert sums_by(kernel) == [3.0, 3.0]


def test_nothing_is_saved_after_the_sources_changed(tmp_path, monkeypatch):
    kernel = cached_in(tmp_path, monkeypatch)
    monkeypatch.setattr(cache, "source_stamp", lambda folder, versions: "another")
    assert sums_by(kernel) == [3.0, 3.0]
    assert not list(tmp_path.rglob("*.nbi"))


def test_old_stamps_are_removed(tmp_path, monkeypatch):
    kernel = cached_in(tmp_path, monkeypatch)
    current = Path(kernel.stats.cache_path)
    for age in range(5):
        old = current.with_name(f"annotruth-{age}")
        old.mkdir(parents=True)
        (old / "kernel.nbc").touch()
        os.utime(old, (1e9 - age, 1e9 - age))
    assert sums_by(kernel) == [3.0, 3.0]
    kept = {path.name for path in current.parent.iterdir()}
    assert kept == {current.name, "annotruth-0", "annotruth-1"}
    assert list(current.glob("*.nbi"))


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o755])
def test_code_that_others_may_have_written_does_not_run(tmp_path, monkeypatch, mode):
    marker = tmp_path / "marker"
    kernel = cached_in(tmp_path / "cache", monkeypatch)
    folder = Path(kernel.stats.cache_path)
    assert sums_by(kernel) == [3.0, 3.0]
    assert folder.stat().st_mode & 0o022 == 0
    (index,) = folder.glob("*.nbi")
    index.write_bytes(pickle.dumps(Touch(marker)))
    folder.chmod(mode)
    other = cached_in(tmp_path / "cache", monkeypatch)
    assert sums_by(other) == [3.0, 3.0]
    # Where only this user can have written it, it does run, as the sources do.
    assert marker.exists() == (mode == 0o755)


def test_code_of_another_user_does_not_run(tmp_path, monkeypatch):
    kernel = cached_in(tmp_path, monkeypatch)
    assert sums_by(kernel) == [3.0, 3.0]
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert cache._is_safe(Path(kernel.stats.cache_path)) == (os.getuid() == 0)
    assert cache._is_safe(cache.KERNELS / "__pycache__" / "annotruth-0")


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_garbage_collector_is_paused_while_a_kernel_is_compiled(is_enabled):
    @cache.compiled
    def one_more(x):
        return x + 1

    @cache.compiled
    def fails(x):
        return x.no_such_attribute

    during = []
    try:
        if not is_enabled:
            gc.disable()
        with cache.on_first_compilation(lambda: during.append(gc.isenabled())):
            assert one_more(1) == 2
        with pytest.raises(numba.TypingError):
            fails(1)
        after = gc.isenabled()
    finally:
        gc.enable()
    assert during == [False]
    assert after == is_enabled
