"""A pack in, its documents in a tool out: as they are if both libraries work alike, else made anew from their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.embedders import embed_and_check
from bunko.failpoints import reach_failpoint
from bunko.ingest.embed import as_remote, embed_documents
from bunko.ingest.pipeline import ChunkerSettings, ImportProgress, make_batches, pack_terms
from bunko.library.pack.file import Pack
from bunko.library.pack.records import PackRecord
from bunko.protocols import Embedder, Store
from bunko.records import EmbeddingUsage, PreparedDocument
from bunko.types import Report, Tool

if TYPE_CHECKING:
    from bunko.types import Vectors

# What does not change how documents are cut.
_NOT_CHUNKING_FACTS = {"words", "grams", "embedder"}


def load_pack(
    store: Store,
    target: Tool,
    pack: Pack,
    chunker_settings: ChunkerSettings,
    embedder: Embedder | None,
    build_facts: Mapping[str, Any],
    *,
    progress: Callable[[ImportProgress], None] = lambda _: None,
) -> Report:
    """Put a pack's documents into a tool; what was made otherwise than here is made anew from their texts."""
    theirs = pack.tool.built
    different = {name for name in (build_facts.keys() | theirs.keys()) if build_facts.get(name) != theirs.get(name)}
    chunker = chunker_settings.build() if different - _NOT_CHUNKING_FACTS else None
    report, costly = Report(added=pack.documents), as_remote(embedder)
    done = ImportProgress(0, pack.documents, 0, 0, 0)
    for batch in make_batches(pack.records(), lambda record: len(record.prepared.document.text.text)):
        carried = _PackEmbedder(embedder) if embedder is not None else None
        put = []
        for record in batch:
            if carried is not None and "embedder" not in different:
                carried.add_vectors(record)
            document, chunks = record.prepared.document, record.prepared.chunks
            if chunker is not None:
                chunks = chunker.chunks(document.text) or chunks
            if chunker is not None or "words" in different:
                put.append(PreparedDocument(document, chunks, pack_terms(document, chunks)))
            else:
                put.append(record.prepared)
        calls = costly.stats.calls if costly else 0
        named, vectors, _ = embed_documents(store, carried, put)
        spent = {}
        if carried is not None and carried.embedded_count:
            made = costly.stats.calls - calls if costly else -(-carried.embedded_count // carried.batch_size)
            spent[carried.name] = EmbeddingUsage(carried.embedded_count, made)
        store.write(target.id, upsert=named, vectors=vectors, usage=spent)
        reach_failpoint("pack.batch")
        report.total_chunks += sum(len(one.chunks) for one in put)
        report.embedded += carried.embedded_count if carried is not None else 0
        done = replace(done, files=done.files + len(put), chunks=report.total_chunks)
        progress(done)
    if chunker is not None:
        report.notices.append("This library cuts documents another way: they were cut anew from their texts.")
    elif "words" in different:
        report.notices.append("This library finds words another way: they were found anew in the texts.")
    if report.embedded:
        report.notices.append(f"{report.embedded} texts were embedded here: the pack has no vectors that fit.")
    return report


class _PackEmbedder:
    """An embedder that knows the vectors a pack brought, and asks another for the rest."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.size, self.noise_floor, self.embedded_count = (
            embedder.name,
            embedder.size,
            embedder.noise_floor,
            0,
        )
        self.label, self.batch_size, self.is_remote = embedder.label, embedder.batch_size, embedder.is_remote
        self._embedder, self._vectors = embedder, dict[str, "Vectors"]()

    def add_vectors(self, record: PackRecord) -> None:
        """Take note of a document's vectors."""
        if record.vectors is None or record.vectors.shape[1] != self.size:
            return
        title = record.prepared.document.text.title
        texts = (chunk.text_in_context(title) for chunk in record.prepared.chunks)
        self._vectors.update(zip(texts, record.vectors, strict=True))

    def unavailable_reason(self) -> str:
        """Return what the other one lacks."""
        return self._embedder.unavailable_reason()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one row for each text."""
        new = [text for text in texts if text not in self._vectors]
        if new:
            self.embedded_count += len(new)
            self._vectors.update(zip(new, embed_and_check(self._embedder, new, query=query), strict=True))
        return np.stack([self._vectors[text] for text in texts])
