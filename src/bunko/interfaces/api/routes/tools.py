"""Show, add, change, import and delete tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from bunko.errors import SettingsError
from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.jobs import StartedReply, start_job
from bunko.interfaces.fields import Fields, of
from bunko.interfaces.serialize import report_to_dict
from bunko.interfaces.serialize_state import (
    DetailsFields,
    RoutingReply,
    StoredTool,
    ToolState,
    details_to_dict,
    routing_to_dict,
    tool_to_dict,
)
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.interfaces.tools.toolsets import check_tool_name
from bunko.types import Tool

Text = Annotated[str, Field(max_length=4000)]
Patterns = Annotated[list[Text], Field(max_length=200)]
Extract = Literal["chunk", "section", "full"]


class ToolFields(StoredTool):
    """A tool."""

    can_write: bool
    include: list[str] = of(optional=True)
    exclude: list[str] = of(optional=True)
    extract: str = of(optional=True)
    embedder: str = of(optional=True)
    chunker: str = of(optional=True)
    chunk_size: int = of(optional=True)
    chunk_overlap: int = of(optional=True)
    search: dict[str, object] = of(optional=True)
    notices: list[str] = of(optional=True)


class ToolsReply(Fields):
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


class ToolDetailsFields(DetailsFields, ToolState):
    """A tool with what it holds."""

    can_write: bool


class ImportBody(Shape):
    """How to import a tool."""

    mode: Literal["update", "replace"] = Field("update", description="Its changes, or all of it anew")


class DeletedReply(Fields):
    """What was deleted."""

    name: str


def list_tools(call: Call) -> dict[str, object]:
    """List tools, disabled ones too."""
    return {"tools": [_tool_fields(call, tool) for tool in call.library.tools()]}


def show_tool(call: Call, name: str, query: DetailsQuery) -> dict[str, object]:
    """Show what a tool holds, and how its source has changed."""
    details = call.library.tool_care.details(name, page=query.page, page_size=query.page_size)
    can_write = call.library.caller.rights.can_write(details.status.tool.name)
    return details_to_dict(details) | {"can_write": can_write}


def check_routing(call: Call) -> dict[str, object]:
    """Check that assistants can tell the active tools apart by their descriptions."""
    return routing_to_dict(call.library.tool_care.routing())


def add_tool(call: Call, body: NewTool) -> dict[str, object]:
    """Add a folder or file of the server as a tool; import it with POST …/import.

    Only whoever runs the server may name folders and files.
    """
    check_tool_name(call.library, body.name)
    tool = call.library.tool_care.add(
        body.name, body.description, body.source, kind=body.kind, include=body.include, exclude=body.exclude,
        extract=body.extract,
    )  # fmt: skip
    return _tool_fields(call, tool)


def change_tool(call: Call, name: str, body: ToolChange) -> dict[str, object]:
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


def delete_tool(call: Call, name: str) -> dict[str, object]:
    """Delete a tool and its index; its files are kept."""
    return {"name": call.library.tool_care.delete(name).name}


def import_tool(call: Call, name: str, body: ImportBody) -> dict[str, object]:
    """Import a tool in the background."""
    tool = call.library.tool_care.check_import(name)
    return start_job(call, "import", import_job(tool.name, body.mode), tool.name)


def import_job(tool: str, mode: Literal["update", "replace"] = "update") -> Callable[[ToolCall], ToolReply]:
    """Return what imports a tool in the background, and says which document was imported last."""

    def run(call: ToolCall) -> ToolReply:
        observer = replace(
            call.observer(), on_progress=lambda done: call.report_progress(done.files, done.total_files, done.last)
        )
        report = call.library.tool_care.import_tool(tool, mode=mode, observer=observer)
        return ToolReply("", {"tool": tool} | report_to_dict(report))

    return run


def _tool_fields(call: Call, tool: Tool) -> dict[str, object]:
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
