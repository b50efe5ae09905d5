"""Saved fits: open formats, atomic writes, and checks of what is read."""

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.fuzz.tampering import data_folder, read_entries, reseal, write_entries

import annotruth as at
from annotruth.models.registry import MODELS, get_model


@pytest.fixture
def saved(tmp_path):
    table = [("a", "x", 1), ("a", "y", 2), ("b", "x", 2), ("b", "y", 2), ("b", "z", 1)]
    at.fit(table, gold={"a": 2}).save(tmp_path / "fit")
    return tmp_path / "fit"


def test_saving_over_another_model_ignores_its_parameters(saved):
    at.fit([("c", "x", 1), ("c", "y", 2)], "dawid-skene").save(saved)
    assert set(at.load(saved).parameters) == {"prior", "rates"}
    at.fit([("c", "x", 1), ("c", "y", 2)], "gpm").save(saved)
    assert not at.load(saved).parameters


def test_parameters_in_single_precision_are_kept(tmp_path):
    # With many labels, engines hold the shapes of items in single precision.
    fit = at.fit(at.simulate.crowd(n_items=20, n_annotators=8, seed=0).labels)
    weights = fit.parameters["weights"].astype(np.float32)
    replace(fit, parameters={**fit.parameters, "weights": weights}).save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit").parameters["weights"]
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, weights)


def test_covariates_of_any_name_and_type_are_kept(tmp_path):
    columns = {"item": list("aab"), "annotator": list("xyx"), "label": [1, 2, 1]}
    more = {"copied_from": ["u", None, "v"], "tags": [["p"], [], ["q", "r"]]}
    labels = at.Labels.of(pa.table({**columns, **more}), covariates=list(more))
    at.fit(labels, "gpm").save(tmp_path / "fit")
    kept = at.load(tmp_path / "fit").data.covariates.labels
    assert {name: kept[name].to_pylist() for name in more} == more


def test_all_files_are_json_or_arrow(saved):
    assert {path.name for path in saved.iterdir()} == {
        "fit.json",
        ".lock",
        data_folder(saved).name,
    }
    assert {path.suffix for path in data_folder(saved).iterdir()} == {".arrow"}


def test_a_folder_without_a_fit_is_refused(tmp_path):
    with pytest.raises(at.InputError, match=r"no saved fit in .*: .*fit\.json is missing"):
        at.load(tmp_path / "nothing")


def test_a_missing_file_is_refused(saved):
    (data_folder(saved) / "cells.arrow").unlink()
    with pytest.raises(
        at.InputError,
        match=r"no saved fit in .*cells\.arrow is missing; tables are not a saved fit: use save$",
    ):
        at.load(saved)
    with pytest.raises(
        at.InputError, match=r"fit.json is missing; name the folder of a saved fit$"
    ):
        at.load(saved / "fit.json")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"kind": 1}', b"\xff\xfe"])
def test_invalid_json_is_refused_in_one_line(saved, content):
    (saved / "fit.json").write_bytes(content)
    with pytest.raises(at.InputError, match="cannot be read") as raised:
        at.load(saved)
    assert "\n" not in str(raised.value)


ROWS = [
    (e, s, (e + (e * 7 + n * 5) % 4 // 3) % 3 + 1)
    for e in range(30)
    for n, s in enumerate("stuvwx")
]


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_fit_predicts_the_same(name, tmp_path):
    model = get_model(name)().fit(ROWS)
    item, annotator = np.repeat(np.arange(30), 6), np.tile(np.arange(6), 30)
    expected = model.predict_proba(item, annotator)
    model.result_.save(tmp_path / "fit")
    again = get_model(name)().load_fit(at.load(tmp_path / "fit"))
    np.testing.assert_array_equal(again.predict_proba(item, annotator), expected)


def test_parameters_of_a_wrong_shape_are_refused(tmp_path):
    folder = tmp_path / "fit"
    at.DawidSkene().fit(ROWS).result_.save(folder)
    data = data_folder(folder)
    shutil.copy(data / "parameter-prior.arrow", data / "parameter-rates.arrow")
    reseal(folder)
    again = at.DawidSkene().load_fit(at.load(folder))
    with pytest.raises(at.InputError, match="has no rates of 3 x 6 x 3: it was saved by another"):
        again.predict_proba([0], [0])


def test_parameter_files_that_cannot_be_read_are_refused(tmp_path):
    folder = tmp_path / "fit"
    at.DawidSkene().fit(ROWS).result_.save(folder)
    (data_folder(folder) / "parameter-rates.arrow").write_bytes(b"\xff\xff\xff\xff nothing")
    reseal(folder)
    with pytest.raises(at.InputError, match=r"the fit in .* cannot be read"):
        at.load(folder)


def test_fits_without_parameters_can_be_read(tmp_path):
    folder = tmp_path / "fit"
    model = at.RobustGPM().fit(ROWS)
    model.result_.save(folder)
    entries = read_entries(folder)
    for path in data_folder(folder).glob("parameter-*"):
        path.unlink()
        del entries["files"][path.name]
    write_entries(folder, entries)
    again = at.RobustGPM().load_fit(at.load(folder))
    assert again.result_.items().equals(model.result_.items())
    with pytest.raises(at.InputError, match="fit again"):
        again.predict_proba([0], [0])


@pytest.mark.parametrize("truth", ["class", "opinions"])
def test_both_read_outs_are_kept(truth, tmp_path):
    fit = at.fit(ROWS, truth=truth)
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    assert (loaded.readout, loaded.verdict) == (fit.readout, fit.verdict)
    for readout in ("right", "opinion"):
        assert loaded.distributions(readout).equals(fit.distributions(readout))
    assert not loaded.distributions("right").equals(loaded.distributions("opinion"))


def test_the_other_read_out_of_an_earlier_fit_is_not_loaded(tmp_path):
    at.fit(ROWS, truth="class").save(tmp_path / "fit")
    at.fit(ROWS, "dawid-skene").save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    assert loaded.other_distribution is None
    with pytest.raises(at.InputError, match="dawid-skene has no read-out 'opinion'"):
        loaded.distributions("opinion")


def test_a_missing_other_read_out_is_refused(saved):
    path = data_folder(saved) / "other-distribution.arrow"
    path.unlink()
    with pytest.raises(at.InputError, match=r"no saved fit in .*other-distribution.* is missing"):
        at.load(saved)
    entries = read_entries(saved)
    del entries["files"][path.name]
    write_entries(saved, entries)
    with pytest.raises(at.InputError, match=r"cannot be read .*other-distribution"):
        at.load(saved)
