"""Prepare documents for stores and search them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bunko.embedders import hashing
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.search.hits import find_hits
from bunko.search.request import RankRequest
from bunko.text import analyzer
from bunko.text.term_codec import pack_terms
from bunko.types import Chunk, Document, SourceEntry, Text, Tool
from bunko.types.records import PreparedDocument


def prepared(
    uri: str, *chunks: str, date: str = "", tags: tuple[str, ...] = (), modified_ns: int = 1
) -> PreparedDocument:
    """Return a document with one chunk for each text, on a line of its own."""
    text = "\n".join(chunks)
    parts, start = [], 0
    for index, chunk in enumerate(chunks):
        parts.append(Chunk(index, start, start + len(chunk), index + 1, index + 1, chunk, "# h", ("h",)))
        start += len(chunk) + 1
    document = Document(
        SourceEntry(uri, len(text), modified_ns, 10**18),
        Text(text, "text/markdown", "utf-8", f"title of {uri}", date, tags),
        f"hash of {text}",
    )
    return PreparedDocument(document, parts, pack_terms([analyzer.term_keys(chunk) for chunk in chunks]))


def embed_five(store: Store, tool: Tool, size: int) -> list[Any]:
    """Write five documents with vectors of a size, or embed those that there are again; return the vectors."""
    keys = {f"{number}.md": [f"{number} {size}".encode()] for number in range(5)}
    vectors = {key: hashing.build(size).embed([key.decode()])[0] for [key] in keys.values()}
    if store.stats.totals(tool.id).chunks:
        store.vectors.pin(tool.id, "other", vectors)
        store.vectors.replace(tool.id, keys, tool.built)
    else:
        documents = [replace(prepared(uri, uri), vector_keys=key) for uri, key in keys.items()]
        store.documents.write(tool.id, upsert=documents, vectors=vectors)
    return list(vectors.values())


def search_results(
    store: Store, tool: Tool, index: ToolIndex, query: str, **options: object
) -> list[tuple[str, int, float]]:
    """Return URI, chunk index and score of each hit."""
    with store.read_transaction():
        hits = find_hits(store, index.snapshot(), {tool.id: tool.name}, None, RankRequest(query, **options))  # type: ignore[arg-type]
    return [(hit.uri, hit.chunk.index, hit.score) for hit in hits]
