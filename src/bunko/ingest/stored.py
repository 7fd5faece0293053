"""Import documents without a scan: texts as they are given, and stored ones that lack vectors or cannot be read now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import LongTextCounter, embed_batches
from bunko.ingest.prepare import chunk_document, pack_chunk_terms, pack_terms
from bunko.ingest.run import make_batches
from bunko.protocols import Chunker, Embedder, Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import NO_OBSERVER, ImportProgress, Observer
from bunko.types import NO_TEXT, Document, Report, SourceEntry, Text, Tool
from bunko.types.records import FailedDocument, PreparedDocument

_READ_BATCH = 100


def embed_missing(store: Store, tool: Tool, embedder: Embedder, observer: Observer) -> tuple[int, bool]:
    """Compute the missing vectors of a tool; return how many texts were embedded, and whether all documents are done.

    Each batch of documents is written as soon as it is embedded; an error of the embedder is raised after that.
    """

    def documents_without_vectors() -> Iterator[PreparedDocument]:
        last = ""
        while not observer.is_cancelled() and (
            uris := store.vectors.uris_without(tool.id, after=last, limit=_READ_BATCH)
        ):
            yield from store.documents.export(tool.id, uris)
            last = uris[-1]

    count = 0
    batches = make_batches(documents_without_vectors(), lambda prepared: len(prepared.document.text.text))
    with closing(embed_batches(store, embedder, ((None, batch) for batch in batches), owner_id=tool.id)) as stream:
        for batch in stream:
            store.documents.write(
                tool.id, upsert=batch.documents, vectors=batch.vectors, sentences=batch.sentences, usage=batch.usage
            )
            reach_failpoint("missing.batch")
            count += len(batch.vectors)
    return count, not store.vectors.uris_without(tool.id, limit=1)


def keep_documents(
    store: Store,
    tool: Tool,
    target: Tool,
    uris: Sequence[str],
    chunker_settings: ChunkerSettings,
    embedder: Embedder | None,
) -> None:
    """Write documents of a tool to its rebuild, chunked and embedded as the rebuild is."""
    chunker = chunker_settings.build()

    def prepared_batches() -> Iterator[tuple[None, list[PreparedDocument]]]:
        for start in range(0, len(uris), _READ_BATCH):
            documents = [
                stored.document for stored in store.documents.export(tool.id, uris[start : start + _READ_BATCH])
            ]
            chunked = [(document, chunk_document(document, chunker)) for document in documents]
            yield (
                None,
                [PreparedDocument(document, chunks, pack_terms(document, chunks)) for document, chunks in chunked],
            )

    with closing(embed_batches(store, embedder, prepared_batches(), owner_id=tool.id)) as stream:
        for batch in stream:
            store.documents.write(
                target.id, upsert=batch.documents, vectors=batch.vectors, sentences=batch.sentences, usage=batch.usage
            )


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
