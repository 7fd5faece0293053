"""Describe errors as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from pydantic import ValidationError
from typing_extensions import TypedDict

from bunko.errors import BunkoError
from bunko.messages import Language, translate_into

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 5

# The status of each error by its code. Requests that cannot succeed as they are, then what a retry may solve.
STATUSES: Mapping[str, int] = {
    "error": 500,
    "settings": 400,
    "source": 400,
    "refused": 400,
    "fetch": 502,
    "query": 400,
    "embedder": 502,
    "model": 502,
    "package": 503,
    "index": 503,
    "cluster": 502,
    "unknown": 404,
    "denied": 403,
    "library": 503,
    "busy": 503,
    "too-new": 503,
    "damaged": 503,
    "mismatch": 409,
    "read-only": 409,
    "disk-full": 507,
    "unreachable": 503,
    "moved": 503,
}


class ProblemFields(TypedDict):
    """What went wrong, and what to do."""

    type: str  # of all problems of this kind
    title: str
    status: int
    detail: str
    hint: NotRequired[str]
    parameter: NotRequired[str]  # that is wrong


class RequestError(BunkoError):
    """A request is not valid."""

    code = "request"

    def __init__(self, message: str, *, hint: str = "", status: int = 400, parameter: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status, self.parameter = status, parameter
        self.headers: dict[str, str] = {}


def error_status(error: BunkoError) -> int:
    """Return the HTTP status of an error."""
    return error.status if isinstance(error, RequestError) else STATUSES[error.code]


def problem_of(error: BunkoError, language: Language = "en") -> ProblemFields:
    """Return an error as problem details; its message and hint are in the language of the client."""
    title = (type(error).__doc__ or "").split("\n")[0].rstrip(".").split(";")[0]
    problem: ProblemFields = {
        "type": f"/problems/{error.code}",
        "title": title,
        "status": error_status(error),
        "detail": translate_into(error.message, language),
    }
    if error.hint:
        problem["hint"] = translate_into(error.hint, language)
    if isinstance(error, RequestError) and error.parameter:
        problem["parameter"] = error.parameter
    return problem


def validation_error(error: ValidationError, known_names: Sequence[str]) -> RequestError:
    """Return the first thing that is wrong with parameters or a body, in plain words."""
    details: Any = error.errors(include_url=False)[0]
    name = ".".join(map(str, details["loc"])) or "body"
    if details["type"] == "extra_forbidden":
        names = ", ".join(known_names) or "none"
        return RequestError(f"There is no parameter {name[:80]!r}", hint=f"Use: {names}.", parameter=name[:80])
    hint = "See /api/docs."
    if details["type"] == "literal_error":
        hint = f"Use one of: {details['ctx']['expected'].replace(' or ', ', ')}."
    return RequestError(_describe(name, details), hint=hint, parameter=name)


def _describe(name: str, details: Any) -> str:
    context = details.get("ctx", {})
    match details["type"]:
        case "missing":
            return f"{name} is missing"
        case "greater_than_equal":
            return f"{name} must be at least {context['ge']:g}"
        case "less_than_equal":
            return f"{name} must be at most {context['le']:g}"
        case "int_parsing" | "int_type" | "int_from_float" | "int_parsing_size":
            return f"{name} must be a whole number"
        case "float_parsing" | "float_type" | "finite_number":
            return f"{name} must be a number"
        case "bool_parsing" | "bool_type":
            return f"{name} must be true or false"
        case "string_type":
            return f"{name} must be a text"
        case "literal_error":
            return f"{name} must not be {str(details['input'])[:80]!r}"
        case "string_too_long":
            return f"{name} has more than {context['max_length']:,} characters"
        case "too_long":
            return f"{name} has more than {context['max_length']:,} values"
        case "string_too_short" | "too_short":
            return f"{name} is empty"
        case "list_type":
            return f"{name} must be a list"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{name} must be an object"
        case _:
            return f"{name} is not valid: {details['msg']}"
