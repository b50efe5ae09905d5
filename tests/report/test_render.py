"""Parts as HTML: text is always escaped, and packages can add parts of their own."""

from dataclasses import dataclass

import pytest
from markupsafe import Markup

from annotruth.report import render
from annotruth.report.render import Renderer, Section, SideBySide, renderer, with_code
from annotruth.report.sections import Trust

BAD = "<script>'\"&\x01\n{{x}}"
SAFE = "&lt;script&gt;&#39;&#34;&amp;"
PARTS = (
    render.Strong(BAD),
    render.CodeText(BAD),
    render.Link(BAD, BAD),
    render.Text([BAD, render.Strong(BAD)], BAD),
    render.Heading(BAD),
    render.Bullets([BAD]),
    render.Facts([(BAD, BAD, BAD)]),
    render.Settings({BAD: BAD}),
    render.Chips([BAD], [0]),
    render.SmallTable([BAD], [[BAD, BAD]], BAD),
    render.DataTable(BAD, BAD),
    render.CountLine(BAD, 3, BAD),
    render.NamedRows([(BAD, BAD)]),
    render.Answer(BAD, [BAD]),
    Trust(BAD, BAD, BAD, BAD),
    Section(BAD, BAD, [BAD]),
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_all_text_of_parts_is_escaped(part):
    html = renderer().show(part)
    assert SAFE in html
    assert "<script>" not in html
    assert "\x01" not in html
    assert "{{x}}" in html


def test_the_id_that_opens_a_row_is_kept_exactly():
    html = renderer().show(render.Opener("a b", "items", 'a\n "b'))
    assert 'data-open="items|a\n &#34;b"' in html


def test_what_stands_between_backticks_is_code():
    assert with_code("see `fit --out <DIR>`") == "see <code>fit --out &lt;DIR&gt;</code>"


def test_a_section_finds_its_charts_and_tables_wherever_they_stand():
    tables = [render.DataTable(name, "") for name in "abc"]
    section = Section("x", "X", [tables[0], SideBySide([render.Beside([tables[1]]), tables[2]])])
    assert list(section.find(render.DataTable)) == tables


@dataclass(frozen=True)
class Badge:
    text: str


def test_a_package_adds_parts_and_pages_of_its_own(tmp_path, monkeypatch):
    folder = tmp_path / "pages_of_a_test" / "templates"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "parts.html").write_text(
        "{% macro Badge(part) %}<i>{{ part.text }}</i>{% endmacro %}"
    )
    (folder / "own.html").write_text("{{ show(parts) }}")
    monkeypatch.syspath_prepend(tmp_path)
    own = Renderer("pages_of_a_test")
    shown = own.page("own.html", parts=[Badge("<b>"), render.Strong("x")])
    assert shown == "<i>&lt;b&gt;</i><b>x</b>"
    assert own.show(Markup("<hr>")) == "<hr>"
