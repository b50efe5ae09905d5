"""The tables of several questions, their files, and how they are saved."""

import json

import numpy as np
import pyarrow as pa
import pytest
from tests.questions.conftest import HOSTILE

import annotruth as at
from annotruth.models.result import Fit
from annotruth.observations.columns.questions import rows_of_question


def test_fits_are_a_mapping_of_questions(fits):
    assert list(fits) == list(fits.keys()) == ["q1", "q2"]
    assert len(fits) == 2
    assert "q1" in fits
    assert "q3" not in fits
    assert fits["q2"].data.scale.is_ordinal
    with pytest.raises(KeyError, match="no question 'q3' \\(found: q1, q2\\)"):
        fits["q3"]
    with pytest.raises(TypeError):
        fits.questions["q3"] = fits["q1"]


def test_tables_have_a_first_column_question(fits, simulation):
    tables = {
        "items": fits.items(),
        "annotators": fits.annotators(),
        "labels": fits.labels(),
        "keep": fits.keep(),
        "distributions": fits.distributions(),
        "overview": fits.overview(),
    }
    for table in tables.values():
        assert table.column_names[0] == "question"
        assert set(table["question"].to_pylist()) == {"q1", "q2"}
    assert tables["labels"].select(["question", "item", "annotator"]).num_rows == 400
    of_one = tables["annotators"].filter(pa.compute.equal(tables["annotators"]["question"], "q2"))
    assert of_one["reliability"].to_pylist() == fits["q2"].annotators()["reliability"].to_pylist()


def test_the_overview_has_one_row_per_question(fits):
    rows = fits.overview().to_pylist()
    assert [row["scale"] for row in rows] == ["nominal", "ordinal"]
    for row in rows:
        fit = fits[row["question"]]
        assert row["n_labels"] == fit.data.n_labels
        assert row["reliability"] == pytest.approx(np.median(fit.reliability))
        assert row["spammers"] == fit.n_spammers
    assert rows[0]["agreement"] == pytest.approx(
        at.coefficients.krippendorff_alpha(fits["q1"].data)
    )


def test_the_order_of_rows_does_not_matter(simulation, fits):
    shuffled = simulation.table.take(np.random.default_rng(0).permutation(400))
    again = at.fit(shuffled, "gpm", question="all")
    for name in fits:
        one = dict(zip(fits[name].data.annotators.to_pylist(), fits[name].reliability, strict=True))
        two = dict(
            zip(again[name].data.annotators.to_pylist(), again[name].reliability, strict=True)
        )
        assert one == pytest.approx(two, abs=1e-9)


def test_each_question_is_fitted_as_it_is_alone(simulation, fits):
    for name in fits:
        alone = at.fit(rows_of_question(simulation.table, "question", name), "gpm")
        assert np.array_equal(fits[name].reliability, alone.reliability)
        assert np.array_equal(fits[name].distribution.probability, alone.distribution.probability)


def test_the_summary_has_one_line_per_question(fits):
    first, shared, *others = fits.summary().splitlines()
    assert first == "2 questions: 400 labels by 12 annotators"
    assert (
        shared
        == "annotators' reliability is not shared between questions: gpm takes no annotator prior"
    )
    assert [line.partition(":")[0] for line in others] == ["q1", "q2"]
    assert repr(fits) == "QuestionFits(q1, q2: 400 labels by 12 annotators)"


def test_errors_name_the_question():
    table = pa.table(
        {
            "question": ["tone"] * 2 + ["stars"] * 2,
            "item": [1, 1, 1, 1],
            "annotator": ["a", "b"] * 2,
            "label": ["good", "bad", "1", "2"],
        }
    )
    with pytest.raises(at.InputError, match="question 'tone': an ordinal scale of text"):
        at.fit(table, question="all", scale="ordinal")
    refused = {"classifier": table, "warm_start": "x", "machines": ["a"], "by": "age", "sets": True}
    refused |= {"annotators": table}
    for option in ({name: value} for name, value in refused.items()):
        with pytest.raises(at.InputError, match="is of one question"):
            at.fit(table, question="all", **option)
    with pytest.raises(at.InputError, match="read into memory"):
        at.fit(table, question="all", memory="1GB")
    with pytest.raises(at.InputError, match="fitted on this machine"):
        at.fit(table, question="all", engine="spark")
    assert len(at.fit(table, "gpm", question="all", engine="reference")) == 2


def test_saved_fits_are_loaded_as_they_were(tmp_path, fits):
    fits.save(tmp_path / "saved")
    loaded = at.load(tmp_path / "saved")
    assert loaded.summary() == fits.summary()
    assert loaded.sharing == fits.sharing
    assert loaded.annotator_table().equals(fits.annotator_table())
    assert loaded.item_table().equals(fits.item_table())
    assert at.load(tmp_path / "saved" / "q1").summary() == fits["q1"].summary()


def test_names_of_questions_are_never_paths(tmp_path, hostile):
    hostile.save(tmp_path / "deep" / "saved")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep"]
    names = {p.name for p in (tmp_path / "deep" / "saved").iterdir()} - {".lock"}
    assert names == {"q1", "q2", "q3", "questions.json"}
    assert list(at.load(tmp_path / "deep" / "saved")) == list(HOSTILE)


def test_a_failing_save_leaves_the_old_fits(tmp_path, monkeypatch, fits, hostile):
    folder = tmp_path / "saved"
    fits.save(folder)
    save = Fit.save

    def fail(fit, path):
        if path.name.endswith("5"):
            raise OSError(28, "No space left on device")
        save(fit, path)

    monkeypatch.setattr(Fit, "save", fail)
    with pytest.raises(at.AnnotruthError, match="No space left"):
        hostile.save(folder)
    assert at.load(folder).summary() == fits.summary()
    assert sorted(p.name for p in folder.glob("q[0-9]*")) == ["q1", "q2"]
    monkeypatch.undo()
    hostile.save(folder)
    assert list(at.load(folder)) == list(HOSTILE)
    assert len(list(folder.glob("q[0-9]*"))) == 3


def test_one_fit_and_several_do_not_share_a_folder(tmp_path, fits):
    fits.save(tmp_path / "several")
    with pytest.raises(at.InputError, match="holds the fits of several questions"):
        fits["q1"].save(tmp_path / "several")
    fits["q1"].save(tmp_path / "one")
    with pytest.raises(at.InputError, match="holds a fit of one question"):
        fits.save(tmp_path / "one")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": 9}, "entry format is not"),
        ({"kind": "ranking"}, "entry kind is not"),
        ({"questions": []}, "names no questions"),
        ({"questions": [{"question": "a", "folder": "../q1"}]}, "entry questions is not"),
        ({"questions": [{"question": "a", "folder": "q1/../../q1"}]}, "entry questions is not"),
        ({"questions": [{"question": 7, "folder": "q1"}]}, "entry questions is not"),
        ({"questions": ["q1"]}, "entry questions is not"),
        ({"questions": [{"question": "a", "folder": "q7"}]}, "no saved fit in"),
        ({"sharing": {}}, "cannot be read"),
        ({"sharing": None}, "cannot be read"),
        (None, "cannot be read"),  # truncated
        (
            {"sharing": {"strength": "x", "why": "", "gain": 0, "error": 0, "scores": {}}},
            "entry sharing is not",
        ),
    ],
)
def test_a_tampered_manifest_is_refused(tmp_path, write, fits, change, text):
    fits.save(tmp_path)
    manifest = json.loads((tmp_path / "questions.json").read_text())
    write("questions.json", "{" if change is None else json.dumps(manifest | change))
    with pytest.raises(at.InputError, match=text):
        at.load(tmp_path)
