"""Show, add, change, import and delete tools."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from bunko.errors import QueryError, SettingsError
from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.jobs import StartedReply, start_job
from bunko.interfaces.api.routes.status import ToolState
from bunko.interfaces.serialize import report_to_dict
from bunko.interfaces.serialize_library import details_to_dict, routing_to_dict, tool_to_dict
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.interfaces.tools.toolsets import check_tool_name
from bunko.sources import all_kinds
from bunko.types import Tool

Text = Annotated[str, Field(max_length=4000)]
Patterns = Annotated[list[Text], Field(max_length=200)]
Extract = Literal["chunk", "section", "full"]


class ToolFields(TypedDict):
    """A tool."""

    name: str
    assistant_name: str
    kind: str
    description: str
    source: str  # empty without the right to change the tool
    active: bool
    created_at: str
    last_import: str
    can_write: bool
    include: NotRequired[list[str]]
    exclude: NotRequired[list[str]]
    extract: NotRequired[str]
    embedder: NotRequired[str]
    chunker: NotRequired[str]
    chunk_size: NotRequired[int]
    chunk_overlap: NotRequired[int]
    search: NotRequired[dict[str, Any]]
    notices: NotRequired[list[str]]


class ToolsReply(TypedDict):
    """The tools."""

    tools: list[ToolFields]


class NewTool(Shape):
    """A tool to add."""

    name: Text
    description: Text = Field("", description="Without one, the first import makes one from the documents")
    source: Text | None = Field(None, description="Folder or file of the server; none for web pages")
    kind: Text = "folder"
    include: Patterns = Field([], description="Only these files: *.py")
    exclude: Patterns = Field([], description="Not these files")
    extract: Extract | None = Field(None, description="Text that is returned for each hit")


class ToolChange(Shape):
    """What to change; what is left out stays."""

    description: Text | None = None
    source: Text | None = None
    include: Patterns | None = None
    exclude: Patterns | None = None
    extract: Extract | None = None
    active: bool | None = Field(None, description="Whether assistants see it")
    search: dict[str, float | bool | str] | None = Field(None, description="Its own ranking; {} for that of all")


class DetailsQuery(Shape):
    """Which page of a tool's documents to list."""

    page: int = Field(1, ge=1, le=1_000_000)
    page_size: int = Field(20, ge=1, le=1000)


class Embedding(TypedDict):
    """What computed the vectors."""

    model: str
    dimension: int | None


class Room(TypedDict):
    """Bytes on disk."""

    text: int
    index: int
    vectors: int
    derived: int


class SourceFreshness(TypedDict):
    """How the source differs from the index."""

    last_look: str
    looked_at: str | None
    new: int | None
    changed: int | None
    gone: int | None
    moved: int | None


class LengthFields(TypedDict):
    """The lengths of chunks in characters."""

    min: int
    median: int
    p90: int
    max: int
    mean: float
    bins: list[dict[str, int]]


class IndexedDocument(TypedDict):
    """A document of a tool."""

    file_path: str
    title: str
    chunks: int
    characters: int
    language: str


class ToolDetailsFields(ToolState):
    """A tool with what it holds."""

    description: str
    created_at: str
    options: dict[str, Any]
    embedding: Embedding
    room: Room
    freshness: SourceFreshness
    chunk_lengths: LengthFields | None
    page: int
    page_size: int
    pages: int
    document_list: list[IndexedDocument]
    can_write: bool


class Taken(TypedDict):
    """Questions that another tool would get."""

    tool: str
    questions: int
    examples: list[str]


class RoutedTool(TypedDict):
    """Where questions about a tool would go."""

    name: str
    questions: int
    share: float | None
    right: float
    tied: int
    unmatched: int
    taken: list[Taken]


class Matched(TypedDict):
    """Questions that share a word with a description."""

    questions: int
    right: float


class RoutingReply(TypedDict):
    """Whether descriptions tell the tools apart."""

    accuracy: float | None
    matched: Matched
    tools: list[RoutedTool]
    warnings: list[dict[str, Any]]


