"""Say what the library holds."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from bunko import __version__
from bunko.interfaces.api.endpoint import Call, Endpoint
from bunko.interfaces.serialize_library import status_to_dict


class IndexFields(TypedDict):
    """The index that answers searches."""

    kind: str
    location: str


class IndexStateFields(TypedDict):
    """How far the index of a tool has followed the library."""

    generation: int
    pending: int
    chunks: int | None
    problem: str
    hint: str


class FileProblem(TypedDict):
    """A document that could not be indexed."""

    file_path: str
    reason: str


class ToolState(TypedDict):
    """What a tool holds."""

    name: str
    kind: str
    active: bool
    source: str  # empty without the right to change the tool
    source_state: str
    documents: int
    chunks: int
    vectors: int
    characters: int
    bytes: int
    import_state: str
    last_import: str
    rebuild_documents: int | None
    built: dict[str, Any]
    index: IndexStateFields
    problems: list[FileProblem]


class UsageFields(TypedDict):
    """How much imports have used an embedder."""

    texts: int
    calls: int
    saved_texts: int
    saved_calls: int


class StatusReply(TypedDict):
    """What the library holds."""

    version: str
    library: str  # where it is; empty without the right to change all tools
    generation: int
    bytes: int
    derived_bytes: int
    index: IndexFields
    tools: list[ToolState]
    embedders: dict[str, UsageFields]


def show_status(call: Call) -> dict[str, Any]:
    """Show what the library and its tools hold."""
    return {"version": __version__} | status_to_dict(call.library.status())


ENDPOINTS = [Endpoint("GET", "/status", show_status, StatusReply, right="read")]
