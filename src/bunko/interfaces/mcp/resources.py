"""Serve the stored documents as MCP resources, bunko://tool/path; files outside the library have no address."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from urllib.parse import unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bunko.interfaces.serialize import resource_address
from bunko.library.access import LibraryAccess
from bunko.records import ListedDocument
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.text.labels import clean_label

RESOURCE_NOT_FOUND = -32002  # until protocol 2025-11-25; from 2026-07-28 on it is INVALID_PARAMS
_PAGE_SIZE = 100
_MAX_NAME_CHARS = 200


def list_resources(library: LibraryAccess, cursor: str | None) -> types.ListResourcesResult:
    """Return a page of documents."""
    tools = [tool for tool in library.tools() if tool.active]
    first_tool, after_uri = _decode_cursor(cursor)
    names = library.assistant_names()
    page: list[types.Resource] = []
    for index, tool in enumerate(tools):
        if index < first_tool:
            continue
        documents = library.document_page(tool, after=after_uri, limit=_PAGE_SIZE - len(page))
        after_uri = ""
        page += [_resource(names[tool.name], document) for document in documents]
        if len(page) == _PAGE_SIZE:
            return types.ListResourcesResult(resources=page, next_cursor=_encode_cursor(index, documents[-1].uri))
    return types.ListResourcesResult(resources=page)


def _resource(tool: str, document: ListedDocument) -> types.Resource:
    # The size and time of a file of many entries say nothing about one of them, nor its size about an extracted text.
    is_file = not document.lines.last
    media_type = _text_media_type(document.media_type)
    modified = datetime.fromtimestamp(document.modified_ns / 1e9, UTC) if is_file and document.modified_ns else None
    return types.Resource(
        uri=resource_address(tool, document.uri),
        name=clean_label(document.uri, _MAX_NAME_CHARS),
        title=clean_label(document.title, _MAX_NAME_CHARS) or None,
        mime_type=media_type,
        size=document.size if is_file and media_type == document.media_type else None,
        annotations=types.Annotations(last_modified=modified.isoformat(timespec="seconds")) if modified else None,
    )


def _text_media_type(media_type: str) -> str:
    """Return the media type of the text that is served: what is extracted from HTML, PDF and others is Markdown."""
    return media_type if media_type in ("text/markdown", "text/plain") else "text/markdown"


def list_resource_templates() -> types.ListResourceTemplatesResult:
    """Return the URI template of documents."""
    template = types.ResourceTemplate(
        uri_template="bunko://{tool}/{+path}", name="document", description="A document of a tool, by its path"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


def read_resource(library: LibraryAccess, address: str, protocol_version: str) -> types.ReadResourceResult:
    """Return one document's text."""
    # Split by hand: urlsplit raises on some hosts and cuts at ? and #.
    scheme, _, location = address.partition("://")
    host, _, path = location.partition("/")
    names = library.assistant_names()
    tool = next((tool for tool in library.tools() if tool.active and names.get(tool.name) == host), None)
    if scheme == "bunko" and tool is not None:
        document = library.document(tool, unquote(path))
        if document is not None:
            content = types.TextResourceContents(
                uri=address, mime_type=_text_media_type(document.media_type), text=remove_hidden_chars(document.text)
            )
            return types.ReadResourceResult(contents=[content])
    code = types.INVALID_PARAMS if protocol_version in MODERN_PROTOCOL_VERSIONS else RESOURCE_NOT_FOUND
    message = f"Unknown document {address[:200]}. List the resources to see all documents."
    raise MCPError(code, message, {"uri": address})


def _encode_cursor(tool_index: int, uri: str) -> str:
    return base64.urlsafe_b64encode(f"{tool_index}\0{uri}".encode()).decode()


def _decode_cursor(cursor: str | None) -> tuple[int, str]:
    if not cursor:
        return 0, ""
    try:
        tool_index, _, uri = base64.urlsafe_b64decode(cursor).decode().partition("\0")
        return int(tool_index), uri
    except (ValueError, binascii.Error) as error:
        raise MCPError(types.INVALID_PARAMS, "The cursor is invalid. Leave it out to start again.") from error
