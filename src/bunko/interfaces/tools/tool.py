"""Define a tool: its name, description and parameters, with their JSON schema, and the function that runs it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bunko.errors import QueryError
from bunko.runtime.observer import Observer

if TYPE_CHECKING:
    from bunko.library.access import LibraryAccess

# A longer argument is a mistake or an attack; no query needs it.
MAX_TEXT_CHARS = 100_000


_WHOLE_NUMBER = re.compile(r"\s*[+-]?\d{1,9}\s*")
_BOOLEANS = {"true": True, "false": False}
_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "texts": list}
_VALUE_PHRASES = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
_SCHEMAS: dict[str, dict[str, Any]] = {"texts": {"type": "array", "items": {"type": "string"}}}


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a tool."""

    name: str
    kind: str  # string, integer, boolean, or texts: a list of strings
    description: str = ""
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    accepts_others: bool = False  # whether the tool itself checks a value that is no choice
    minimum: int | None = None
    maximum: int | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the parameter."""
        result: dict[str, Any] = dict(_SCHEMAS.get(self.kind, {"type": self.kind}))
        if self.description:
            result["description"] = self.description
        if self.choices:
            result["enum"] = list(self.choices)
        if self.default is not None:
            result["default"] = self.default
        if self.minimum is not None and self.minimum > 1:  # no model asks for fewer than one
            result["minimum"] = self.minimum
        if self.maximum is not None:
            result["maximum"] = self.maximum
        return result

    def validate(self, value: Any) -> Any:
        """Return the value, or raise an error that says what is wrong with it."""
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON does not distinguish 5 from 5.0
        elif self.kind == "integer" and isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
            value = int(value)  # some models write every argument as a text
        elif self.kind == "boolean" and isinstance(value, str) and value.strip().lower() in _BOOLEANS:
            value = _BOOLEANS[value.strip().lower()]
        elif self.kind == "texts" and isinstance(value, str):
            value = _read_texts(value)
        if not isinstance(value, _TYPES[self.kind]) or (self.kind == "integer" and isinstance(value, bool)):
            given = _VALUE_PHRASES.get(type(value), "an object")
            raise QueryError(f"{self.name} must be {_kind_phrase(self.kind)}, not {given}", hint=self._hint())
        texts = value if isinstance(value, list) else [value]
        if self.kind == "texts" and not all(isinstance(text, str) for text in texts):
            raise QueryError(f"{self.name} must be {_kind_phrase(self.kind)}", hint=self._hint())
        characters = sum(len(text) for text in texts if isinstance(text, str))
        if characters > MAX_TEXT_CHARS:
            raise QueryError(f"{self.name} has {characters:,} characters", hint=f"Use at most {MAX_TEXT_CHARS:,}.")
        if self.choices and value not in self.choices and not self.accepts_others:
            raise QueryError(
                f"{self.name} cannot be {str(value)[:80]!r}", hint=f"Use one of: {', '.join(self.choices)}."
            )
        below = self.minimum is not None and isinstance(value, int) and value < self.minimum
        above = self.maximum is not None and isinstance(value, int) and value > self.maximum
        if below or above:
            raise QueryError(f"{self.name} cannot be {value}", hint=self._hint())
        return value

    def _hint(self) -> str:
        if self.choices:
            return f"Use one of: {', '.join(self.choices)}."
        if self.minimum is not None and self.maximum is not None:
            return f"Use a number from {self.minimum} to {self.maximum}."
        return f"Give {self.name} as {_kind_phrase(self.kind)}."


def schema(params: Sequence[Param]) -> dict[str, Any]:
    """Return the JSON schema of all parameters."""
    result: dict[str, Any] = {"type": "object", "properties": {param.name: param.schema() for param in params}}
    if required := [param.name for param in params if param.required]:
        result["required"] = required
    return result | {"additionalProperties": False}


def validate_arguments(params: Sequence[Param], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every parameter, or raise an error that says which argument is wrong."""
    params_by_name = {param.name: param for param in params}
    for name in arguments:
        if name not in params_by_name:
            matches = get_close_matches(name[:80], params_by_name, n=1)
            matches = matches or [known for known in params_by_name if name and known.startswith(name.lower())]
            hint = f"Did you mean {matches[0]}?" if matches else f"Known: {', '.join(params_by_name) or 'none'}."
            raise QueryError(f"Unknown argument {name[:80]!r}", hint=hint)
    values = {}
    for name, param in params_by_name.items():
        value = arguments.get(name)
        if value is None:
            if param.required:
                raise QueryError(f"{name} is missing", hint=f"Give {name}: {param.description or param.kind}.")
            values[name] = param.default
        else:
            values[name] = param.validate(value)
    return values


def _read_texts(value: str) -> Any:
    """Return the texts of an argument that a model wrote as one text: a JSON array, or one of them."""
    if value.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return [value]


def _kind_phrase(kind: str) -> str:
    return {
        "string": "a text", "integer": "a whole number", "boolean": "true or false", "texts": "a list of texts",
    }[kind]  # fmt: skip


# What a caller needs for at least one tool of the library. Which of them, the library checks.
Right = Literal["read", "write"]


class DocumentLink(NamedTuple):
    """The address of a document and its name."""

    address: str
    name: str
    title: str = ""


@dataclass(slots=True)
class ToolReply:
    """A reply, complete in both forms: some clients show the model the text, others the structured content."""

    text: str
    structured: dict[str, Any]
    links: list[DocumentLink] = field(default_factory=list)  # to the documents that it is about


ReportProgress = Callable[[float, float, str], None]  # what is done, of how much, and a message


def ignore_progress(done: float, total: float, message: str) -> None:
    """Drop the report."""


@dataclass(slots=True)
class ToolCall:
    """A call of a tool: what its caller may use of the library, the arguments, a progress callback and a stop event."""

    library: LibraryAccess
    arguments: Mapping[str, Any]
    report_progress: ReportProgress = ignore_progress
    stop: threading.Event = field(default_factory=threading.Event)

    def observer(self) -> Observer:
        """Return an observer that is cancelled with the call and reports waiting as its progress."""
        return Observer(on_wait=lambda text: self.report_progress(0, 1, text), is_cancelled=self.stop.is_set)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that an assistant can call."""

    name: str
    title: str
    description: str
    params: Sequence[Param]
    output_schema: Mapping[str, Any]  # the JSON schema of its structured content
    run: Callable[[ToolCall], ToolReply]
    right: Right = field(kw_only=True)  # without a default, so that it cannot be forgotten
    idempotent: bool = True
    destructive: bool = False
    open_world: bool = False  # accesses the network
    supports_background: bool = False  # can run as a background job
    input_schema: Mapping[str, Any] = field(init=False)  # the JSON schema of its parameters

    @property
    def read_only(self) -> bool:
        """Whether it changes nothing."""
        return self.right == "read"

    def __post_init__(self) -> None:
        """Build the schema of the parameters once."""
        object.__setattr__(self, "input_schema", schema(self.params))


def object_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Return the JSON schema of an object."""
    return {"type": "object", "properties": dict(properties)} | ({"required": list(required)} if required else {})


READ_TOOL_NAME, LIST_TOOL_NAME = "read", "list"  # of the tools that every toolset has
# For output schemas, which are short on purpose: every model reads them at every start.
OBJECT = {"type": "object"}
STRING, INTEGER, ARRAY = {"type": "string"}, {"type": "integer"}, {"type": "array"}
