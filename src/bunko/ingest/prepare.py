"""Prepare documents for the store: read them, split them into chunks, and divide those into terms."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from urllib.parse import unquote

from bunko import readers
from bunko.errors import BunkoError, SourceError
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.protocols import Chunker, SelfReadingSource, Source
from bunko.records import FailedDocument, PreparedDocument
from bunko.text import analyzer, term_codec
from bunko.types import WHOLE_FILE, Chunk, Document, ExcerptEntry, SourceEntry
from bunko.types.pickling import reduce_to_fields


@dataclass(slots=True)
class EntryResult:
    """The result of preparing one entry, with the duration of each step."""

    __reduce__ = reduce_to_fields

    entry: SourceEntry
    work: int
    document: PreparedDocument | None = None
    failure: FailedDocument | None = None
    problem: str = ""  # why it cannot be read now; the stored document stays
    step_seconds: dict[str, float] = field(default_factory=dict)


def prepare_entries(
    source: Source,
    chunker_settings: ChunkerSettings,
    entries: Sequence[SourceEntry],
    clock_ns: Callable[[], int] = time.time_ns,  # when a file is read
) -> list[EntryResult]:
    """Read, chunk and tokenize entries, one after the other."""
    chunker = chunker_settings.build()
    return [_prepare_entry(source, chunker, entry, clock_ns) for entry in entries]


def _prepare_entry(source: Source, chunker: Chunker, entry: SourceEntry, clock_ns: Callable[[], int]) -> EntryResult:
    result = EntryResult(entry, entry.work_size)
    clock = time.perf_counter
    start = clock()
    if isinstance(entry, ExcerptEntry):
        result.entry, content_hash, text = entry.without_text(), entry.content_hash, entry.text
        read_at = hashed_at = clock()
        if entry.needs_text:
            result.problem = "changed during the import; the next import will read it"
            return result
        if text is None:
            result.failure = FailedDocument(result.entry, content_hash, entry.problem)
            return result
    else:
        seen_ns = clock_ns()
        try:
            data, entry = source.read(entry)
        except BunkoError as error:
            result.problem = str(error)
            return result
        except OSError as error:
            result.problem = f"cannot be read: {error.strerror or error}"
            return result
        result.entry = replace(entry, seen_ns=seen_ns)
        read_at = clock()
        content_hash = hashlib.sha256(data).hexdigest()
        hashed_at = clock()
        try:
            text = source.text(data, entry) if isinstance(source, SelfReadingSource) else readers.read(data, entry.uri)
        except SourceError as error:
            result.failure = FailedDocument(result.entry, content_hash, str(error))
            return result
    document = Document(result.entry, text, content_hash)
    chunks = chunk_document(document, chunker)
    chunked_at = clock()
    if not chunks:
        result.failure = FailedDocument(result.entry, content_hash, "contains no text")
        return result
    result.document = PreparedDocument(document, chunks, pack_terms(document, chunks))
    result.step_seconds = {
        "file_read": read_at - start,
        "hash_compute": hashed_at - read_at,
        "chunk_split": chunked_at - hashed_at,
        "tokenise": clock() - chunked_at,
    }
    return result


def _in_context(chunks: list[Chunk], context: str) -> list[Chunk]:
    """Return chunks with what stands above their entry as their outermost heading."""
    return [replace(chunk, heading_path=(context, *chunk.heading_path)) for chunk in chunks] if context else chunks


def chunk_document(document: Document, chunker: Chunker) -> list[Chunk]:
    """Return the chunks of a document, with the line numbers of its file."""
    lines = document.entry.lines
    chunks = _in_context(chunker.chunks(document.text), document.text.context)
    if lines == WHOLE_FILE:
        return chunks
    return [
        replace(chunk, first_line=lines.file_line(chunk.first_line), last_line=lines.file_line(chunk.last_line))
        for chunk in chunks
    ]


def pack_terms(document: Document, chunks: Sequence[Chunk]) -> bytes:
    """Return the terms of a document's chunks in the store's format."""
    # File names, aliases and authors are indexed because people search for them. Vectors leave them out: a rename
    # costs none, and all entries of an author would look alike.
    uri = document.uri
    name = PurePosixPath(unquote(uri) if uri.startswith(("http://", "https://")) else uri).stem
    # Apart, because lines of Japanese that follow each other are joined.
    labels = "\n\n".join(filter(None, (name, *document.text.aliases, document.text.context)))
    return pack_chunk_terms(document.text.title, chunks, labels=labels)


def pack_chunk_terms(title: str, chunks: Sequence[Chunk], *, labels: str = "") -> bytes:
    """Return the terms of chunks in the store's format; those of a title or heading count twice."""
    return term_codec.pack_terms(
        analyzer.term_keys("\n\n".join((labels, chunk.text_to_index(title), *chunk.headings(title))))
        for chunk in chunks
    )
