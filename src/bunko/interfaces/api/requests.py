"""Read the parameters and the body of a request, within limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_origin
from urllib.parse import parse_qsl

from pydantic import ValidationError

from bunko.interfaces.api.problems import RequestError, validation_error

if TYPE_CHECKING:
    from starlette.requests import Request

    from bunko.interfaces.api.endpoint import Shape

_MAX_PARAMETERS = 200


def parse_query(shape: type[Shape], query_string: bytes) -> Shape:
    """Return the parameters of an address; one that takes several values may be repeated."""
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_PARAMETERS, errors="strict"
        )
    except UnicodeDecodeError as error:
        raise RequestError("The parameters are not in UTF-8", hint="Encode them as UTF-8.") from error
    except ValueError as error:
        raise RequestError(f"There are more than {_MAX_PARAMETERS} parameters", hint="Give fewer.") from error
    values: dict[str, Any] = {}
    for name, value in pairs:
        field = shape.model_fields.get(name)
        if field is not None and get_origin(field.annotation) in (list, tuple):
            values.setdefault(name, []).append(value)
        elif name in values:
            raise RequestError(f"{name[:80]} is given twice", hint="Give it once.", parameter=name[:80])
        else:
            values[name] = value
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        raise validation_error(error, list(shape.model_fields)) from error


async def read_body(request: Request) -> Any:
    """Return the JSON that a request sends; its size was checked before."""
    content = await request.body()
    if not content:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError("The body is not JSON", hint="Send it with Content-Type: application/json.", status=415)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RequestError("The body is not valid JSON", hint="Send one JSON object.", parameter="body") from error


def parse_body(shape: type[Shape], content: Any) -> Shape:
    """Return the body of a request, or raise an error that names what is wrong."""
    try:
        return shape.model_validate(content, strict=True)
    except ValidationError as error:
        raise validation_error(error, list(shape.model_fields)) from error
