"""Describe the API in OpenAPI 3.1."""

from __future__ import annotations

from functools import cache
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
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": _responses(endpoint, schemas),
    }
    if "\n" in summary:
        operation["description"] = " ".join(summary.partition("\n")[2].split())
    if endpoint.body is not None:
        is_required = any(field.is_required() for field in endpoint.body.model_fields.values())
        operation["requestBody"] = {"required": is_required, "content": {_JSON: {"schema": schemas[endpoint.body]}}}
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in endpoint.path_names
    ]


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
