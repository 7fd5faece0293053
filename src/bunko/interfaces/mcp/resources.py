"""Serve the stored documents as MCP resources, bunko://tool/path; files outside the library have no address."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from urllib.parse import unquote

from bunko.interfaces.mcp.messages import INVALID_PARAMS, ProtocolError
from bunko.interfaces.serialize import resource_address
from bunko.library.access import LibraryAccess
from bunko.text.labels import clean_label, remove_hidden_chars
from bunko.types.records import ListedDocument

_RESOURCE_NOT_FOUND = -32002  # until protocol 2025-11-25; from 2026-07-28 on it is INVALID_PARAMS
PAGE_SIZE = 100
_MAX_NAME_CHARS = 200


def list_resources(library: LibraryAccess, cursor: str | None) -> dict[str, object]:
    """Return a page of documents."""
    tools = [tool for tool in library.tools() if tool.active]
    first_tool, after_uri = _decode_cursor(cursor)
    names = library.assistant_names()
    page: list[dict[str, object]] = []
    for index, tool in enumerate(tools):
        if index < first_tool:
            continue
        documents = library.document_page(tool, after=after_uri, limit=PAGE_SIZE - len(page))
        after_uri = ""
        page += [_resource(names[tool.name], document) for document in documents]
        if len(page) == PAGE_SIZE:
            return {
                "resources": page,
                "nextCursor": base64.urlsafe_b64encode(f"{index}\0{documents[-1].uri}".encode()).decode(),
            }
    return {"resources": page}


def _resource(tool: str, document: ListedDocument) -> dict[str, object]:
    media_type, title = _text_media_type(document.media_type), clean_label(document.title, _MAX_NAME_CHARS)
    resource: dict[str, object] = {
        "uri": resource_address(tool, document.uri),
        "name": clean_label(document.uri, _MAX_NAME_CHARS),
        "mimeType": media_type,
    }
    if title:
        resource["title"] = title
    # The size and time of a file of many entries say nothing about one of them, nor its size about an extracted text.
    if not document.lines.last:
        if media_type == document.media_type:
            resource["size"] = document.size
        if document.modified_ns:
            modified = datetime.fromtimestamp(document.modified_ns / 1e9, UTC)
            resource["annotations"] = {"lastModified": modified.isoformat(timespec="seconds")}
    return resource


def _text_media_type(media_type: str) -> str:
    """Return the media type of the text that is served: what is extracted from HTML, PDF and others is Markdown."""
    return media_type if media_type in ("text/markdown", "text/plain") else "text/markdown"


def list_resource_templates() -> dict[str, object]:
    """Return the URI template of documents."""
    template = {
        "uriTemplate": "bunko://{tool}/{+path}", "name": "document", "description": "A document of a tool, by its path",
    }  # fmt: skip
    return {"resourceTemplates": [template]}


def read_resource(library: LibraryAccess, address: str, *, is_stateless: bool) -> dict[str, object]:
    """Return one document's text."""
    # Split by hand: urlsplit raises on some hosts and cuts at ? and #.
    scheme, _, location = address.partition("://")
    host, _, path = location.partition("/")
    names = library.assistant_names()
    tool = next((tool for tool in library.tools() if tool.active and names.get(tool.name) == host), None)
    if scheme == "bunko" and tool is not None:
        document = library.document(tool, unquote(path))
        if document is not None:
            content = {
                "uri": address,
                "mimeType": _text_media_type(document.media_type),
                "text": remove_hidden_chars(document.text),
            }
            return {"contents": [content]}
    message = f"Unknown document {address[:200]}. List the resources to see all documents."
    code = INVALID_PARAMS if is_stateless else _RESOURCE_NOT_FOUND
    raise ProtocolError(code, message, {"uri": address})


def _decode_cursor(cursor: str | None) -> tuple[int, str]:
    if not cursor:
        return 0, ""
    try:
        tool_index, _, uri = base64.urlsafe_b64decode(cursor).decode().partition("\0")
        return int(tool_index), uri
    except (ValueError, binascii.Error) as error:
        raise ProtocolError(INVALID_PARAMS, "The cursor is invalid. Leave it out to start again.") from error