class ImportBody(Shape):
    """How to import a tool."""

    mode: Literal["update", "replace"] = Field("update", description="Its changes, or all of it anew")


class DeletedReply(TypedDict):
    """What was deleted."""

    name: str


def list_tools(call: Call) -> dict[str, Any]:
    """List tools, disabled ones too."""
    return {"tools": [_tool_fields(call, tool) for tool in call.library.tools()]}


def show_tool(call: Call, name: str, query: DetailsQuery) -> dict[str, Any]:
    """Show what a tool holds, and how its source has changed."""
    details = call.library.tool_care.details(name, page=query.page, page_size=query.page_size)
    can_write = call.library.caller.rights.can_write(details.status.tool.name)
    return details_to_dict(details) | {"can_write": can_write}


def check_routing(call: Call) -> dict[str, Any]:
    """Check that assistants can tell the active tools apart by their descriptions."""
    return routing_to_dict(call.library.tool_care.routing())


def add_tool(call: Call, body: NewTool) -> dict[str, Any]:
    """Add a folder or file of the server as a tool; import it with POST …/import.

    Only whoever runs the server may name folders and files.
    """
    if body.kind not in all_kinds():
        raise QueryError(f"There is no kind {body.kind[:80]!r}", hint=f"Use one of: {', '.join(all_kinds())}.")
    check_tool_name(call.library, body.name)
    tool = call.library.tool_care.add(
        body.name, body.description, body.source, kind=body.kind, include=body.include, exclude=body.exclude,
        extract=body.extract,
    )  # fmt: skip
    return _tool_fields(call, tool)


def change_tool(call: Call, name: str, body: ToolChange) -> dict[str, Any]:
    """Change a tool's description, files, ranking, or whether assistants see it."""
    changes = body.model_dump(exclude_unset=True)
    if any(value is None for value in changes.values()) or not changes:
        raise SettingsError("Nothing is to be changed", hint="Give at least one field, and leave out the others.")
    active = changes.pop("active", None)
    tools = call.library.tool_care
    tool = tools.get(name)
    if changes:
        tool = tools.update(tool.name, **changes)
    if active is not None:
        tool = tools.set_active(tool.name, active=active)
    return _tool_fields(call, tool)


def delete_tool(call: Call, name: str) -> dict[str, Any]:
    """Delete a tool and its index; its files are kept."""
    return {"name": call.library.tool_care.delete(name).name}


def import_tool(call: Call, name: str, body: ImportBody) -> dict[str, Any]:
    """Import a tool in the background."""
    tool = call.library.tool_care.check_import(name)

    def run(tool_call: ToolCall) -> ToolReply:
        observer = replace(
            tool_call.observer(),
            on_progress=lambda done: tool_call.report_progress(done.files, done.total_files, f"{done.chunks} chunks"),
        )
        report = tool_call.library.tool_care.import_tool(tool.name, mode=body.mode, observer=observer)
        return ToolReply("", {"tool": tool.name} | report_to_dict(report))

    return start_job(call, "import", run, tool.name)


def _tool_fields(call: Call, tool: Tool) -> dict[str, Any]:
    can_write = call.library.caller.rights.can_write(tool.name)
    fields = tool_to_dict(tool if can_write else replace(tool, source=""))
    fields.pop("crawls", None)
    return fields | {"can_write": can_write}


ENDPOINTS = [
    Endpoint("GET", "/tools", list_tools, ToolsReply, right="read"),
    Endpoint("POST", "/tools", add_tool, ToolFields, right="write", status=201),
    Endpoint("GET", "/tools/routing", check_routing, RoutingReply, right="read", is_long=True),
    Endpoint("GET", "/tools/{name}", show_tool, ToolDetailsFields, right="read"),
    Endpoint("PATCH", "/tools/{name}", change_tool, ToolFields, right="write"),
    Endpoint("DELETE", "/tools/{name}", delete_tool, DeletedReply, right="write"),
    Endpoint("POST", "/tools/{name}/import", import_tool, StartedReply, right="write", status=202),
]
