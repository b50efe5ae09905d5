"""The content of items on the page: kinds, hostile values, and what the page loads when."""

import base64
import re
import struct
import zlib
from html import unescape

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.report.content import MAX_TEXT, content_type
from annotruth.report.page import make_report


def png(width=4, height=3):
    """A small picture."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + bytes((200, 90, 40)) * width for _ in range(height))
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", size), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    )


expect = pytest.importorskip("playwright.sync_api").expect

PICTURE = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
HOSTILE = (
    "javascript:alert(1)",
    " JaVaScRiPt:alert(1)//.png",
    "data:text/html,<script>alert(1)</script>",
    "data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=",
    "data:image/png;base64,AAAA\" onerror=\"alert(1)",
    "vbscript:x.png",
    "file:///etc/passwd.png",
    "blob:https://example.com/1.png",
    "//example.com/a.png",
    "\\\\example.com\\a.png",
    "/\\example.com/a.png",
    "https://example.com/a.png\" onerror=\"alert(1)",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "java\nscript:alert(1).png",
    "a.png\x00",
    "http:\\\\example.com\\a.png",
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("A film about a cat.", "text"),
        ("", "text"),
        ("https://example.com/a", "link"),
        ("HTTPS://example.com/A.PNG?size=2", "image"),
        ("http://example.com/a.mp3#t=2", "audio"),
        ("pictures/a b.jpeg", "image"),
        ("/srv/clips/1.mp4", "video"),
        ("../sound.wav", "audio"),
        ("picture.svg", "text"),
        (PICTURE, "image"),
        *((value, "text") for value in HOSTILE),
    ],
)
def test_values_are_shown_as_what_they_look_like(value, kind):
    assert content_type(value) == kind


def labels_with(values, name="what"):
    rows = [(f"item {e}", who, "cat" if (e + s) % 3 else "dog") for e in range(len(values)) for s, who in enumerate("abc")]  # fmt: skip
    item, annotator, label = zip(*rows, strict=True)
    column = [value for value in values for _ in range(3)]
    table = pa.table({"item": item, "annotator": annotator, "label": label, name: column})
    return at.Labels.of(table, content=[name])


def policy(text):
    return unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', text)[0])


def test_the_policy_is_widened_only_by_what_is_there():
    plain = policy(make_report(at.fit(labels_with(["text", "more text"]), "majority")).html())
    assert "img-src data:;" in plain
    assert "media-src" not in plain
    assert plain.startswith("default-src 'none'; ")
    for value, directive in (
        ("https://example.com/a.png", "img-src data: https:;"),
        ("http://example.com/a.mp4", "media-src http:;"),
        ("a/b.png", "img-src data: 'self' file:;"),
    ):
        widened = policy(make_report(at.fit(labels_with([value, "text"]), "majority")).html())
        assert directive in widened
        assert ("media-src" in widened) == ("mp4" in value)
        assert "script-src 'sha256-" in widened


def test_long_texts_are_cut():
    text = make_report(at.fit(labels_with(["x" * (MAX_TEXT + 5), "short"]), "majority")).html()
    assert len(text) < 300_000
    assert (
        at.fit(labels_with(["x" * 9000]), "majority").data.covariates.items["what"][0].as_py()
        == "x" * 9000
    )


@pytest.fixture
def opened(tmp_path, read):
    """Open a report of items with this content; requests to example.com are answered."""

    def opened(values, **options):
        fit = at.fit(labels_with(values, name="<b>what</b>"), "majority")
        path = tmp_path / "report.html"
        fit.report(path, **options)
        reader = read(path)
        reader.page.route(
            "http*://example.com/**",
            lambda route: route.fulfill(body=png(), content_type="image/png"),
        )
        return reader, path

    return opened


def open_item(reader, number):
    search = reader.table("items").get_by_role("searchbox")
    search.fill(f"item {number}")
    # The table is made anew a moment later, and a click in between would be lost.
    expect(reader.rows("items").filter(has_not_text=f"item {number}")).to_have_count(0)
    button = reader.table("items").get_by_role("button", name=f"item {number}", exact=True)
    button.click()
    expect(reader.page.locator("dialog h2")).to_have_text(f"item {number}")
    return reader.page.locator("dialog")


def test_hostile_content_stays_text(opened):
    values = [*HOSTILE, "y" * 20_000]
    reader, path = opened([*values, "last"])
    for number, value in enumerate(values):
        dialog = open_item(reader, number)
        shown = dialog.locator(".content")
        assert " ".join(shown.inner_text().split())[:100] == " ".join(value.split())[:100]
        assert dialog.locator("img, a, audio, video, iframe, script").count() == 0
        reader.page.keyboard.press("Escape")
    assert reader.messages == []
    assert reader.requests == [path.as_uri()]
    assert reader.page.locator("script").count() == 2


def test_nothing_is_loaded_before_an_item_is_opened(opened, tmp_path):
    (tmp_path / "a b.png").write_bytes(png())
    reader, path = opened(
        ["https://example.com/a.png", "a b.png", PICTURE, "https://example.com/page"]
    )
    assert reader.requests == [path.as_uri()]
    for number, url in ((0, "https://example.com/a.png"), (1, (tmp_path / "a b.png").as_uri())):
        image = open_item(reader, number).locator(".content img")
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 4
        assert image.evaluate("image => image.currentSrc") == url
        assert image.get_attribute("referrerpolicy") == "no-referrer"
        reader.page.keyboard.press("Escape")
    image = open_item(reader, 2).locator(".content img")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 4
    reader.page.keyboard.press("Escape")
    link = open_item(reader, 3).locator(".content a")
    assert link.get_attribute("href") == "https://example.com/page"
    assert link.get_attribute("rel") == "noopener noreferrer"
    assert link.get_attribute("target") == "_blank"
    assert [url for url in reader.requests if url.startswith("http")] == [
        "https://example.com/a.png"
    ]
    assert reader.messages == []


def test_a_file_that_cannot_be_loaded_is_named(opened):
    reader, _ = opened(["none.png", "clip.mp4", "text"])
    for number, what in enumerate(
        ("image cannot be loaded: none.png", "video cannot be loaded: clip.mp4")
    ):
        note = open_item(reader, number).locator(".note")
        note.wait_for()
        assert what in note.inner_text()
        reader.page.keyboard.press("Escape")


def test_short_texts_stand_beside_the_item(opened):
    reader, _ = opened(["A film about a cat.", "Another film."])
    assert set(reader.column("items", "<b>what</b>")) == {"A film about a cat.", "Another film."}
    reader.table("items").get_by_role("searchbox").fill("about a cat")
    expect(reader.table("items").locator("output")).to_have_text("1 of 2")
