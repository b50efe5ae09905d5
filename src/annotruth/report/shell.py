"""What every page of ours is: one file of HTML that opens anywhere, without a network."""

from __future__ import annotations

import gzip
import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from annotruth.io.atomic import atomic_write
from annotruth.report.drawing import escaped
from annotruth.report.palette import THEMES
from annotruth.report.picture import Picture, category_rules, chart_style

_SCRIPTS = ("data.js", "marks.js", "table.js", "detail.js", "charts.js", "main.js")


def shell(
    *,
    kind: str,
    heading: str,
    under: str,
    links: Mapping[str, str],
    sections: Iterable[str],
    data: str,
    footer: str,
    colours: Sequence[str] = (),
) -> str:
    """Put sections into a page that has its style and script in it and allows no other.

    Parameters
    ----------
    kind, heading, under
        What the page is, such as "Annotation report"; its heading and the line under it.
    links
        The names of sections and what leads to them; the first is where reading begins.
    sections
        Their HTML, escaped already.
    data
        What `packed` made of the numbers behind the page.
    footer
        What is said at the end.
    colours
        The categories' colours.
    """
    style, script = _style(colours), _script()
    return _filled(
        _asset("page.html"),
        {
            "policy": _policy(style, script),
            "title": escaped(f"{heading}: {kind.lower()}"),
            "style": style,
            "first": next(iter(links)),
            "kind": escaped(kind),
            "links": "".join(f'<a href="#{key}">{told}</a>' for key, told in links.items()),
            "heading": escaped(heading),
            "under": escaped(under),
            "sections": "\n".join(sections),
            "footer": escaped(f"Made by annotruth {version('annotruth')}. {footer}"),
            "data": data,
            "script": script,
        },
    )


def write_page(content: str, path: str | Path) -> None:
    """Write a page, whole or not at all."""
    with atomic_write(path) as aside:
        aside.write_text(content, encoding="utf-8", newline="\n")


def rounded(picture: Picture) -> dict[str, Any]:
    """Round the numbers behind a picture to six digits; nan is null."""
    return {
        key: [
            (float(f"{v:.6g}") if math.isfinite(v) else None) if isinstance(v, float) else v
            for v in column
        ]
        for key, column in picture.records.items()
    }


def packed(data: Any) -> str:
    """Compress JSON into letters that mean nothing to HTML; the same data, the same letters."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone half of a surrogate pair, which JSON may hold, has no bytes of its own.
    return b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode()


def _style(colours: Sequence[str]) -> str:
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in THEMES[theme].items())
        for theme in ("light", "dark")
    )
    themes = (
        f":root{{{light}color-scheme:light}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}\n"
        f"@media print{{:root:root:root{{{light}color-scheme:light}}}}\n"
    )
    rules = "\n".join(category_rules(colours))
    return f"{themes}{_asset('page.css')}{chart_style()}{rules}\n"


def _script() -> str:
    return '"use strict";\n(() => {\n' + "".join(map(_asset, _SCRIPTS)) + "})();\n"


def _policy(style: str, script: str) -> str:
    """Allow this page's own style and script, by their hashes, and nothing else."""
    own_style, own_script = (
        b64encode(sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{own_style}'; script-src 'sha256-{own_script}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("annotruth.report").joinpath("assets", name).read_text("utf-8")


def _filled(template: str, parts: dict[str, str]) -> str:
    # In one go, so that braces in the parts stay what they are.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)
