"""Documents as resources: bunko://tool/path in, the stored text out; nothing outside the library can be named."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.toolsets.tools import safe_names
from bunko.text.hidden_chars import remove_hidden_chars

RESOURCE_NOT_FOUND = -32002  # until 2025-11-25; from 2026-07-28 on it is an invalid parameter like others
_PAGE_SIZE = 100


def list_resources(registry: ToolRegistry, cursor: str | None) -> types.ListResourcesResult:
    """Return a page of documents."""
    library = registry.library()
    tools = [tool for tool in library.tools() if tool.active]
    names = safe_names([tool.name for tool in tools])
    at, after = _decode_cursor(cursor)
    found: list[types.Resource] = []
    for number, tool in enumerate(tools):
        if number < at:
            continue
        uris = library.store.uris(tool.id, after=after, limit=_PAGE_SIZE - len(found))
        after = ""
        for uri in uris:
            address = f"bunko://{names[tool.name]}/{quote(uri)}"
            kind = "text/markdown" if uri.lower().endswith((".md", ".markdown")) else "text/plain"
            found.append(types.Resource(uri=address, name=uri, mime_type=kind))
        if len(found) == _PAGE_SIZE:
            return types.ListResourcesResult(resources=found, next_cursor=_encode_cursor(number, uris[-1]))
    return types.ListResourcesResult(resources=found)


def list_resource_templates() -> types.ListResourceTemplatesResult:
    """Return the form of a document's address."""
    template = types.ResourceTemplate(
        uri_template="bunko://{tool}/{+path}", name="document", description="A document of a tool, by its path"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


def read_resource(registry: ToolRegistry, address: str, protocol_version: str) -> types.ReadResourceResult:
    """Return one document's text."""
    # Taken apart by hand: urlsplit raises on what looks like a host it does not know, and cuts at ? and #.
    scheme, _, place = address.partition("://")
    host, _, path = place.partition("/")
    library = registry.library()
    names = {safe: name for name, safe in safe_names([tool.name for tool in library.tools()]).items()}
    tool = next((tool for tool in library.tools() if tool.active and tool.name == names.get(host)), None)
    if scheme == "bunko" and tool is not None:
        document = library.store.document(tool.id, unquote(path))
        if document is not None:
            content = types.TextResourceContents(
                uri=address, mime_type=document.media_type, text=remove_hidden_chars(document.text)
            )
            return types.ReadResourceResult(contents=[content])
    code = types.INVALID_PARAMS if protocol_version in MODERN_PROTOCOL_VERSIONS else RESOURCE_NOT_FOUND
    message = f"There is no document {address[:200]}. List the resources to see what there is."
    raise MCPError(code, message, {"uri": address})


def _encode_cursor(number: int, uri: str) -> str:
    return base64.urlsafe_b64encode(f"{number}\0{uri}".encode()).decode()


def _decode_cursor(cursor: str | None) -> tuple[int, str]:
    if not cursor:
        return 0, ""
    try:
        number, _, uri = base64.urlsafe_b64decode(cursor).decode().partition("\0")
        return int(number), uri
    except (ValueError, binascii.Error) as error:
        raise MCPError(types.INVALID_PARAMS, "This cursor was not made here. Leave it out to start again.") from error
