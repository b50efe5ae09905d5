"""Saved fits of PairGPM that were changed: kernels never index with what is out of range."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fuzz.tampering import change_parameter, tampered

import annotruth as at
from annotruth import simulate
from annotruth.models.pairs.pair_gpm.model import PairGPM


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = simulate.comparers(n_items=6, n_annotators=8, tie_rate=0.3, seed=1)
    folder = tmp_path_factory.mktemp("fits") / "fit"
    PairGPM(tol=10.0).fit(made.comparisons).result_.save(folder)
    return folder


def copied(saved: Path, folder: Path) -> Path:
    at.load(saved).save(folder)
    return folder


def predict(fit: Any) -> Any:
    model = PairGPM().load_fit(fit)
    return model.predict_proba(np.array([0, 1]), np.array([5, 2]), np.array([0, -1]))


def with_first(value: int) -> Callable[[Any], Any]:
    def change(values: Any) -> Any:
        values.flat[0] = value
        return values

    return change


def test_a_favoured_item_that_does_not_exist_is_refused(saved: Path, tmp_path: Path) -> None:
    folder = copied(saved, tmp_path / "fit")
    change_parameter(folder, "favoured", with_first(6))
    with pytest.raises(at.InputError, match=r"favoured has a code outside -1\.\.5"):
        at.load(folder)


COLUMNS = ["theta", "share", "level", "p_class", "p_level", "side", "pair_tie"]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *((name, False) for name in COLUMNS),
        *((name, True) for name in ("favoured", "p_class", "counts")),
    ],
)
def test_parameters_of_another_shape_are_refused(
    saved: Path, tmp_path: Path, name: str, rows: bool
) -> None:
    folder = copied(saved, tmp_path / "fit")
    change_parameter(folder, name, lambda values: values[:-1] if rows else values[..., :-1])
    with pytest.raises(at.InputError, match=f"has no {name} of "):
        predict(at.load(folder))


@pytest.mark.parametrize("codes", [([6], [0], [0]), ([-1], [0], [0]), ([0], [1], [8])])
def test_new_comparisons_of_unknown_codes_are_refused(saved: Path, codes: Any) -> None:
    model = PairGPM().load_fit(at.load(saved))
    with pytest.raises(at.InputError, match="has a code outside"):
        model.predict_proba(*map(np.array, codes))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_tampered_fits_raise_nothing_but_annotruth_errors(saved: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n_loaded = 0
    for number in range(60):
        tampered(saved, tmp_path / str(number), rng)
        with suppress(at.AnnotruthError):
            fit = at.load(tmp_path / str(number))
            n_loaded += 1
            for use in (predict, at.Fit.summary, at.Fit.items):
                with suppress(at.AnnotruthError):
                    use(fit)
    assert n_loaded > 5
