"""Keeps a library in this process alone: the reference that other stores must rank like, and what tests run on."""

from __future__ import annotations

import json
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bunko.errors import LibraryError
from bunko.records import (
    ChunkRow,
    DatedDocument,
    DocumentSummary,
    EmbeddingUsage,
    FailedDocument,
    Filter,
    LoggedSearch,
    PreparedDocument,
    StorageSize,
    StoredChunk,
    StoredDocument,
    Totals,
    WebPage,
)
from bunko.stores.filters import (
    BEGINNING_CHARS,
    count_tags,
    document_matcher,
    effective_date,
    fingerprint,
    newest_first,
    separate_chunk_text,
    tiebreak_order,
)
from bunko.text.term_codec import unpack_terms
from bunko.types import Fingerprint, Problem, SourceEntry, Tool

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(slots=True)
class _StoredDocumentRow:
    id: int
    tool_id: int
    generation: int
    prepared: PreparedDocument
    entry: SourceEntry
    first_chunk: int


class Memory:
    """A library that ends with its process."""

    def __init__(self) -> None:
        self.id = uuid4().hex
        self._lock = threading.RLock()
        self._tools: dict[str, Tool] = {}
        self._documents: dict[tuple[int, str], _StoredDocumentRow] = {}
        self._failures: dict[tuple[int, str], FailedDocument] = {}
        self._removals: list[tuple[int, int, int]] = []  # tool, document, generation
        self._vectors: dict[bytes, npt.NDArray[np.float32]] = {}
        self._pages: dict[tuple[int, str], WebPage] = {}
        self._contents: dict[tuple[int, str], bytes] = {}
        self._pinned: dict[tuple[int, str], set[bytes]] = {}
        self._usage: dict[str, EmbeddingUsage] = {}
        self._searches: dict[tuple[str, str], LoggedSearch] = {}
        self._answers: dict[tuple[str, bytes], tuple[str, float]] = {}
        self._generation = 0
        self._next_tool = self._next_document = self._next_chunk = 1

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        with self._lock:
            yield

    def tools(self) -> list[Tool]:
        """Return all tools, sorted by name."""
        return sorted(self._tools.values(), key=lambda tool: tool.name)

    def put_tool(self, tool: Tool) -> Tool:
        """Add a tool or replace the tool of the same name; return it with its id."""
        if old := self._tools.get(tool.name):
            self._tools[tool.name] = replace(tool, id=old.id)
        else:
            self._tools[tool.name] = replace(tool, id=self._next_tool)
            self._next_tool += 1
        return self._tools[tool.name]

    def ensure_tool(self, tool: Tool) -> None:
        """Add a tool unless one of that name exists."""
        if tool.name not in self._tools:
            self.put_tool(tool)

    def update_build_info(self, tool_id: int, *, built: dict[str, Any] | None = None, imported_at: str = "") -> None:
        """Record how or when a tool's index was built, without overwriting concurrent changes to its other fields."""
        for name, tool in self._tools.items():
            if tool.id == tool_id:
                marked = replace(tool, built=tool.built if built is None else built)
                if imported_at:
                    marked = replace(marked, imported_at=imported_at, checked_at=imported_at)
                self._tools[name] = marked

    def drop_tool(self, tool_id: int) -> None:
        """Delete a tool with its documents, pages and pinned vectors."""
        with self._lock:
            self.write(tool_id, remove=list(self.fingerprints(tool_id)))
            self.unpin_vectors(tool_id)
            self.write_pages(tool_id, remove=[page.url for page in self.pages(tool_id)])
            self._tools = {name: tool for name, tool in self._tools.items() if tool.id != tool_id}

    def swap_tools(self, tool: Tool, shadow: Tool) -> int:
        """Replace a tool's documents by those of its shadow and delete the shadow, atomically."""
        with self._lock:
            generation = self.write(tool.id, remove=list(self.fingerprints(tool.id)))
            for (owner, uri), held in list(self._documents.items()):
                if owner == shadow.id:
                    held.tool_id, held.generation = tool.id, generation
                    self._documents[tool.id, uri] = self._documents.pop((owner, uri))
            for (owner, uri), failed in list(self._failures.items()):
                if owner == shadow.id:
                    self._failures[tool.id, uri] = failed
            self.drop_tool(shadow.id)
            self.put_tool(tool)
            return generation

    def adopt_documents(self, tool: Tool, shadow: Tool) -> Tool:
        """Store a tool with the documents of its shadow, atomically; a tool of the same name is replaced."""
        with self._lock:
            tool = self.put_tool(tool)
            self.swap_tools(tool, shadow)
            return tool

    def fingerprints(self, tool_id: int) -> dict[str, Fingerprint]:
        """Return the fingerprint of each document and of each failed entry, by URI."""
        failed = {
            uri: fingerprint(one.content_hash, one.entry) for (t, uri), one in self._failures.items() if t == tool_id
        }
        return failed | {
            uri: fingerprint(held.prepared.document.content_hash, held.entry)
            for (tool, uri), held in self._documents.items()
            if tool == tool_id
        }

    def failures(self, tool_id: int) -> list[Problem]:
        """Return the entries that could not be imported."""
        return [Problem(uri, one.reason) for (t, uri), one in sorted(self._failures.items()) if t == tool_id]

    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[PreparedDocument] = (),
        fail: Sequence[FailedDocument] = (),
        remove: Sequence[str] = (),
        touch: Sequence[SourceEntry] = (),
        vectors: Mapping[bytes, npt.NDArray[np.float32]] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> int:
        """Write documents atomically and return the new generation; a failed entry replaces its document."""
        with self._lock:
            self._vectors.update(vectors or {})
            self._add_usage(usage or {})
            if upsert or fail or remove:
                self._generation += 1
            replaced = (*(one.document.uri for one in upsert), *(one.entry.uri for one in fail))
            for uri in (*remove, *replaced):
                self._failures.pop((tool_id, uri), None)
                held = self._documents.pop((tool_id, uri), None)
                if held:
                    self._removals.append((tool_id, held.id, self._generation))
            self._failures.update({(tool_id, one.entry.uri): one for one in fail})
            for prepared in upsert:
                document = prepared.document
                self._documents[tool_id, document.uri] = _StoredDocumentRow(
                    self._next_document, tool_id, self._generation, prepared, document.entry, self._next_chunk
                )
                self._next_document += 1
                self._next_chunk += len(prepared.chunks)
            for entry in touch:
                if held := self._documents.get((tool_id, entry.uri)):
                    held.prepared = _shift_lines(held.prepared, entry.lines.first - held.entry.lines.first)
                    held.entry = entry
                if failed := self._failures.get((tool_id, entry.uri)):
                    self._failures[tool_id, entry.uri] = replace(failed, entry=entry)
            return self._generation

    def pin_vectors(
        self,
        tool_id: int,
        embedder: str,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        *,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> None:
        """Store vectors that no chunk uses yet, and keep them from being deleted as orphans until they are unpinned."""
        with self._lock:
            self._vectors.update(vectors)
            self._pinned.setdefault((tool_id, embedder), set()).update(vectors)
            self._add_usage(usage or {})

    def unpin_vectors(self, tool_id: int, embedder: str | None = None) -> None:
        """Unpin the vectors of a tool, of one embedder or of all."""
        for tool, name in list(self._pinned):
            if tool == tool_id and embedder in (None, name):
                del self._pinned[tool, name]

    def replace_vectors(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: dict[str, Any]) -> int:
        """Assign new vectors to all chunks of a tool, atomically; return the new generation."""
        with self._lock:
            held = [one for one in self._documents.values() if one.tool_id == tool_id]
            wanted = any(keys.values())
            for one in held:
                own = keys.get(one.prepared.document.uri, ())
                if len(own) != (len(one.prepared.chunks) if wanted else 0) or self.missing_vectors(own):
                    raise LibraryError(
                        "The documents changed while their vectors were made",
                        hint="Run bunko reembed again; what was made is kept.",
                    )
            self._generation += 1
            for one in held:
                one.prepared = replace(one.prepared, vector_keys=list(keys.get(one.prepared.document.uri, ())))
                one.generation = self._generation
                self._removals.append((tool_id, one.id, self._generation))
            self.update_build_info(tool_id, built=built)
            return self._generation

    def embedding_usage(self) -> dict[str, EmbeddingUsage]:
        """Return how much imports have used each embedder, by embedder name."""
        return dict(sorted(self._usage.items()))

    def _add_usage(self, usage: Mapping[str, EmbeddingUsage]) -> None:
        for name, more in usage.items():
            self._usage[name] = self._usage.get(name, EmbeddingUsage()) + more

    def missing_vectors(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return the keys that have no stored vector."""
        return {key for key in keys if key not in self._vectors}

    def generation(self) -> int:
        """Return a number that grows with every change that affects search results."""
        return self._generation

    def changes_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Yield the chunks of all documents written after a generation, in the order they were written."""
        for held in sorted(self._documents.values(), key=lambda held: held.id):
            if held.tool_id != tool_id or held.generation <= since:
                continue
            prepared = held.prepared
            terms = unpack_terms(prepared.packed_terms)
            for number, chunk in enumerate(prepared.chunks):
                vector = self._vectors.get(prepared.vector_keys[number]) if prepared.vector_keys else None
                yield StoredChunk(
                    held.first_chunk + number,
                    held.id,
                    tiebreak_order(prepared.document.uri, chunk.index),
                    chunk.text_in_context(prepared.document.text.title),
                    *terms[number],
                    vector,
                )

    def removed_since(self, tool_id: int, since: int) -> list[int] | None:
        """Return the ids of the documents removed after a generation, or None if those records were pruned."""
        return [document for tool, document, generation in self._removals if tool == tool_id and generation > since]

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Do nothing: removal records are never pruned here."""

    def set_index_file(self, tool_id: int, name: str) -> None:
        """Do nothing: there are no index files here."""

    def index_file(self, tool_id: int) -> str:
        """Return the name of the tool's current index file, or an empty string."""
        return ""

    def delete_orphan_vectors(self) -> None:
        """Delete vectors that no chunk uses and that are not pinned."""
        used = {key for held in self._documents.values() for key in held.prepared.vector_keys}.union(
            *self._pinned.values()
        )
        self._vectors = {key: vector for key, vector in self._vectors.items() if key in used}

    def chunks(self, ids: Sequence[int]) -> dict[int, ChunkRow]:
        """Return the chunks with these ids that still exist."""
        found = {}
        for held in self._documents.values():
            for number, chunk in enumerate(held.prepared.chunks):
                if held.first_chunk + number in ids:
                    document = held.prepared.document
                    found[held.first_chunk + number] = ChunkRow(
                        held.tool_id,
                        held.id,
                        document.uri,
                        document.text.title,
                        _document_date(held),
                        document.text.tags,
                        document.content_hash,
                        chunk,
                    )
        return found

    def document(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return the document with this URI, or None."""
        held = self._documents.get((tool_id, uri))
        if held is None:
            return None
        document, text = held.prepared.document, held.prepared.document.text
        return StoredDocument(
            uri, text.title, _document_date(held), text.tags, document.content_hash, text.media_type, text.text, text.body_start,  # noqa: E501
            held.entry.lines,
        )  # fmt: skip

    def export_documents(self, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
        """Return the documents as they were written, sorted by URI."""
        held = [self._documents[tool_id, uri] for uri in sorted(set(uris)) if (tool_id, uri) in self._documents]
        return [replace(one.prepared, document=replace(one.prepared.document, entry=one.entry)) for one in held]

    def vectors(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the stored vectors among these keys."""
        return {key: self._vectors[key] for key in keys if key in self._vectors}

    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one, sorted."""
        return sorted(uri for tool, uri in self._documents if tool == tool_id and uri > after)[:limit]

    def uris_with_hash(self, tool_id: int, prefix: str) -> list[str]:
        """Return the URIs of documents whose content hash starts with a prefix."""
        return sorted(
            uri
            for (tool, uri), held in self._documents.items()
            if tool == tool_id and held.prepared.document.content_hash.startswith(prefix)
        )

    def select_documents(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that match a filter."""
        test = document_matcher(where)
        return [
            held.id
            for (tool, uri), held in self._documents.items()
            if tool == tool_id and test(uri, _document_date(held), frozenset(held.prepared.document.text.tags))
        ]

    def totals(self, tool_id: int) -> Totals:
        """Return how many documents, chunks, vectors and characters a tool has."""
        held = self._prepared_documents(tool_id)
        return Totals(
            len(held),
            sum(len(one.chunks) for one in held),
            sum(len(one.vector_keys) for one in held),
            sum(len(one.document.text.text) for one in held),
        )

    def storage_size(self, tool_id: int) -> StorageSize:
        """Return how many bytes a tool's rows would take in a file."""
        held = self._prepared_documents(tool_id)
        text = sum(_utf8_length(one.document.text.text) for one in held)
        apart = sum(
            _utf8_length(chunk.heading)
            + _utf8_length(json.dumps(chunk.heading_path, ensure_ascii=False))
            + _utf8_length(separate_chunk_text(chunk, one.document.text.text) or "")
            for one in held
            for chunk in one.chunks
        )
        vectors = [self._vectors[key] for key in {key for one in held for key in one.vector_keys}]
        size = len(vectors[0]) if vectors else 0
        return StorageSize(text, sum(len(one.packed_terms) for one in held) + apart, 4 * size * len(vectors), size)

    def chunk_lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return pairs of chunk length in characters and number of chunks, shortest first."""
        return sorted(
            Counter(len(chunk.text) for one in self._prepared_documents(tool_id) for chunk in one.chunks).items()
        )

    def list_documents(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[DocumentSummary]:
        """Return a page of documents, sorted by URI."""
        held = sorted(self._prepared_documents(tool_id), key=lambda one: one.document.uri)[skip : skip + limit]
        return [
            DocumentSummary(
                one.document.uri,
                text.title,
                len(one.chunks),
                len(text.text),
                text.text[text.body_start :][:BEGINNING_CHARS],
            )
            for one in held
            for text in (one.document.text,)
        ]

    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag with its number of documents, most used first."""
        return count_tags(one.document.text.tags for one in self._prepared_documents(tool_id))

    def recent_documents(self, tool_id: int, *, limit: int = 10) -> list[DatedDocument]:
        """Return the most recent documents, newest first; documents without a date come last."""
        held = {one.prepared.document.uri: one for one in self._documents.values() if one.tool_id == tool_id}
        return [
            DatedDocument(
                uri, text.title, date, text.tags, text.text[text.body_start :][:BEGINNING_CHARS], held[uri].entry.lines
            )
            for uri, date in newest_first((uri, _document_date(one)) for uri, one in held.items())[:limit]
            for text in (held[uri].prepared.document.text,)
        ]

    def _prepared_documents(self, tool_id: int) -> list[PreparedDocument]:
        return [one.prepared for one in self._documents.values() if one.tool_id == tool_id]

    def pages(self, tool_id: int, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return all pages of a tool, or those with the given URLs, sorted by URL."""
        found = [page for (tool, _), page in sorted(self._pages.items()) if tool == tool_id]
        return [page for page in found if urls is None or page.url in urls]

    def page_content(self, tool_id: int, url: str) -> bytes | None:
        """Return the content of a page as it was fetched, or None."""
        content = self._contents.get((tool_id, url))
        return None if content is None else zlib.decompress(content)

    def write_pages(
        self,
        tool_id: int,
        *,
        upsert: Sequence[WebPage] = (),
        contents: Mapping[str, bytes] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Write pages atomically; a page without new content keeps its old content."""
        with self._lock:
            for url in remove:
                self._pages.pop((tool_id, url), None)
                self._contents.pop((tool_id, url), None)
            for page in upsert:
                place = (tool_id, page.url)
                if page.url in (contents or {}):
                    self._contents[place] = zlib.compress((contents or {})[page.url])
                self._pages[place] = replace(page, size=len(self._contents.get(place, b"")))

    def log_search(self, query: str, tool: str, at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""
        with self._lock:
            old = self._searches.get((query, tool))
            self._searches[query, tool] = LoggedSearch(query, tool, old.count + 1 if old else 1, at)
            by_name = sorted(self._searches.values(), key=lambda one: (-one.count, one.query, one.tool))
            newest = sorted(by_name, key=lambda one: one.last_searched_at, reverse=True)[:limit]
            self._searches = {(one.query, one.tool): one for one in newest}
        return True

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, most frequent first."""
        return sorted(self._searches.values(), key=lambda one: (-one.count, one.query, one.tool))

    def clear_searches(self) -> int:
        """Delete the search log; return how many searches it had."""
        number = len(self._searches)
        self._searches = {}
        return number

    def cached_answer(self, kind: str, key: bytes, at: float) -> str | None:
        """Return a cached model answer, or None if there is none or it expired; `at` is in seconds since 1970."""
        value, until = self._answers.get((kind, key), (None, at))
        return value if until > at else None

    def cache_answer(self, kind: str, key: bytes, value: str, *, at: float, until: float, limit: int) -> bool:
        """Cache a model answer, keeping `limit` per kind; return False if another process is writing."""
        with self._lock:
            self._answers[kind, key] = (value, until)
            fresh = {name: one for name, one in self._answers.items() if one[1] > at}
            latest = sorted((name for name in fresh if name[0] == kind), key=lambda name: (-fresh[name][1], name))
            self._answers = {name: one for name, one in fresh.items() if name not in latest[limit:]}
        return True

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""
        return ""

    def close(self) -> None:
        """Do nothing: no files are open."""


def _document_date(row: _StoredDocumentRow) -> str:
    return effective_date(row.prepared.document.text.date, row.entry.modified_ns, row.entry.lines.last)


def _shift_lines(prepared: PreparedDocument, offset: int) -> PreparedDocument:
    if not offset:
        return prepared
    chunks = [
        replace(one, first_line=one.first_line + offset, last_line=one.last_line + offset) for one in prepared.chunks
    ]
    return replace(prepared, chunks=chunks)


def _utf8_length(text: str) -> int:
    return len(text.encode())


def build() -> Memory:
    """Keep everything in memory."""
    return Memory()
