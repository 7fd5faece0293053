"""Import documents from their stored texts: those that lack vectors, and those whose files cannot be read now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import embed_batches
from bunko.ingest.prepare import chunk_document, pack_terms
from bunko.ingest.run import make_batches
from bunko.protocols import Embedder, Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import Observer
from bunko.types import Tool
from bunko.types.records import PreparedDocument

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
