"""The OpenAPI description of the API: what FastAPI knows, and what endpoints read themselves."""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from annotruth.serve.web.bodies import REFERENCE, documented_models


def describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the description of an application; it is made once.

    FastAPI does not know the bodies that endpoints read themselves, the project of a path, which the
    check of the token reads, and that every request needs a token.
    """
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        models = [(model, "validation") for model in documented_models()]
        _, definitions = models_json_schema(models, ref_template=REFERENCE)  # type: ignore[arg-type]
        components = schema.setdefault("components", {})
        components.setdefault("schemas", {}).update(definitions["$defs"])
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                _add_path_parameters(operation, re.findall(r"{(\w+)}", path))
        app.openapi_schema = schema
    return app.openapi_schema


def _add_path_parameters(operation: dict[str, Any], names: list[str]) -> None:
    parameters = operation.setdefault("parameters", [])
    known = {each["name"] for each in parameters if each["in"] == "path"}
    text = {"type": "string", "minLength": 1}
    parameters[:0] = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in names
        if name not in known
    ]
