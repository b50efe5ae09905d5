"""A page that documents the API, from its OpenAPI description: one file, without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotruth.report.charts.drawing import escaped

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>{title}</h1><p>{about}</p>
<p><a href="/openapi.json">openapi.json</a> has the same for programs.</p>
{endpoints}
</main></body></html>
"""


def api_page(schema: Mapping[str, Any]) -> str:
    """Return the page of an API, given its OpenAPI description."""
    info = schema["info"]
    return _PAGE.format(
        title=escaped(f"API of {info['title']} {info['version']}"),
        about=escaped(info["description"]),
        endpoints="\n".join(_endpoints(schema)),
    )


def _endpoints(schema: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, endpoint in methods.items():
            text = endpoint.get("description", endpoint.get("summary", ""))
            yield (
                f"<section><h2><code>{method.upper()} {escaped(path)}</code></h2>"
                f"<p>{escaped(text)}</p>{_parameters(endpoint)}{_body(endpoint)}</section>"
            )


def _parameters(endpoint: Mapping[str, Any]) -> str:
    rows = [
        (each["name"], each["in"], each.get("description", ""))
        for each in endpoint.get("parameters", ())
    ]
    return _table(("parameter", "in", ""), rows)


def _body(endpoint: Mapping[str, Any]) -> str:
    content = endpoint.get("requestBody", {}).get("content", {})
    if not content:
        return ""
    schema = next(iter(content.values()))["schema"]
    fields = schema.get("oneOf", [schema])[0]
    required = fields.get("required", ())
    rows = [
        (name, "required" if name in required else "", each.get("description", ""))
        for name, each in fields.get("properties", {}).items()
    ]
    return f"<p>Body: {escaped(', '.join(content))}</p>{_table(('field', '', ''), rows)}"


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{escaped(each)}</th>' for each in header)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escaped(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
