"""The table of past fits: saved, grown by updates, drawn, and checked when it is loaded."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyarrow import feather

import annotruth as at
from annotruth.models import base_fit
from annotruth.models.fits import past_fits

FIRST = [(e, s, (e + (n == e % 3)) % 2) for e in range(6) for n, s in enumerate("uvwxyz")]
START = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


@pytest.fixture
def days(monkeypatch):
    """A clock that is one day later at every fit."""
    times = iter(START + timedelta(days=day) for day in range(100))
    monkeypatch.setattr(base_fit, "now", lambda: next(times))


def test_updates_add_to_the_table(days, tmp_path):
    fit = at.fit(FIRST, "gpm")
    assert fit.fitted_at == START
    fit.save(tmp_path / "fit")
    assert at.load(tmp_path / "fit").fitted_at == START
    assert at.load(tmp_path / "fit").earlier_fits is None
    for day in range(1, 4):
        at.update(tmp_path / "fit", [(day, f"new {day}", 1)]).save(tmp_path / "fit")
    table = at.load(tmp_path / "fit").past_fit_table()
    assert table.schema.equals(past_fits.SCHEMA)
    times = table["time"].unique().to_pylist()
    assert times == [START + timedelta(days=day) for day in range(4)]
    counts = table.select(["fit_labels", "fit_items", "fit_annotators"]).to_pylist()
    assert [*counts[0].values()] == [36, 6, 6]
    assert [*counts[-1].values()] == [39, 6, 9]
    assert len(table) == 6 + 7 + 8 + 9
    first = table.slice(0, 6).to_pydict()
    assert first["annotator"] == list("uvwxyz")
    assert first["n_labels"] == [6] * 6
    assert first["reliability"] == pytest.approx(fit.reliability.tolist())
    assert first["verdict"] == fit.verdict_table()["verdict"].to_pylist()
    assert first["since"] == first["n_labels"]
    assert table["accuracy"].null_count == len(table)
    assert list(at.load(tmp_path / "fit").past_fits().columns) == past_fits.SCHEMA.names


def test_a_fit_that_continues_another_has_its_past(days):
    fit = at.fit(FIRST, "gpm")
    assert len(at.fit(FIRST[::-1], warm_start=fit).past_fit_table()) == 12
    assert at.fit(fit, "majority").earlier_fits is None


def test_fits_of_one_second_stay_apart(monkeypatch):
    monkeypatch.setattr(base_fit, "now", lambda: START)
    fit = at.update(at.fit(FIRST, "gpm"), [(1, "new", 1)])
    assert fit.fitted_at == START + timedelta(seconds=1)
    assert fit.plot.past_fits().title == "Reliability over past fits"


def test_models_without_reliability_have_verdicts_only(days, tmp_path):
    at.update(at.fit(FIRST, "majority"), [(1, "new", 1)]).save(tmp_path / "fit")
    fit = at.load(tmp_path / "fit")
    table = fit.past_fit_table()
    assert table["reliability"].null_count == len(table) == 13
    fit.report(tmp_path / "r.html")
    assert 'id="since"' in (tmp_path / "r.html").read_text()
    with pytest.raises(at.AnnotruthError, match="one fit only"):
        fit.plot.past_fits()


def test_a_first_fit_of_chance_has_no_accuracy_to_draw(days, tmp_path):
    labels = at.simulate.crowd(n_items=60, n_annotators=8, seed=1).labels.to_arrow()
    first = at.fit(labels.slice(0, 150))
    assert first.verdict == "chance"
    assert first.accuracy is None
    later = at.update(first, labels.slice(150))
    assert later.plot.past_fits().title == "Reliability over past fits"
    assert at.update(later, [(1, "new", 1)]).plot.past_fits().title == "Accuracy over past fits"


def test_the_oldest_fits_are_left_out_of_a_long_table(days, monkeypatch):
    monkeypatch.setattr(past_fits, "MAX_ROWS", 15)
    fit = at.fit(FIRST, "gpm")
    for day in range(3):
        fit = at.update(fit, [(day, "u", day % 2)], duplicates="keep")
    assert len(fit.past_fit_table()) == 12


def test_the_chart_shows_those_who_moved_most(days):
    fit = at.fit(FIRST, "gpm")
    bad = [(e, "u", (e + 1) % 2) for e in range(10, 30)]
    good = [(e, s, e % 2) for e in range(10, 30) for s in "vwxyz"]
    later = at.update(fit, bad + good)
    moved = dict(zip("uvwxyz", abs(later.reliability - fit.reliability), strict=True))
    chart = later.plot.past_fits()
    most = sorted(moved, key=lambda name: -moved[name])[:5]
    assert list(dict.fromkeys(chart.data["annotator"])) == ["median of all", *most]
    for width in (340.0, 840.0):
        assert chart.draw(width).width == width


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda t: t.drop_columns("verdict"), "other columns"),
        (lambda t: t.append_column("more", t["low"]), "other columns"),
        (lambda t: t.slice(0, 0), "no time"),
        (lambda t: with_column(t, "reliability", [2.0] * len(t)), "outside 0..1"),
        (lambda t: with_column(t, "n_labels", [-1] * len(t)), "below 0"),
        (lambda t: with_column(t, "since", [-1] * len(t)), "below 0"),
        (lambda t: with_column(t, "accuracy", [1.5] * len(t)), "outside 0..1"),
        (lambda t: with_column(t, "time", list(range(len(t)))[::-1]), "order of time"),
        (lambda t: with_column(t, "time", [1 << 40] * len(t)), "impossible"),
    ],
)
def test_tampered_tables_are_refused(days, tmp_path, monkeypatch, change, line):
    fit = at.update(at.fit(FIRST, "gpm"), [(1, "new", 1)])
    from annotruth.models.storage import folder

    write = feather.write_feather

    def tampered(table, path):
        write(change(table) if "past-fits" in path else table, path)

    monkeypatch.setattr(folder.feather, "write_feather", tampered)
    fit.save(tmp_path / "fit")
    with pytest.raises(at.InputError, match=line):
        at.load(tmp_path / "fit")


def with_column(table, name, values):
    field = table.schema.field(name)
    column = pa.array(values, pa.int64()).cast(field.type) if name == "time" else pa.array(values)
    return table.set_column(table.column_names.index(name), field, column)
