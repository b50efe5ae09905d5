"""What a saved fit remembers for the next labels: columns, question, who was left out, and the price."""

import json

import pytest

import annotruth as at

HEADER = "film,user,stars"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with labels of two days, and a fit of the first without p5."""
    monkeypatch.chdir(tmp_path)
    for day in range(2):
        rows = [
            f"f{e},p{s},{1 + (e + (s == e % 7)) % 4}"
            for e in range(12 * day, 12 * day + 12)
            for s in range(6)
        ]
        (tmp_path / f"day{day}.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return tmp_path


def names(path="fit"):
    return sorted(at.load(path).data.annotators.to_pylist())


COLUMNS = "item=film,annotator=user,label=stars"
FIRST = (
    "fit",
    "day0.csv",
    "--columns",
    COLUMNS,
    "--drop",
    "p5",
    "--save",
    "fit",
    "--price",
    "0.05",
)


def test_updates_need_no_options_again(run, folder):
    assert run(*FIRST, "--quiet")[0] == 0
    code, out, err = run("update", "fit", "day1.csv", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["n_labels"] == 120
    assert names() == ["p0", "p1", "p2", "p3", "p4"]
    assert run("update", "fit", "day1.csv", "--drop", "p4", "--quiet")[0] == 0
    everything = ("day0.csv", "day1.csv")
    assert run("update", "fit", *everything, "--quiet")[0] == 0
    assert names() == ["p0", "p1", "p2", "p3"]
    campaign = at.load("fit").campaign
    assert (campaign.drop, campaign.price) == (["p5", "p4"], 0.05)
    # As one fit of all labels, and a later export continues it without options, too.
    options = ("--columns", COLUMNS, "--drop", "p5,p4", "--json")
    expected = json.loads(run("fit", *everything, *options)[1])
    warm = json.loads(run("fit", *everything, "--warm-start", "fit", "--save", "w", "--json")[1])
    for name in ("n_labels", "n_annotators"):
        assert warm[name] == expected[name]
    assert at.load("w").campaign == campaign


def test_files_with_usual_names_are_read_as_any_other(run, folder):
    assert run(*FIRST, "--quiet")[0] == 0
    text = (folder / "day1.csv").read_text()
    (folder / "usual.csv").write_text(text.replace(HEADER, "item,annotator,label"))
    assert run("update", "fit", "usual.csv", "--quiet")[0] == 0
    assert at.load("fit").data.n_items == 24
    (folder / "other.csv").write_text(text.replace(HEADER, "a,b,c"))
    code, _, err = run("update", "fit", "other.csv")
    assert (code, "film" in err) == (2, True)


def test_the_question_is_remembered(run, folder):
    rows = [f"i{e},p{s},{q},{(e + s // 4) % 2}" for e in range(8) for s in range(5) for q in "xy"]
    (folder / "both.csv").write_text("\n".join(["item,annotator,question,label", *rows]) + "\n")
    assert run("fit", "both.csv", "--question", "x", "--save", "fit", "--quiet")[0] == 0
    more = [row.replace("i", "j") for row in rows]
    (folder / "more.csv").write_text("\n".join(["item,annotator,question,label", *more]) + "\n")
    assert run("update", "fit", "more.csv", "--quiet")[0] == 0
    assert at.load("fit").data.n_labels == 80
    # A table of this question alone is read as any other; one of another question is refused.
    plain = [f"k{e},p{s},{(e + s // 4) % 2}" for e in range(8) for s in range(5)]
    (folder / "plain.csv").write_text("\n".join(["item,annotator,label", *plain]) + "\n")
    assert run("update", "fit", "plain.csv", "--quiet")[0] == 0
    assert at.load("fit").data.n_labels == 120
    (folder / "z.csv").write_text((folder / "more.csv").read_text().replace(",x,", ",z,"))
    assert "no question 'x'" in run("update", "fit", "z.csv")[2]


def test_each_question_is_remembered(run, folder):
    def write(name, first):
        rows = [
            f"{first}{e},p{s},{q},{(e + s // 4) % 2}"
            for e in range(8)
            for s in range(5)
            for q in "xy"
        ]
        (folder / name).write_text("\n".join(["film,annotator,part,label", *rows]) + "\n")

    write("both.csv", "i")
    write("more.csv", "j")
    columns = ("--columns", "item=film,question=part")
    words = ("fit", "both.csv", "--question", "all", *columns, "--drop", "p4", "--save", "all")
    assert run(*words, "--quiet")[0] == 0
    for name in ("q1", "q2"):
        assert run("update", folder / "all" / name, "more.csv", "--quiet")[0] == 0
        assert at.load(folder / "all" / name).data.n_labels == 64


def test_prices_reach_the_next_workbook(run, folder):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("xlsxwriter")
    assert run(*FIRST, "--quiet")[0] == 0
    for words, price in (
        (("next", "fit"), 0.05),
        (("update", "fit", "day1.csv", "--price", "0.2"), 0.2),
    ):
        assert run(*words, "--out", "w.xlsx", "--quiet")[0] == 0
        header, first, *_ = openpyxl.load_workbook("w.xlsx")["Pay"].iter_rows(values_only=True)
        assert dict(zip(header, first, strict=True))["Price"] == price
    assert at.load("fit").campaign.price == 0.2


def test_fits_that_remember_nothing_are_saved_as_before(folder):
    fit = at.fit([("a", "ann", 1), ("a", "bob", 2), ("b", "ann", 1)], "gpm")
    fit.save("fit")
    assert "campaign" not in json.loads((folder / "fit" / "fit.json").read_text())
    assert at.load("fit").campaign == fit.campaign


@pytest.mark.parametrize(
    "campaign", [{"drop": [1]}, {"price": -1}, {"x": 1}, [], {"columns": {"item": 3}}]
)
def test_damaged_entries_are_refused(folder, campaign):
    from annotruth.models.storage.folder import _checksum

    at.fit([("a", "ann", 1), ("a", "bob", 2), ("b", "ann", 1)], "gpm").save("fit")
    path = folder / "fit" / "fit.json"
    entries = json.loads(path.read_text()) | {"campaign": campaign}
    path.write_text(json.dumps(entries | {"checksum": _checksum(entries)}))
    with pytest.raises(at.InputError, match="the entry campaign in"):
        at.load("fit")


def test_counts_of_the_first_file_do_not_stay(run, folder):
    def batch(name, items):
        rows = [
            f"h{e},a{e}{s},w{s},Approved,{e},{'cat' if (e + s // 3) % 2 else 'dog'}"
            for e in items
            for s in range(4)
        ]
        header = "HITId,AssignmentId,WorkerId,AssignmentStatus,Input.image,Answer.category"
        (folder / name).write_text("\n".join([header, *rows]) + "\n")

    batch("one.csv", range(6))
    batch("two.csv", range(6, 12))
    assert run("fit", "one.csv", "--save", "fit", "--quiet")[0] == 0
    before = at.load("fit").data.read_as
    assert "24" in before
    assert run("update", "fit", "two.csv", "--quiet")[0] == 0
    after = at.load("fit").data.read_as
    assert before.startswith(after)
    assert "24" not in after
