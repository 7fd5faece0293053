"""What a tool is to this server: a name, words for the model, parameters, and the function that answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bunko.interfaces.tools.params import Param

if TYPE_CHECKING:
    from bunko.library.library import Library


@dataclass(slots=True)
class ToolReply:
    """An answer, complete in each form: some clients show the model the text, others the structure."""

    text: str
    structured: dict[str, Any]


@dataclass(slots=True)
class ToolCall:
    """One call on its way: the library, the arguments, and the ways to report and to be stopped."""

    library: Library
    arguments: Mapping[str, Any]
    report_progress: Callable[[float, float, str], None] = lambda done, total, message: None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool that an assistant can call."""

    name: str
    title: str
    description: str
    params: Sequence[Param]
    output_schema: Mapping[str, Any]  # the JSON schema of its structured answer
    run: Callable[[ToolCall], ToolReply]
    read_only: bool = True
    idempotent: bool = True
    destructive: bool = False
    open_world: bool = False  # reaches beyond this machine
    supports_background: bool = False  # may run in the background


def object_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Return the schema of an object."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


STRING, NUMBER, INTEGER, BOOLEAN = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}
