"""Import texts that are already in memory into a tool."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing

from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import LongTextCounter, embed_batches
from bunko.ingest.prepare import pack_chunk_terms
from bunko.ingest.run import make_batches
from bunko.protocols import Chunker, Embedder, Store
from bunko.runtime.observer import NO_OBSERVER, ImportProgress, Observer
from bunko.types import NO_TEXT, Document, Report, SourceEntry, Text, Tool
from bunko.types.records import FailedDocument, PreparedDocument

# One transaction: about as much text as in an import from files, which counts bytes.
_BATCH_CHARS = 250_000


def ingest_texts(
    store: Store,
    tool: Tool,
    texts: Mapping[str, Text],
    chunker_settings: ChunkerSettings,
    embedder: Embedder | None,
    *,
    observer: Observer = NO_OBSERVER,
) -> Report:
    """Make a tool hold exactly these texts by uri; only changed texts are chunked and embedded again."""
    fingerprints = store.documents.fingerprints(tool.id)
    hashes = {uri: _text_hash(text) for uri, text in texts.items()}
    removed = [uri for uri in fingerprints if uri not in texts]
    changed = [uri for uri in texts if uri not in fingerprints or fingerprints[uri].content_hash != hashes[uri]]
    report = Report(unchanged=len(texts) - len(changed), deleted=len(removed))
    if removed:
        store.documents.write(tool.id, remove=removed)
    chunker = chunker_settings.build()
    total = sum(len(texts[uri].text) for uri in changed)
    done = ImportProgress(0, len(changed), 0, 0, total)
    too_long = LongTextCounter(embedder)
    results = (
        [_prepare_text(uri, texts[uri], hashes[uri], chunker) for uri in uris]
        for uris in make_batches(changed, lambda uri: len(texts[uri].text), _BATCH_CHARS)
    )
    batches = ((batch, [result for result in batch if isinstance(result, PreparedDocument)]) for batch in results)
    with closing(embed_batches(store, embedder, batches, owner_id=tool.id)) as stream:
        for embedded in stream:
            batch, documents = embedded.batch, embedded.documents
            failures = [result for result in batch if isinstance(result, FailedDocument)]
            store.documents.write(
                tool.id,
                upsert=documents,
                fail=failures,
                vectors=embedded.vectors,
                sentences=embedded.sentences,
                usage=embedded.usage,
            )
            report.embedded += len(embedded.vectors)
            for prepared in documents:
                if prepared.document.uri in fingerprints:
                    report.updated += 1
                else:
                    report.added += 1
            done = ImportProgress(
                done.files + len(batch),
                done.total_files,
                done.chunks + sum(len(prepared.chunks) for prepared in documents),
                done.bytes
                + sum(prepared.document.entry.size for prepared in documents)
                + sum(failure.entry.size for failure in failures),
                total,
            )
            observer.on_progress(done)
    report.notices += too_long.warnings()
    report.problems += store.documents.failures(tool.id)
    report.total_chunks = store.stats.totals(tool.id).chunks
    return report


def _prepare_text(uri: str, text: Text, content_hash: str, chunker: Chunker) -> PreparedDocument | FailedDocument:
    entry = SourceEntry(uri, len(text.text), 0)
    chunks = chunker.chunks(text)
    if not chunks:
        return FailedDocument(entry, content_hash, NO_TEXT)
    # Unlike the name of a file, the uri is not indexed: it is an identifier, not a description of the text.
    packed = pack_chunk_terms(text.title, chunks)
    return PreparedDocument(Document(entry, text, content_hash), chunks, packed)


def _text_hash(text: Text) -> str:
    content = "\0".join((text.media_type, text.title, text.text))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
