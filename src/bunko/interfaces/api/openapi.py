"""Describe the API in OpenAPI 3.1, and show that as a page without scripts and without anything from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from http import HTTPStatus
from typing import Any

from pydantic import TypeAdapter

from bunko.interfaces.api import problems
from bunko.interfaces.api.endpoint import PREFIX, Endpoint
from bunko.interfaces.api.problems import ProblemFields
from bunko.interfaces.api.routes import all_endpoints
from bunko.version import __version__

_REFERENCES = "#/components/schemas/{model}"
# Every request can end with these: a wrong parameter, no valid token, not allowed, unknown, a foreign Host, too many
# requests, a bug, another server that fails, a library that is busy or away, a full disk.
_COMMON_ERRORS = (400, 401, 403, 404, 421, 429, 500, 502, 503, 507)
_CHANGE_ERRORS = (409,)
_BODY_ERRORS = (413, 415)
_JSON = "application/json"


@cache
def describe_api() -> dict[str, Any]:
    """Return the description of all endpoints."""
    endpoints = all_endpoints()
    shapes: dict[Any, TypeAdapter[Any]] = {ProblemFields: TypeAdapter(ProblemFields)}
    for endpoint in endpoints:
        shapes |= {shape: TypeAdapter(shape) for shape in (endpoint.reply, endpoint.body) if shape is not None}
    schemas, components = TypeAdapter.json_schemas(
        [(shape, "validation", adapter) for shape, adapter in shapes.items()], ref_template=_REFERENCES
    )
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        operation = _describe(endpoint, {shape: schema for (shape, _), schema in schemas.items()})
        paths.setdefault(PREFIX + endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bunko",
            "version": __version__,
            "description": "Search, read and change a library of documents. Errors are problem details (RFC 9457).",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": components.get("$defs", {}),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "bunko_session"},
            },
        },
    }


def _describe(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    summary = (endpoint.answer.__doc__ or "").strip()
    operation: dict[str, Any] = {
        "operationId": endpoint.answer.__name__,
        "summary": summary.partition("\n")[0].rstrip("."),
        "tags": [endpoint.segments[0]],
        "parameters": [
            *[
                {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
                for name in endpoint.path_names
            ],
            *_query_parameters(endpoint),
        ],
        "responses": _responses(endpoint, schemas),
    }
    if "\n" in summary:
        operation["description"] = " ".join(summary.partition("\n")[2].split())
    if endpoint.body is not None:
        is_required = any(field.is_required() for field in endpoint.body.model_fields.values())
        operation["requestBody"] = {"required": is_required, "content": {_JSON: {"schema": schemas[endpoint.body]}}}
    return operation


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    schema = endpoint.query.model_json_schema(ref_template=_REFERENCES)
    parameters = []
    for name, field in schema.get("properties", {}).items():
        description = field.pop("description", "")
        field.pop("title", None)
        if options := field.pop("anyOf", None):  # a parameter is left out, never null
            field |= next(option for option in options if option != {"type": "null"})
            field.pop("default", None)
        parameters.append(
            {
                "name": name,
                "in": "query",
                "required": name in schema.get("required", ()),
                "description": description,
                "schema": field,
            }
        )
    return parameters


def _responses(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": HTTPStatus(endpoint.status).phrase}
    if endpoint.reply is not None:
        media_type = "text/event-stream" if endpoint.is_stream else _JSON
        success["content"] = {media_type: {"schema": schemas[endpoint.reply]}}
    responses = {str(endpoint.status): success}
    if endpoint.has_etag:
        success["headers"] = {"ETag": {"description": "Of this state", "schema": {"type": "string"}}}
        responses["304"] = {"description": "Not changed since If-None-Match"}
    statuses = {*_COMMON_ERRORS, *endpoint.errors}
    statuses |= set(_CHANGE_ERRORS) if endpoint.right == "write" else set()
    statuses |= set(_BODY_ERRORS) if endpoint.body is not None else set()
    for status in sorted(statuses):
        content = {problems.MEDIA_TYPE: {"schema": schemas[ProblemFields]}}
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    return responses


_STYLE_PATH, _DESCRIPTION_PATH = "/api/docs.css", f"{PREFIX}/openapi.json"
_STYLE = """\
:root { color-scheme: light dark; background: light-dark(#fdfcf9, #16181b); color: light-dark(#1f2328, #e8e6e1); }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; overflow-wrap: anywhere; padding: 1rem; }
a { color: light-dark(#9a3f1c, #f0a07c); }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
section { border-top: 1px solid; margin-top: 1.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid; padding: 0.25rem 0.5rem; text-align: left; vertical-align: top; }
.wide { overflow-wrap: normal; overflow-x: auto; }
"""


def description() -> tuple[str, str]:
    """Return the description as JSON, and its media type."""
    return json.dumps(describe_api(), ensure_ascii=False), "application/json"


@cache
def docs_page() -> tuple[str, str]:
    """Return the page, and its media type."""
    api = describe_api()
    operations = [
        (path, method.upper(), operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]
    contents = "".join(
        f'<li><a href="#{operation["operationId"]}"><code>{method} {escape(path)}</code></a></li>'
        for path, method, operation in operations
    )
    sections = "".join(_section(api, *operation) for operation in operations)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>API of bunko</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="{_STYLE_PATH}"></head><body><main><h1>API of bunko</h1>'
        f"<p>{escape(api['info']['description'])} Version {escape(api['info']['version'])}, "
        f'<a href="{_DESCRIPTION_PATH}">OpenAPI description</a>.</p>'
        f'<nav aria-label="Endpoints"><ul>{contents}</ul></nav>{sections}</main></body></html>',
        "text/html",
    )


def _section(api: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> str:
    parameters = [(item["name"], item["in"], item["schema"], item.get("description", ""), item["required"])
                  for item in operation["parameters"]]  # fmt: skip
    if body := operation.get("requestBody"):
        schema = _resolve(api, body["content"]["application/json"]["schema"])
        parameters += [
            (name, "body", field, field.get("description", ""), name in schema.get("required", ()))
            for name, field in schema.get("properties", {}).items()
        ]
    rows = "".join(
        f"<tr><th scope=row><code>{escape(name)}</code></th><td>{place}{', required' if is_required else ''}</td>"
        f"<td>{escape(_type_name(api, schema))}</td><td>{escape(text)}</td></tr>"
        for name, place, schema, text, is_required in parameters
    )
    head = "<tr><th scope=col>name</th><th scope=col>in</th><th scope=col>type</th><th scope=col>meaning</th></tr>"
    table = f'<div class="wide" tabindex="0"><table>{head}{rows}</table></div>' if rows else ""
    replies = "".join(
        f"<p>{status}: {escape(_type_name(api, content['schema']))}</p>"
        for status, reply in operation["responses"].items()
        if status.startswith("2")
        for content in reply.get("content", {}).values()
    )
    text = escape(f"{operation['summary']}. {operation.get('description', '')}".strip())
    return (
        f'<section id="{operation["operationId"]}"><h2><code>{method} {escape(path)}</code></h2><p>{text}</p>'
        f"{table}{replies}</section>"
    )


def _resolve(api: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    target: Mapping[str, Any] = api["components"]["schemas"][reference.rpartition("/")[2]] if reference else schema
    return target


def _type_name(api: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return a type in words: an object with its fields, each with the name of its own type."""
    if options := schema.get("anyOf"):
        return " or ".join(_short_name(option) for option in options)
    resolved = _resolve(api, schema)
    if fields := resolved.get("properties"):
        return "{" + ", ".join(f"{name}: {_short_name(field)}" for name, field in fields.items()) + "}"
    return _short_name(resolved)


def _short_name(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if options := schema.get("anyOf"):
        return " or ".join(map(_short_name, options))
    if choices := schema.get("enum"):
        return " | ".join(map(str, choices))
    if schema.get("type") == "array":
        return f"list of {_short_name(schema.get('items', {}))}"
    return str(schema.get("const") or schema.get("type", "any"))


# What is the same for everybody, by its address.
FIXED_PAGES: Mapping[str, Callable[[], tuple[str, str]]] = {
    "/api/docs": docs_page,
    _STYLE_PATH: lambda: (_STYLE, "text/css"),
    _DESCRIPTION_PATH: description,
}
