"""Carry documents over into a rebuild from their stored texts, because their files cannot be read now."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from bunko.ingest.chunker_settings import ChunkerSettings
from bunko.ingest.embed import embed_batches
from bunko.ingest.pipeline import make_batches
from bunko.ingest.prepare import chunk_document, pack_terms
from bunko.protocols import Embedder, Store
from bunko.records import PreparedDocument
from bunko.types import Tool

_READ_BATCH = 100


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

    def prepare(batch: Sequence[str]) -> list[PreparedDocument]:
        documents = [stored.document for stored in store.documents.export(tool.id, batch)]
        chunked = [(document, chunk_document(document, chunker)) for document in documents]
        return [PreparedDocument(document, chunks, pack_terms(document, chunks)) for document, chunks in chunked]

    batches = make_batches(uris, lambda _: 1, _READ_BATCH)
    with closing(embed_batches(store, embedder, batches, prepare, owner_id=tool.id)) as stream:
        for batch in stream:
            store.documents.write(
                target.id, upsert=batch.documents, vectors=batch.vectors, sentences=batch.sentences, usage=batch.usage
            )
