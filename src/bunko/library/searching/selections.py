"""Keep documents that somebody has chosen under an id, so that a search can be limited to them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence

from bunko.errors import LibraryError, QueryError, UnknownName
from bunko.library.tools import catalog
from bunko.protocols import Store

MAX_DOCUMENTS = 20_000
_MAX_SELECTIONS = 1000
_SECONDS = 365 * 24 * 60 * 60
_ID_CHARS = 20


def store_selection(store: Store, documents: Mapping[str, Sequence[str]]) -> str:
    """Store URIs by the names of their tools for a year, and return their id: the same for the same documents."""
    tools = catalog.tools(store)
    uris_by_tool: dict[str, list[str]] = {}
    for name, uris in documents.items():
        tool = catalog.find_tool(tools, name)
        if tool is None:
            raise catalog.unknown_tool_error(name, ", ".join(tool.name for tool in tools) or "none yet")
        uris_by_tool[str(tool.id)] = sorted(set(uris) | set(uris_by_tool.get(str(tool.id), ())))
    count = sum(map(len, uris_by_tool.values()))
    if not 1 <= count <= MAX_DOCUMENTS:
        raise QueryError(f"{count} documents cannot be a selection", hint=f"Choose 1 to {MAX_DOCUMENTS}.")
    contents = {tool_id: json.dumps(uris_by_tool[tool_id]) for tool_id in sorted(uris_by_tool)}
    selection = hashlib.sha256(f"{store.id}\n{json.dumps(contents)}".encode()).hexdigest()[:_ID_CHARS]
    now = time.time()
    for tool_id, content in contents.items():
        answers = {selection.encode(): (content, now + _SECONDS)}
        store.cache.cache_answers(_kind(tool_id), answers, now=now, limit=_MAX_SELECTIONS)
    if len(load_selection(store, selection)) < len(contents):
        raise LibraryError("The selection could not be kept", hint="Check that your data folder can be written.")
    return selection


def load_selection(store: Store, selection: str) -> dict[int, frozenset[str]]:
    """Return the chosen URIs by the ids of the tools in a store."""
    key, now = selection.encode("utf-8", "replace"), time.time()
    contents = {tool.id: store.cache.cached_answer(_kind(tool.id), key, now) for tool in catalog.tools(store)}
    uris_by_tool = {
        tool_id: frozenset(json.loads(content)) for tool_id, content in contents.items() if content is not None
    }
    if not uris_by_tool:
        raise UnknownName(
            f"There is no selection {selection[:80]!r}", hint="Choose the documents again, on the map or with the API."
        )
    return uris_by_tool


def _kind(tool_id: int | str) -> str:
    # One answer for each tool: whoever may not read a tool does not get what was chosen of it.
    return f"selection {tool_id}"
