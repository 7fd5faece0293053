"""Define a tool: its name, description, parameters and the function that runs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from bunko.interfaces.tools.params import Param, schema
from bunko.observer import Observer

if TYPE_CHECKING:
    from bunko.library.library import Library


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


@dataclass(slots=True)
class ToolCall:
    """A call of a tool: the library, the arguments, a progress callback and a stop event."""

    library: Library
    arguments: Mapping[str, Any]
    report_progress: Callable[[float, float, str], None] = lambda done, total, message: None
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
    read_only: bool = True
    idempotent: bool = True
    destructive: bool = False
    open_world: bool = False  # accesses the network
    supports_background: bool = False  # can run as a background job
    input_schema: Mapping[str, Any] = field(init=False)  # the JSON schema of its parameters

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
