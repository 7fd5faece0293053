"""Prepare documents for the store: read them, split them into chunks, divide those into terms, and embed them."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePosixPath
from urllib.parse import unquote

from bunko import readers
from bunko.embedders.embed import vector_keys
from bunko.errors import BunkoError, EmbedderError, PackageError, SourceError
from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import EmbeddedText, embed_all
from bunko.protocols import Chunker, Embedder, SelfReadingSource, Source
from bunko.runtime.plugins import describe_exception
from bunko.text import analyzer, term_codec
from bunko.types import NO_TEXT, WHOLE_FILE, Chunk, Document, ExcerptEntry, SourceEntry
from bunko.types.pickling import reduce_to_fields
from bunko.types.records import FailedDocument, PreparedDocument

_log = logging.getLogger("bunko.ingest")


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
    # The vectors of chunks by their keys, if they are embedded where they are prepared.
    embedded: dict[bytes, EmbeddedText] = field(default_factory=dict)


def prepare_entries(
    source: Source,
    chunker_settings: ChunkerSettings,
    entries: Sequence[SourceEntry],
    clock_ns: Callable[[], int] = time.time_ns,  # when a file is read
    embedder: Embedder | None = None,
) -> list[EntryResult]:
    """Read, chunk and tokenize entries, one after the other, and with an embedder embed their chunks."""
    chunker = chunker_settings.build()
    results = []
    for entry in entries:
        try:
            results.append(_prepare_entry(source, chunker, entry, clock_ns))
        except PackageError as error:
            if isinstance(entry, ExcerptEntry):
                raise  # a file is up to date as a whole: without this entry, the next import would not look for it
            # It waits for an import that can use the package.
            results.append(EntryResult(entry, entry.work_size, problem=str(error)))
    if embedder is not None:
        _embed_documents(embedder, results)
    return results


def _embed_documents(embedder: Embedder, results: Sequence[EntryResult]) -> None:
    """Add the vectors of documents; if the embedder fails, whoever writes them tries again and says why."""
    documents = [result.document for result in results if result.document]
    texts = [text for document in documents for text in document.texts_to_embed()]
    start = time.perf_counter()
    try:
        embedded = list(zip(vector_keys(embedder, texts), embed_all(embedder, texts), strict=True))
    except EmbedderError:
        return
    seconds = (time.perf_counter() - start) / max(len(texts), 1)
    waiting = iter(embedded)
    for result in results:
        if result.document:
            result.step_seconds["embed"] = seconds * len(result.document.chunks)
            pairs = list(islice(waiting, len(result.document.chunks)))
            result.document = replace(result.document, vector_keys=[key for key, _ in pairs])
            result.embedded = dict(pairs)


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
        except Exception as error:  # of a source from another package
            _log.debug("%s cannot be read", entry.uri, exc_info=True)
            result.problem = f"cannot be read: its source raised {describe_exception(error)}"
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
        except PackageError:
            raise
        except Exception as error:  # a document that no one foresaw does not end the import of the others
            _log.debug("The reader of %s raised", entry.uri, exc_info=True)
            result.failure = FailedDocument(
                result.entry, content_hash, f"Its reader raised {describe_exception(error)}"
            )
            return result
    document = Document(result.entry, text, content_hash)
    chunks = chunk_document(document, chunker)
    chunked_at = clock()
    if not chunks:
        result.failure = FailedDocument(result.entry, content_hash, NO_TEXT)
        return result
    result.document = PreparedDocument(document, chunks, pack_terms(document, chunks))
    result.step_seconds = {
        "file_read": read_at - start,
        "hash_compute": hashed_at - read_at,
        "chunk_split": chunked_at - hashed_at,
        "tokenise": clock() - chunked_at,
    }
    return result


def chunk_document(document: Document, chunker: Chunker) -> list[Chunk]:
    """Return the chunks of a document, with the line numbers of its file."""
    lines, context = document.entry.lines, document.text.context
    chunks = chunker.chunks(document.text)
    if context:  # what stands above an entry is its outermost heading
        chunks = [replace(chunk, heading_path=(context, *chunk.heading_path)) for chunk in chunks]
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
    texts = ["\n\n".join((labels, chunk.text_to_index(title), *chunk.headings(title))) for chunk in chunks]
    terms = term_codec.pack_terms(map(analyzer.term_keys, texts))
    analyzer.check_packages(texts)
    return terms
