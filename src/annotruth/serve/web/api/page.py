"""A page that documents the API, from its OpenAPI description; it works offline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotruth.report.charts.drawing import escaped
from annotruth.serve.pages.layout import Frame, render
from annotruth.serve.pages.table import plain_table


def api_page(schema: Mapping[str, Any]) -> str:
    """Return the page of an API, given its OpenAPI description."""
    info = schema["info"]
    about = f"<p>{_prose(info['description'])}</p>"
    for_programs = '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>'
    title = f"API of {info['title']} {info['version']}"
    return render(Frame(), title, about, for_programs, *_endpoints(schema))


def _endpoints(schema: Mapping[str, Any]) -> Iterator[str]:
    for number, (path, methods) in enumerate(schema["paths"].items()):
        for method, endpoint in methods.items():
            text = endpoint.get("description", endpoint.get("summary", ""))
            heading = escaped(f"{method.upper()} {path}").replace("/", "/<wbr>")
            yield (
                f'<section id="{method}-{number}"><h2>{heading}</h2><p>{_prose(text)}</p>'
                f"{_parameters(endpoint)}{_body(endpoint, schema)}</section>"
            )


def _prose(text: str) -> str:
    """Return text as HTML; what is between backticks is code."""
    return re.sub(r"(`+)([^`]+)\1", r"<code>\2</code>", escaped(text))


def _parameters(endpoint: Mapping[str, Any]) -> str:
    rows = [
        (each["name"], each["in"], each.get("description", ""))
        for each in endpoint.get("parameters", ())
    ]
    return _table(("parameter", "in", "meaning"), rows)


def _body(endpoint: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    content = endpoint.get("requestBody", {}).get("content", {})
    if not content:
        return ""
    sent = next(iter(content.values()))["schema"]
    name = sent.get("oneOf", [sent])[0]["$ref"].rpartition("/")[2]
    fields = schema["components"]["schemas"][name]
    required = fields.get("required", ())
    rows = [
        (name, "yes" if name in required else "", each.get("description", ""))
        for name, each in fields.get("properties", {}).items()
    ]
    kinds = f"<p>Body: {escaped(', '.join(content))}</p>"
    return kinds + _table(("field", "required", "meaning"), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return plain_table(header, [list(map(escaped, row)) for row in rows]) if rows else ""
