"""Embed the documents that were imported while their embedder was away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from bunko.failpoints import reach_failpoint
from bunko.ingest.embed import embed_batches
from bunko.ingest.pipeline import make_batches
from bunko.observer import Observer
from bunko.protocols import Embedder, Store
from bunko.records import PreparedDocument
from bunko.types import Tool

_READ_BATCH = 100


def embed_missing(store: Store, tool: Tool, embedder: Embedder, observer: Observer) -> tuple[int, bool]:
    """Compute the missing vectors of a tool; return how many texts were embedded, and whether all documents are done.

    Each batch of documents is written as soon as it is embedded; an error of the embedder is raised after that.
    """
    count = 0
    documents = make_batches(
        _documents_without_vectors(store, tool, observer), lambda prepared: len(prepared.document.text.text)
    )
    with closing(embed_batches(store, embedder, documents, list, owner_id=tool.id)) as stream:
        for batch in stream:
            store.documents.write(
                tool.id, upsert=batch.documents, vectors=batch.vectors, sentences=batch.sentences, usage=batch.usage
            )
            reach_failpoint("missing.batch")
            count += len(batch.vectors)
    return count, not store.vectors.uris_without(tool.id, limit=1)


def _documents_without_vectors(store: Store, tool: Tool, observer: Observer) -> Iterator[PreparedDocument]:
    last = ""
    while not observer.is_cancelled() and (uris := store.vectors.uris_without(tool.id, after=last, limit=_READ_BATCH)):
        yield from store.documents.export(tool.id, uris)
        last = uris[-1]
