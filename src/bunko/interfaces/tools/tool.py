"""Define a tool: its name, description, parameters and the function that runs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bunko.interfaces.tools.params import Param, schema
from bunko.runtime.observer import Observer

if TYPE_CHECKING:
    from bunko.library.rights.access import LibraryAccess


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
    """Tell nobody."""


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
    right: Right = field(kw_only=True)  # without a default, so that nobody forgets it
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
