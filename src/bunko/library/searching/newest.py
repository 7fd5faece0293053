"""Find the newest documents that match a filter, for a search without words."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.library.searching.plan import shared_folders
from bunko.protocols import Store
from bunko.types import Hit, Tool
from bunko.types.records import DatedDocument, Filter


def newest_hits(store: Store, tools: Sequence[Tool], where: Filter, limit: int) -> list[Hit]:
    """Return the first chunk of each of the newest documents; a file that two tools have is one document."""
    folders = dict(shared_folders(tools))
    names = list(folders)
    # Of documents with the same date, the one in the innermost folder comes first.
    ordered_tools = sorted(tools, key=lambda tool: names.index(tool.name) if tool.name in folders else len(names))
    documents = [
        (tool, document)
        for tool in ordered_tools
        for document in store.stats.recent_documents(tool.id, limit=limit, where=where)
    ]
    documents.sort(key=lambda item: item[1].date, reverse=True)
    unique: dict[tuple[str, str], tuple[Tool, DatedDocument]] = {}
    for tool, document in documents:
        folder = folders.get(tool.name)
        key = (tool.name, document.uri) if folder is None else ("", f"{folder}/{document.uri}")
        unique.setdefault(key, (tool, document))
    return [
        Hit(
            tool.name, document.uri, document.title, document.date, document.tags,
            prepared.document.content_hash, prepared.chunks[0], 0.0,
        )
        for tool, document in list(unique.values())[:limit]
        for prepared in store.documents.export(tool.id, [document.uri])
    ]  # fmt: skip
